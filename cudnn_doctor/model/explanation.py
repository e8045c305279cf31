"""What `explain` answers: the document of `explain --format json`, schema "cudnn-doctor/explanation/1"."""

from __future__ import annotations

from typing import Literal

from cudnn_doctor.model.base import Base

Verdict = Literal["cause-found", "undetermined", "no-problem", "not-cudnn"]
Confidence = Literal["confirmed", "likely", "possible"]
Role = Literal["primary", "consequence", "noise"]


class Evidence(Base, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the input, as it stood there without colours and log prefixes, and what it shows."""

    line: int  # 1-based number in its source; 0 for a fact of the machine
    text: str
    because: str = ""
    file: str = ""  # source of the line when there are several


class Fix(Base, frozen=True, kw_only=True, omit_defaults=True):
    text: str
    command: str = ""
    verify: str = ""


class Cause(Base, frozen=True, kw_only=True):
    """A possible root cause. `points` is the sum of the rules' weights that spoke for and against it."""

    cause: str  # id of knowledge/causes.yaml
    title: str
    confidence: Confidence
    role: Role  # of the cuDNN line: the fault itself, the messenger of an earlier one, or noise
    points: int
    evidence: tuple[Evidence, ...]
    fixes: tuple[Fix, ...]
    avoid: str


class Question(Base, frozen=True, kw_only=True):
    id: str
    text: str
    decides: tuple[str, ...]  # causes among the answer's that the reply tells apart


class Experiment(Base, frozen=True, kw_only=True, omit_defaults=True):
    """Something this person can do whose outcome tells causes apart."""

    id: str
    text: str
    command: str = ""
    outcome: str  # what each outcome means


class Facts(Base, frozen=True, kw_only=True, omit_defaults=True):
    """What the text itself states, in its own spelling; None where it says nothing."""

    framework: str | None = None
    framework_version: str | None = None
    cuda: str | None = None
    cudnn_loaded: str | None = None
    cudnn_built: str | None = None
    driver: str | None = None
    gpu: str | None = None
    os: str | None = None


class Explanation(Base, frozen=True, kw_only=True):
    """The one document of `explain`."""

    schema: Literal["cudnn-doctor/explanation/1"] = "cudnn-doctor/explanation/1"
    verdict: Verdict
    summary: str  # one or two sentences for a person
    causes: tuple[Cause, ...]  # best first
    questions: tuple[Question, ...]  # most decisive first
    facts: Facts
    experiments: tuple[Experiment, ...] = ()  # most decisive first
    doubts: tuple[str, ...] = ()  # facts that cannot be true, kept as stated
    notes: tuple[str, ...] = ()  # remarks on the input: cut, damaged, not read to the end
    sources: tuple[str, ...] = ()
