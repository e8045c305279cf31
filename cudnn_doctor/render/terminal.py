"""Lines painted for a real terminal; the only place that loads rich."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from cudnn_doctor.render.text import Line, Style

# The sixteen basic colours, so that the user's own palette decides what is readable; no background is ever set.
PAINT: dict[Style, str] = {
    "": "none",
    "ok": "green",
    "note": "blue",
    "warning": "yellow",
    "error": "bold red",
    "unknown": "magenta",
    "skipped": "dim",
    "crashed": "bold magenta",
    "bold": "bold",
    "dim": "dim",
    "command": "cyan",
}


def paint(lines: Iterable[Line]) -> str:
    """The lines with colour codes. Texts are never read as rich markup, emoji names or highlights."""
    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        width=10_000,  # the lines are laid out already; commands longer than the screen must not be broken
    )
    for line in lines:
        console.print(Text.assemble(*((text, PAINT[style]) for style, text in line)), soft_wrap=True)
    return out.getvalue()
