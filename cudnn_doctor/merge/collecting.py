"""Takes reports one after the other and keeps of each only what the picture needs: memory grows with the number of
nodes and of different contents, not with the size of the reports."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import msgspec

from cudnn_doctor.merge.canonical import JOINT, Canonical
from cudnn_doctor.merge.nodeset import natural
from cudnn_doctor.merge.parsing import (
    SECTIONS,
    Content,
    Judge,
    NotAReportError,
    Parsed,
    full_finding,
    parse,
    without_numbers,
)
from cudnn_doctor.model.fleet import NodeState
from cudnn_doctor.model.report import Finding, Owner, Severity
from cudnn_doctor.model.verdict import RANK


class Arrival(NamedTuple):
    """What came for one node: a report's bytes, or why there is none."""

    node: str  # "" where only the report can say it
    source: str
    data: bytes = b""
    state: NodeState | None = None  # None: `data` is to be read
    reason: str = ""


class Row(NamedTuple):
    """What is kept of one arrival."""

    node: str
    state: NodeState
    reason: str
    source: str
    mark: bytes  # a digest of what came: an order that no order of arrival changes
    taken_at: str = ""
    tool: str = ""
    cards: frozenset[str] = frozenset()
    plain: tuple[int, ...] = ()  # for each section the key of its content
    nameless: tuple[int, ...] = ()  # the same without the node's own name; -1 where that is not in it
    problems: tuple[tuple[int, str, bool], ...] = ()  # key of the problem, subject, whether it counts for the verdict


class Problem(NamedTuple):
    """What is told once of a finding that many nodes have."""

    code: str
    severity: Severity
    owner: Owner
    title: str  # without numbers


class Collector:
    """Reports in, rows and contents out."""

    def __init__(self, judge: Judge) -> None:
        self.rows: list[Row] = []
        self.problems: dict[Problem, int] = {}
        self.examples: list[tuple[tuple[object, ...], Finding]] = []  # of each problem, that of the first node by name
        self._judge = judge
        self._raw: list[dict[bytes, int]] = [{} for _ in SECTIONS]  # digest of raw JSON -> key of its content
        self._keys: dict[bytes, int] = {}  # digest of a content -> its key
        self._packed: list[bytes] = []
        self.content = lru_cache(maxsize=256)(self._unpacked)

    def add(self, arrival: Arrival) -> Row:
        """Takes what came for one node."""
        row = self._row(arrival)
        self.rows.append(row)
        return row

    def expected(self, arrival: Arrival) -> tuple[int, ...]:
        """The keys of the contents of a report that is no node of the fleet.

        Raises:
            NotAReportError: it cannot be read.
        """
        plain, nameless = self._contents(parse(arrival.data, arrival.node, self._seen, self._judge).sections)
        return tuple(n if n >= 0 else p for p, n in zip(plain, nameless, strict=True))

    def _contents(self, sections: Sequence[Content]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The keys of a report's sections, and of those without the node's name."""
        plain = tuple(self._key(place, content) for place, content in enumerate(sections))
        return plain, tuple(-1 if c.nameless is None else self._store(c.nameless) for c in sections)

    def _row(self, arrival: Arrival) -> Row:
        if arrival.state is not None:
            return Row(arrival.node, arrival.state, arrival.reason, arrival.source, b"")
        try:
            parsed = parse(arrival.data, arrival.node, self._seen, self._judge)
        except NotAReportError as e:
            return Row(arrival.node, "unreadable", str(e), arrival.source, sha256(arrival.data).digest())
        plain, nameless = self._contents(parsed.sections)
        return Row(
            node=parsed.node,
            state=parsed.verdict,
            reason=parsed.reason,
            source=arrival.source,
            mark=parsed.mark,
            taken_at=parsed.taken_at,
            tool=parsed.version,
            cards=parsed.cards,
            plain=plain,
            nameless=nameless,
            problems=tuple(self._problems(parsed)),
        )

    def _problems(self, parsed: Parsed) -> Iterable[tuple[int, str, bool]]:
        for found in parsed.findings:
            if found.status != "problem":
                continue
            problem = Problem(found.code, found.severity, found.owner, without_numbers(found.title))
            key = self.problems.setdefault(problem, len(self.problems))
            order = (natural(parsed.node), parsed.taken_at, found.title, found.subject)
            if key == len(self.examples):
                self.examples.append((order, full_finding(parsed.report, found)))
            elif order < self.examples[key][0]:
                self.examples[key] = order, full_finding(parsed.report, found)
            yield key, found.subject, RANK[found.severity] >= RANK[parsed.fail_on]

    # ------------------------------------------------------------ contents, each kept once

    def _seen(self, place: int, digest: bytes) -> bool:
        return digest in self._raw[place]

    def _key(self, place: int, content: Content) -> int:
        if content.plain is None:
            return self._raw[place][content.digest]
        key = self._store(content.plain)
        if content.digest:
            self._raw[place][content.digest] = key
        return key

    def _store(self, canonical: Canonical) -> int:
        ordered = canonical._replace(leaves=dict(sorted(canonical.leaves.items(), key=_outer_first)))
        packed = msgspec.json.encode(ordered)
        key = self._keys.setdefault(sha256(packed).digest(), len(self._packed))
        if key == len(self._packed):
            self._packed.append(zlib.compress(packed, 1))
        return key

    def _unpacked(self, key: int) -> Canonical:
        return msgspec.json.decode(zlib.decompress(self._packed[key]), type=Canonical)


def _outer_first(item: tuple[str, str]) -> tuple[int, str]:
    """A driver's own version before that of a file of it."""
    return item[0].count(JOINT), item[0]
