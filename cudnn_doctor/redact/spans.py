"""What a detector finds: a place in a text, what kind of thing stands there and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

Kind = Literal[
    "user", "home", "host", "email", "address", "mac", "uuid", "serial", "account", "secret", "environment"
]  # fmt: skip
# Of two that overlap the earlier wins: a secret must not be torn, and a name inside it needs no place of its own.
ORDER: tuple[Kind, ...] = (
    "secret", "environment", "home", "email", "uuid", "mac", "address", "serial", "account", "host", "user",
)  # fmt: skip
_RANK = {kind: i for i, kind in enumerate(ORDER)}


class Span(NamedTuple):
    """From `start` to `end`. `sure` is False where only the look of the value speaks for it; `learn` says that the
    same name is meant wherever else it stands."""

    start: int
    end: int
    kind: Kind
    sure: bool = True
    learn: bool = False


def apart(spans: Iterable[Span]) -> list[Span]:
    """The spans without overlaps, in the order of the text. A mail address that a secret cuts (`user:secret@host`) is
    none; every other one that is cut keeps its rest."""
    import bisect

    starts: list[int] = []
    taken: list[Span] = []
    for span in sorted(spans, key=lambda s: (_RANK[s.kind], s.start, -s.end)):
        start, end = span.start, span.end
        at = bisect.bisect_right(starts, start)
        if at and taken[at - 1].end > start:
            start = taken[at - 1].end
        pieces = []
        while at < len(taken) and taken[at].start < end:
            pieces.append((start, taken[at].start))
            start = max(start, taken[at].end)
            at += 1
        pieces.append((start, end))
        if span.kind == "email" and pieces != [(span.start, span.end)]:
            continue
        for a, b in pieces:
            if a < b:
                where = bisect.bisect_right(starts, a)
                starts.insert(where, a)
                taken.insert(where, span._replace(start=a, end=b))
    return taken
