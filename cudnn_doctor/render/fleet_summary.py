"""What every form of a fleet's picture says: how a node stands, nodes that stand alike in one line, the sections that
differ. Facts only; each form cleans the texts in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cudnn_doctor.merge.grouping import NOTHING
from cudnn_doctor.merge.nodeset import fold
from cudnn_doctor.model.fleet import Difference, Fleet, Group, Node, NodeState, Section, SharedProblem
from cudnn_doctor.render.summary import State

MOST_GROUPS = 12  # groups of one section that people are shown
MOST_DIFFERENCES = 6  # differences of one group that people are shown
HOW: dict[NodeState, tuple[State, str]] = {
    "ok": ("ok", "well"),
    "problem": ("error", "has a problem"),
    "no-verdict": ("unknown", "no verdict"),
    "unreadable": ("crashed", "unreadable"),
    "failed": ("crashed", "failed"),
    "timed-out": ("unknown", "timed out"),
    "busy": ("unknown", "busy"),
    "not-reached": ("unknown", "not reached"),
}


class Standing(NamedTuple):
    """How one node stands."""

    state: State
    words: str  # "well, differs in Driver"
    reason: str


class Lot(NamedTuple):
    """Nodes that stand alike."""

    nodes: str  # folded
    number: int
    standing: Standing


def standing(fleet: Fleet, node: Node) -> Standing:
    """How a node stands: its verdict, or why there is none, and the sections in which it is not as the reference."""
    state, words = HOW[node.state]
    apart = [s.title for s, g in zip(fleet.sections, node.groups, strict=False) if _differs(s, g)]
    if apart:
        words += f", differs in {', '.join(apart)}"
        state = "warning" if state == "ok" else state
    return Standing(state, words, "" if node.reason == "examined, nothing wrong" else node.reason)


def _differs(section: Section, group: int) -> bool:
    return group >= 0 and section.groups[group].role == "different"


def lots(fleet: Fleet) -> list[Lot]:
    """Nodes that stand alike told together: the worst first, then the larger lot."""
    found: dict[Standing, list[str]] = {}
    for node in fleet.nodes:
        found.setdefault(standing(fleet, node), []).append(node.name)
    order: tuple[State, ...] = ("error", "crashed", "unknown", "warning", "ok")
    ordered = sorted(found.items(), key=lambda item: (order.index(item[0].state), -len(item[1])))
    return [Lot(fold(names), len(names), how) for how, names in ordered]


def apart(fleet: Fleet) -> list[Section]:
    """Sections that are not the same everywhere."""
    return [s for s in fleet.sections if s.state in ("different", "no-majority")]


def headline(section: Section) -> str:
    """One sentence on a section that is not the same everywhere."""
    total = sum(g.count for g in section.groups)
    if section.state == "no-majority":
        return f"{section.title}: {len(section.groups)} groups, none of them more than half of {total} nodes"
    alike = sum(g.count for g in section.groups if g.role == "reference")
    return f"{section.title}: {total - alike} of {total} nodes differ{'s' if total - alike == 1 else ''}"


def shown(section: Section) -> Sequence[Group]:
    """The groups that people are shown: those that are not the reference, the first few."""
    return [g for g in section.groups if g.role != "reference"][:MOST_GROUPS]


def hidden(section: Section) -> str:
    """What `shown` leaves out, in words; "" for nothing."""
    left = [g for g in section.groups if g.role != "reference"][MOST_GROUPS:]
    return f"{len(left)} more groups with {sum(g.count for g in left)} nodes: the JSON form lists them" if left else ""


def differences(group: Group) -> Iterable[tuple[str, str]]:
    """Leaf and text of the first differences, and a word on the rest."""
    for d in group.differences[:MOST_DIFFERENCES]:
        yield d.leaf, in_words(d)
    more = len(group.differences) - MOST_DIFFERENCES + group.more
    if more > 0:
        yield (
            f"{more} more",
            "the JSON form lists them" if not group.more else f"the JSON form lists the first {len(group.differences)}",
        )


def in_words(d: Difference) -> str:
    """What is here and what is elsewhere."""
    if d.expected in ("", NOTHING):
        return f"{d.value} (only here)" if d.expected else d.value
    return f"not there, elsewhere {d.expected}" if d.value == NOTHING else f"{d.value}, not {d.expected}"


def who(group: Group) -> str:
    return f"{group.nodes} ({group.count} node{'s' if group.count > 1 else ''})"


def the_rest(fleet: Fleet) -> str:
    """The sections that are the same on all nodes, and those that were not compared."""
    alike = [s.title for s in fleet.sections if s.state == "alike"]
    blind = [s.title for s in fleet.sections if s.state == "not-compared"]
    parts = [f"Alike: {', '.join(alike)}." if alike else "", f"Not compared: {', '.join(blind)}." if blind else ""]
    return " ".join(p for p in parts if p)


def problem_heading(problem: SharedProblem) -> str:
    """A shared problem in one line, without its nodes. The subject stands there where all nodes have the same."""
    subject = problem.subjects[0] if len(problem.subjects) == 1 else ""
    told = not subject or subject in problem.title
    return f"{problem.code} {problem.title}" if told else f"{problem.code} {subject}: {problem.title}"


def on(problem: SharedProblem, fleet: Fleet) -> str:
    """Where a problem is."""
    return f"on {problem.nodes} ({problem.count} of {len(fleet.nodes)} nodes)"


def counts(fleet: Fleet) -> dict[NodeState, int]:
    """How many nodes stand how, every state named."""
    found: dict[NodeState, int] = dict.fromkeys(HOW, 0)
    for node in fleet.nodes:
        found[node.state] += 1
    return found


def compared_with(fleet: Fleet) -> str:
    return "the majority" if fleet.reference == "majority" else fleet.reference
