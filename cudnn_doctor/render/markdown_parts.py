"""Pieces of GitHub-flavoured markdown in which nothing from the machine or a log can act.

Texts are escaped, values stand in code spans (so that `@name` pings nobody and `#1` links nothing), blocks are fenced
longer than any fence inside, and every piece is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cudnn_doctor.render.clean import one_line, visible

TEXT_MAX, BLOCK_MAX, PIECE_MAX = 2_000, 6_000, 12_000  # characters
_SPECIAL = re.compile(r"[\\`*{}\[\]<>#|~@&$!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.")
_LIST_START = re.compile(r"^(?=[-+=])|^(\d+)(?=[.)](?:\s|$))")
_ENTITY = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def text(value: str) -> str:
    """One line of prose that shows as it is. Words with inner "_", "-" or "." stay readable in the source, because
    people edit what they paste."""
    shown = _shorter(one_line(value), TEXT_MAX)
    return _LIST_START.sub(r"\1\\", _SPECIAL.sub(lambda m: _ENTITY.get(m[0], "\\" + m[0]), shown))


def code(value: str) -> str:
    """A code span, also inside a table, where a "|" would end the cell."""
    shown = _shorter(one_line(value), TEXT_MAX).replace("|", "¦")
    if not shown:
        return ""
    fence = _fence(shown, 1)
    edge = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{edge}{shown}{edge}{fence}"


def block(value: str, language: str = "") -> str:
    """A fenced block."""
    shown = _shorter(visible(value).strip("\n"), BLOCK_MAX)
    fence = _fence(shown, 3)
    return f"{fence}{language}\n{shown}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are markdown already. Bounded by `PIECE_MAX`."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join((*lines, *bounded([f"| {' | '.join(row)} |" for row in rows], "| … {} more rows |")))


def bullets(items: Iterable[str]) -> str:
    """A list; the items are markdown already. Bounded by `PIECE_MAX`."""
    return "\n".join(bounded([f"- {item}" for item in items], "- … {} more"))


def folded(title: str, body: str) -> str:
    """A part that is closed until the reader opens it."""
    return f"<details>\n<summary>{text(title)}</summary>\n\n{body}\n\n</details>"


def bounded(lines: Sequence[str], more: str) -> list[str]:
    """The first lines that fit into `PIECE_MAX`, and a word on the rest."""
    kept: list[str] = []
    used = 0
    for line in lines:
        used += len(line) + 1
        if used > PIECE_MAX:
            return [*kept, more.format(len(lines) - len(kept))]
        kept.append(line)
    return kept


def _fence(shown: str, least: int) -> str:
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    return "`" * max(least, longest + 1)


def _shorter(shown: str, most: int) -> str:
    return shown if len(shown) <= most else f"{shown[:most]} … ({len(shown) - most} more characters)"
