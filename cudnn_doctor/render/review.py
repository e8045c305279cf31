"""What redaction did, for the eyes of whoever will post the ticket: counts, the lines to look at, and all side by side.

Shown on the own terminal only: it holds what was replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from cudnn_doctor.redact.changes import Change
from cudnn_doctor.redact.redactor import Redaction
from cudnn_doctor.render.clean import one_line, pad, visible

_SHOWN = 6  # lines of each kind before the ticket is written; --review shows all
_LONGEST = 300  # characters of a line


def preview(redactions: Sequence[Redaction], changes: Sequence[Change], doubtful: Sequence[str]) -> str:
    """How many values of which kind were replaced, the changes that were least sure, and what was left though it looks
    like a secret."""
    kinds: dict[str, int] = {}
    for redaction in redactions:
        kinds[redaction.kind] = kinds.get(redaction.kind, 0) + 1
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) or "nothing"
    lines = [f"Replaced: {counts}."]
    unsure = [c for c in changes if not c.sure]
    lines += _some("Replaced by their look alone:", [f"{_cut(c.before)}  ->  {_cut(c.after)}" for c in unsure])
    lines += _some("Left as they are, though they look drawn at random:", [_cut(line) for line in doubtful])
    return "\n".join([*lines, "See all of it with --review before you post the ticket."]) + "\n"


def side_by_side(changes: Iterable[Change], width: int) -> str:
    """Every changed line, before on the left and after on the right."""
    column = max(20, (width - 3) // 2)
    lines = [f"{pad('before', column)} | after", f"{'-' * column}-+-{'-' * column}"]
    for change in changes:
        left, right = ([*_column(text, column)] for text in (change.before, change.after))
        lines += [f"{pad(a, column)} | {b}".rstrip() for a, b in zip_longest(left, right, fillvalue="")]
    return "\n".join(lines) + "\n"


def _column(text: str, width: int) -> Iterator[str]:
    for line in visible(text).splitlines() or [""]:
        yield from (line[i : i + width] for i in range(0, max(1, min(len(line), 20 * width)), width))


def _some(head: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"  ... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [head, *(f"  {line}" for line in lines[:_SHOWN]), *more]


def _cut(text: str) -> str:
    line = one_line(text).strip()
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
