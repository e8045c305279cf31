"""The document of `merge` and `fleet`: many nodes in one picture."""

from __future__ import annotations

from typing import Literal

from cudnn_doctor.model.base import Base
from cudnn_doctor.model.report import Fix, Owner, Severity, Tool, Verdict

NodeState = Literal[
    "ok",  # a report was read and its verdict is this
    "problem",
    "no-verdict",
    "unreadable",  # something came, and it is no report
    "failed",  # the tool ended on the node without a report
    "timed-out",
    "busy",  # the engine had no room for the task
    "not-reached",
]
ANSWERED: frozenset[NodeState] = frozenset({"ok", "problem"})  # counts towards the quorum: examined, with a verdict
REPORTED: frozenset[NodeState] = ANSWERED | {"no-verdict"}  # a report was read
FleetFailOn = Literal["problem", "difference"]


class Node(Base, frozen=True, kw_only=True):
    """One node of the fleet: what its report says, or why there is none."""

    name: str
    state: NodeState
    reason: str = ""  # the report's own sentence, or why there is no report
    taken_at: str = ""  # ISO 8601, UTC, by the node's clock
    tool: str = ""  # version of cudnn-doctor that wrote the report
    source: str = ""  # file, archive member or stream that it came from
    groups: tuple[int, ...] = ()  # for each of the fleet's sections the index of its group; -1: not compared


class Difference(Base, frozen=True, kw_only=True):
    """One value that is not the reference's. Without a reference `expected` is empty."""

    leaf: str  # "nvidia-cudnn-cu13: version"
    value: str
    expected: str = ""


class Group(Base, frozen=True, kw_only=True):
    """Nodes with the same values in one section."""

    nodes: str  # folded: "n[1-3,5]"
    count: int
    role: Literal["reference", "different", "one-of-several"]  # the last where no group is the majority
    differences: tuple[Difference, ...] = ()
    more: int = 0  # differences beyond those listed


class Section(Base, frozen=True, kw_only=True):
    """One part of the facts, compared over all nodes."""

    name: str  # "driver", "gpus", ...
    title: str
    state: Literal["alike", "different", "no-majority", "not-compared"]
    groups: tuple[Group, ...] = ()  # the reference first, then by size
    not_compared: str = ""  # nodes whose report holds nothing to compare here, folded


class SharedProblem(Base, frozen=True, kw_only=True):
    """A finding that is told once for all nodes that have it."""

    code: str
    title: str  # of the first node that has it
    severity: Severity
    owner: Owner
    nodes: str
    count: int
    decides: bool  # it makes the verdict of a node a problem
    subjects: tuple[str, ...]  # the first few, of all nodes
    detail: str = ""  # of the first node that has it
    fixes: tuple[Fix, ...] = ()


class Fleet(Base, frozen=True, kw_only=True):
    """All nodes of a run or of a heap of files: who is well, who differs, who did not answer."""

    schema: Literal["cudnn-doctor/fleet/1"] = "cudnn-doctor/fleet/1"
    tool: Tool
    verdict: Verdict
    exit_code: int
    reason: str
    quorum: int  # nodes with a verdict that are needed
    fail_on: FleetFailOn
    reference: str  # "majority", or the name of the report that is expected
    nodes: tuple[Node, ...]
    sections: tuple[Section, ...]
    problems: tuple[SharedProblem, ...]
    notes: tuple[str, ...] = ()
