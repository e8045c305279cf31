"""Judgement: what rules find, and the documents of `check` and `snapshot`."""

from __future__ import annotations

from typing import Any, Literal

from cudnn_doctor import __version__
from cudnn_doctor.model.base import Base
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.live import Change, ScenarioResult, Trial

Status = Literal["ok", "problem", "unknown", "skipped", "crashed"]
Severity = Literal["error", "warning", "note"]
Owner = Literal["node", "environment", "program"]


class Evidence(Base, frozen=True, kw_only=True):
    """Why a finding is believed: a JSON pointer into the report, the value there, and where it was read."""

    pointer: str
    value: str
    source: str


class Proof(Base, frozen=True, kw_only=True):
    """Whether a fix was tried in a child, and what came of it."""

    outcome: Literal["proved", "partly", "no-effect", "not-tried"]
    text: str


class Fix(Base, frozen=True, kw_only=True):
    text: str
    command: str = ""
    verify: str = ""
    change: Change | None = None  # what it changes, as data; None where that is not one thing that can be named
    proof: Proof | None = None


class Finding(Base, frozen=True, kw_only=True):
    code: str  # "CD101"
    status: Status
    severity: Severity
    owner: Owner
    subject: str  # what it is about: "GPU 0", "torch 2.11.0", a path
    title: str
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()
    causes: tuple[str, ...] = ()
    consequence_of: str = ""  # JSON pointer of the finding that brings this one about: "/findings/7"


Verdict = Literal["ok", "problem", "no-verdict"]


class Tool(Base, frozen=True, kw_only=True):
    name: str = "cudnn-doctor"
    version: str = ""
    matrix_checked_on: str = ""


class Examination(Base, frozen=True, kw_only=True):
    """What there is to judge, live or replayed."""

    snapshot: Snapshot
    scenarios: tuple[ScenarioResult, ...] = ()
    trials: tuple[Trial, ...] = ()
    replayed: str = ""  # name of the recording


class SnapshotFile(Base, frozen=True, kw_only=True):
    """What `cudnn-doctor snapshot` writes: facts and live results without judgement."""

    schema: Literal["cudnn-doctor/snapshot/1"] = "cudnn-doctor/snapshot/1"
    tool: Tool
    snapshot: Snapshot
    scenarios: tuple[ScenarioResult, ...] = ()
    trials: tuple[Trial, ...] = ()


class Report(Base, frozen=True, kw_only=True):
    """The one document of `check` and its relatives."""

    schema: Literal["cudnn-doctor/report/1"] = "cudnn-doctor/report/1"
    tool: Tool
    verdict: Verdict
    exit_code: int
    reason: str  # one sentence: why this verdict
    findings: tuple[Finding, ...]
    scenarios: tuple[ScenarioResult, ...]
    snapshot: Snapshot
    trials: tuple[Trial, ...] = ()  # the live check with one thing changed, after it failed
    notes: tuple[str, ...] = ()  # remarks on the run itself: data older than 180 days, a replayed snapshot
    fail_on: Severity = "error"  # least severity that counts for the verdict
    node: str = ""  # its name in a fleet, where it was given
    engines: dict[str, Any] | None = None  # the document of `engines`, where it was added
    reproduction: dict[str, Any] | None = None  # the document of `reproduce`; its scenarios are among those above


def tool(matrix_checked_on: str = "") -> Tool:
    """Who wrote a document."""
    return Tool(version=__version__, matrix_checked_on=matrix_checked_on)
