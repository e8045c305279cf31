"""What was replaced in a text: placeholders that stand already, and the lines that changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cudnn_doctor.redact.names import entropy, looks_secret
from cudnn_doctor.redact.spans import Span

PLACEHOLDER = re.compile(r"<(?:secret|removed|(?:user|host|email|address|mac|serial|account)-\d{1,9})>")


class Change(NamedTuple):
    """A line or more that was changed; `sure` is False where only the look of a value spoke for it."""

    before: str
    after: str
    sure: bool


class Written(NamedTuple):
    """One text with what was replaced in it: start, end, replacement, whether that was sure."""

    text: str
    places: tuple[tuple[int, int, str, bool], ...]


def outside(text: str, spans: Sequence[Span]) -> Sequence[Span]:
    """The spans without those that are a placeholder, or begin or end in one: redacting twice is redacting once."""
    if "<" not in text or not (placed := [m.span() for m in PLACEHOLDER.finditer(text)]):
        return spans
    kept = []
    for span in spans:
        torn = [(a, b) for a, b in placed if a < span.end and span.start < b and not (span.start < a and b < span.end)]
        start = max((b for a, b in torn if a <= span.start), default=span.start)
        end = min((a for a, b in torn if b >= span.end and a >= start), default=span.end)
        if start < end:
            kept.append(span._replace(start=start, end=end))
    return kept


def changed_lines(text: str, places: tuple[tuple[int, int, str, bool], ...]) -> Iterator[Change]:
    """The changed lines of a text, those that a place joins as one."""
    at = 0
    while at < len(places):
        start = text.rfind("\n", 0, places[at][0]) + 1
        after, done, sure = "", start, True
        while True:
            first, last, new, known = places[at]
            after += text[done:first] + new
            done, sure = last, sure and known
            end = text.find("\n", last)
            end = len(text) if end < 0 else end
            at += 1
            if at == len(places) or places[at][0] > end:
                break
        yield Change(text[start:end], after + text[done:end], sure)


_RUN = re.compile(r"[A-Za-z0-9+/=_-]{24,400}")
_KNOWN_RUN = re.compile(r"[0-9a-f]{24,}|[A-Z_0-9]+|[a-z_0-9/.-]+|[\w/.-]*/[\w/.-]*")


def doubtful(text: str) -> Iterator[str]:
    """Lines of a redacted text in which something still looks drawn at random: no hash, path or name of a function."""
    for line in text.splitlines():
        runs = (run[0] for run in _RUN.finditer(line) if not _KNOWN_RUN.fullmatch(run[0]))
        if any(looks_secret(run, 24) and entropy(run) > 4.0 and not run.startswith("_Z") for run in runs):
            yield line
