"""Draws the picture from what was collected: nodes, groups, shared problems, verdict and exit code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cudnn_doctor.merge.canonical import Canonical
from cudnn_doctor.merge.collecting import Collector, Row
from cudnn_doctor.merge.grouping import Place, compare
from cudnn_doctor.merge.nodeset import fold, natural
from cudnn_doctor.merge.parsing import SECTIONS
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.fleet import ANSWERED, REPORTED, Fleet, FleetFailOn, Node, Section, SharedProblem
from cudnn_doctor.model.report import Verdict, tool
from cudnn_doctor.model.verdict import NO_VERDICT, OK, PROBLEM, RANK

MOST_SUBJECTS = 5
NO_REPORT = "no report came for it"


class Wanted(NamedTuple):
    """What the user asked of the picture."""

    nodes: tuple[str, ...] = ()  # expected; a node without a report becomes a row
    quorum: str = ""  # "90%", "7", or "" for all
    fail_on: FleetFailOn = "problem"
    reference: str = "majority"
    expected: tuple[int, ...] | None = None  # for each section the key of the content that is expected
    apart: float = 86_400.0  # seconds between a report and the middle one from which a clock is doubted


def draw(collector: Collector, wanted: Wanted) -> Fleet:
    """The picture; the order in which reports came changes nothing.

    Raises:
        UsageError: there is nothing to show, or `quorum` is no number of nodes.
    """
    rows, notes = _each_once(_named(collector.rows))
    there = {row.node for row in rows}
    rows += [Row(n, "not-reached", NO_REPORT, "", b"") for n in wanted.nodes if n not in there]
    rows.sort(key=lambda r: natural(r.node))
    if not rows:
        raise UsageError("no report was given and no node is expected: nothing to show.")
    quorum = _quorum(wanted.quorum, len(rows))
    reported = [r for r in rows if r.state in REPORTED]
    sections, indexes = _sections(collector, reported, wanted.expected)
    nodes = tuple(
        Node(
            name=r.node, state=r.state, reason=r.reason, taken_at=r.taken_at, tool=r.tool, source=r.source,
            groups=tuple(i.get(r.node, -1) for i in indexes) if r.state in REPORTED else (),
        )
        for r in rows
    )  # fmt: skip
    verdict, code, reason = _verdict(nodes, sections, quorum, wanted)
    return Fleet(
        tool=tool(), verdict=verdict, exit_code=code, reason=reason, quorum=quorum, fail_on=wanted.fail_on,
        reference=wanted.reference, nodes=nodes, sections=sections,
        problems=tuple(_problems(collector, reported)),
        notes=(*notes, *_remarks(rows, reported, wanted)),
    )  # fmt: skip


# ---------------------------------------------------------------- one row a node


def _named(rows: Sequence[Row]) -> list[Row]:
    """Reports that name no node get numbers, in an order that does not depend on when they came."""
    nameless = sorted((r for r in rows if not r.node), key=_order)
    return [*(r for r in rows if r.node), *(r._replace(node=f"unnamed-{i}") for i, r in enumerate(nameless, 1))]


def _order(row: Row) -> tuple[str, str, bytes]:
    return row.taken_at, row.source, row.mark


def _each_once(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Rows with names of their own: of several reports of one machine the newest counts, machines that share a name
    (none of their GPUs is the same: ranks with a part of the GPUs, or two boxes called alike) are told apart."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.node, []).append(row)
    kept: list[Row] = []
    notes: list[str] = []
    for name in sorted(by_name, key=natural):
        machines = _machines(by_name[name])
        if len(by_name[name]) > len(machines):
            older = len(by_name[name]) - len(machines)
            notes.append(f"{name}: {len(by_name[name])} reports of it came; {older} older or unreadable left out.")
        if len(machines) > 1:
            notes.append(
                f"{name}: {len(machines)} reports bear this name and share no GPU; they are shown as "
                f"{fold(_twin(name, i) for i in range(1, len(machines) + 1))}."
            )
        kept += [r._replace(node=_twin(name, i) if len(machines) > 1 else name) for i, r in enumerate(machines, 1)]
    return kept, notes


def _twin(name: str, number: int) -> str:
    return f"{name}~{number}"


def _machines(rows: Sequence[Row]) -> list[Row]:
    """The newest row of each machine among rows of one name."""
    if len(rows) == 1:
        return list(rows)
    with_report = [r for r in rows if r.state in REPORTED] or list(rows)
    machines: list[Row] = []
    for row in sorted(with_report, key=_order, reverse=True):
        if not any(not row.cards or not m.cards or row.cards & m.cards for m in machines):
            machines.append(row)
    return sorted(machines, key=lambda r: (sorted(r.cards), *_order(r)))


# ---------------------------------------------------------------- groups and problems


def _sections(
    collector: Collector, rows: Sequence[Row], expected: tuple[int, ...] | None
) -> tuple[tuple[Section, ...], list[dict[str, int]]]:
    sections, indexes = [], []
    for at, (name, title) in enumerate(SECTIONS):
        places = [Place(r.node, r.plain[at], r.nameless[at]) for r in rows]
        reference: Canonical | None = None if expected is None else collector.content(expected[at])
        if reference is not None and not reference.compared:
            reference = None
        section, index = compare(name, title, places, collector.content, reference)
        sections.append(section)
        indexes.append(index)
    return tuple(sections), indexes


def _problems(collector: Collector, rows: Sequence[Row]) -> Iterable[SharedProblem]:
    """Each problem once, those that decide first, then by severity and by how many nodes have it."""
    nodes: dict[int, list[str]] = {}
    subjects: dict[int, set[str]] = {}
    decides: set[int] = set()
    for row in rows:
        for key, subject, counts in row.problems:
            if row.node not in nodes.setdefault(key, [])[-1:]:
                nodes[key].append(row.node)
            subjects.setdefault(key, set()).add(subject)
            if counts:
                decides.add(key)
    made = []
    for problem, key in collector.problems.items():
        if key not in nodes:
            continue
        example = collector.examples[key][1]
        made.append(
            SharedProblem(
                code=problem.code,
                title=example.title,
                severity=problem.severity,
                owner=problem.owner,
                nodes=fold(nodes[key]),
                count=len(nodes[key]),
                decides=key in decides,
                subjects=tuple(sorted(subjects[key], key=natural)[:MOST_SUBJECTS]),
                detail=example.detail,
                fixes=example.fixes,
            )
        )
    return sorted(made, key=lambda p: (not p.decides, -RANK[p.severity], -p.count, p.code, p.title, p.owner))


# ---------------------------------------------------------------- verdict


def _quorum(text: str, nodes: int) -> int:
    """How many nodes must have a verdict."""
    number, percent = text.removesuffix("%"), text.endswith("%")
    if not text:
        return nodes
    if not number.isdecimal() or (percent and int(number) > 100):
        raise UsageError(f"--quorum {text}: it takes a number of nodes, such as 7, or a part of them, such as 90%.")
    return math.ceil(nodes * int(number) / 100) if percent else int(number)


def _verdict(
    nodes: Sequence[Node], sections: Sequence[Section], quorum: int, wanted: Wanted
) -> tuple[Verdict, int, str]:
    """A bad node beats a missing one, as a problem beats a missing answer in `check`; but where the user said how many
    nodes make a picture, fewer make none."""
    answered = sum(n.state in ANSWERED for n in nodes)
    bad = [n.name for n in nodes if n.state == "problem"]
    silent = [n for n in nodes if n.state not in ANSWERED]
    different = different_nodes(nodes, sections)
    split = [s.title for s in sections if s.state == "no-majority"]
    differ = f"{_count(different, nodes)} differ{'s' if len(different) == 1 else ''}: {fold(different)}"
    apart = differ if different else f"no majority in: {', '.join(split)}"
    missing = f"{_tally(silent)}; {answered} of {len(nodes)} answered, {quorum} are needed"
    if wanted.quorum and answered < quorum:
        return "no-verdict", NO_VERDICT, missing
    if bad:
        have = "has" if len(bad) == 1 else "have"
        also = f"; {_tally(silent)}" if silent else ""
        return "problem", PROBLEM, f"{_count(bad, nodes)} {have} a problem: {fold(bad)}{also}"
    if wanted.fail_on == "difference" and (different or split):
        return "problem", PROBLEM, apart
    if answered < quorum:
        return "no-verdict", NO_VERDICT, missing
    well = f"{answered} of {len(nodes)} nodes answered and are well" if silent else f"all {len(nodes)} nodes are well"
    return "ok", OK, f"{well}; {apart}" if different or split else f"{well} and alike"


def different_nodes(nodes: Iterable[Node], sections: Sequence[Section]) -> list[str]:
    """Nodes that are not as the reference in a section that has one."""
    outside = [{i for i, g in enumerate(s.groups) if g.role == "different"} for s in sections]
    return [n.name for n in nodes if any(g in out for g, out in zip(n.groups, outside, strict=False))]


def _count(some: Sequence[str], of: Sequence[Node]) -> str:
    return f"{len(some)} of {len(of)} node{'s' if len(of) > 1 else ''}"


def _tally(silent: Sequence[Node]) -> str:
    """ "not reached: n7; timed out: n4"."""
    by_state: dict[str, list[str]] = {}
    for node in silent:
        by_state.setdefault(node.state.replace("-", " ").replace("no verdict", "without verdict"), []).append(node.name)
    return "; ".join(f"{state}: {fold(names)}" for state, names in sorted(by_state.items()))


# ---------------------------------------------------------------- remarks on the run


def _remarks(rows: Sequence[Row], reported: Sequence[Row], wanted: Wanted) -> Iterable[str]:
    versions: dict[str, list[str]] = {}
    for row in reported:
        versions.setdefault(row.tool or "unknown", []).append(row.node)
    if len(versions) > 1:
        told = "; ".join(f"{v}: {fold(nodes)}" for v, nodes in sorted(versions.items()))
        yield (
            f"Several versions of cudnn-doctor wrote these reports ({told}). "
            "What an older one does not look at counts as alike."
        )
    expected = set(wanted.nodes)
    others = [r.node for r in rows if expected and r.node not in expected]
    if others:
        yield f"Not among the nodes that were expected: {fold(others)}."
    yield from _clocks(reported, wanted.apart)


def _clocks(rows: Sequence[Row], apart: float) -> Iterable[str]:
    """Nodes whose report is far from the middle one in time: an old report, or a clock that is wrong."""
    times = {r.node: t for r in rows if (t := _time(r.taken_at)) is not None}
    if not times:
        return
    middle = sorted(times.values())[len(times) // 2]
    far = [node for node, t in times.items() if abs(t - middle) > timedelta(seconds=apart)]
    if far:
        yield (
            f"Taken more than {_span(apart)} from the others (the middle one at {middle:%Y-%m-%d %H:%M} UTC): "
            f"{fold(far)}; an old report, or a clock that is wrong."
        )


def _span(seconds: float) -> str:
    return f"{seconds / 3600:.0f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return time if time.tzinfo else None
