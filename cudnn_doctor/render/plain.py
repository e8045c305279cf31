"""Lines without colour: for pipes, files, CI logs, dumb terminals and NO_COLOR."""

from __future__ import annotations

from collections.abc import Iterable

from cudnn_doctor.render.text import Line


def join(lines: Iterable[Line]) -> str:
    """The words of the lines alone."""
    return "".join("".join(text for _, text in line).rstrip() + "\n" for line in lines)
