"""Lines for people, and the one way from lines to text.

A line is a tuple of spans, a style and a text. Plain text drops the styles, a terminal gets them painted; both show
the same words, so colour is never the only sign.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from cudnn_doctor.render.clean import disarmed, encodable

Style = Literal["", "ok", "note", "warning", "error", "unknown", "skipped", "crashed", "bold", "dim", "command"]
Span = tuple[Style, str]
Line = tuple[Span, ...]


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


def finish(lines: Iterable[Line], *, color: bool, encoding: str) -> str:
    """The lines as text, cleaned of what could act in a terminal or a CI log and sayable in `encoding`. `color` is for
    real terminals only: it loads rich."""
    safe = [_safe(line, encoding) for line in lines]
    if color:
        return _paint(safe)
    return "".join("".join(text for _, text in line).rstrip() + "\n" for line in safe)


def _safe(line: Line, encoding: str) -> Line:
    """A line that had to be changed as a whole loses its styles: rare, and the words matter more."""
    text = "".join(t for _, t in line)
    clean = encodable(disarmed(text), encoding)
    return line if clean == text else (("", clean),) if clean else ()


def _paint(lines: Iterable[Line]) -> str:
    """The lines with colour codes. Texts are never read as rich markup, emoji names or highlights."""
    from io import StringIO

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
