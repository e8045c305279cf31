"""The command line: parses, calls the engine, prints, exits. Nothing else in the package prints or exits."""

from __future__ import annotations


def main() -> None:
    """Entry point of the console script."""
    raise SystemExit("not written yet")
