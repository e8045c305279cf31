"""What `reproduce` is asked and what it answers."""

from __future__ import annotations

from typing import Literal

from cudnn_doctor.model.base import NOT_EXAMINED, Base, Fact
from cudnn_doctor.model.facts import GpuProcess
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.report import Finding, Tool, Verdict


class Request(Base, frozen=True, kw_only=True):
    """What the user asked for."""

    states: tuple[str, ...] = ()  # ids; empty for the default set
    faults: bool = False
    memory: bool = False
    yes: bool = False  # fill memory although others use the GPU
    repeat: int = 1
    timeout: float = 60.0  # seconds for all of it


class Copy(Base, frozen=True, kw_only=True):
    """A cuDNN to run the states under."""

    path: str
    major: int
    version: str = ""  # "" when nobody knows before it runs
    preload: tuple[str, ...] = ()  # what a framework would have loaded before it
    other: str = ""  # folder of another copy of the same major and another version
    cublas_in_cache: str = ""  # a cuBLAS that the loader finds by itself whatever the environment says


class Device(Base, frozen=True, kw_only=True):
    """A device by CUDA ordinal, and who uses it."""

    ordinal: int
    name: str = ""
    users: Fact[tuple[GpuProcess, ...]] = NOT_EXAMINED
    memory_free: Fact[int] = NOT_EXAMINED
    memory_used: Fact[int] = NOT_EXAMINED


RowVerdict = Literal["as-expected", "differs", "unknown-version", "not-reached"]


class Row(Base, frozen=True, kw_only=True):
    """One answer of a state under one copy on one device, over all repetitions."""

    scenario: str
    label: str
    device: int
    cudnn: str
    cudnn_version: str
    outcome: str  # the most frequent: "2007", "SIGSEGV", "8.8"; "" when never reached
    name: str = ""  # of a status: "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH"
    category: str = ""  # cuDNN 9's category: "bad parameter"
    fate: str = ""  # how the process ended: "ok", "SIGSEGV", "timeout", ...
    expected: str = ""  # "2007", "7 or SIGSEGV", "20 to 1000"; "" when unknown
    basis: str = ""  # where the expectation comes from
    verdict: RowVerdict
    seen: dict[str, int]  # every outcome and how often it came
    call: str = ""  # "cudnnSetStream"
    unmade: str = ""  # why the state could not be made here


class Conclusion(Base, frozen=True, kw_only=True):
    """What the states say of one copy on one device: ids of states."""

    device: int
    device_name: str
    cudnn: str
    cudnn_version: str
    status: int  # what this major calls a stream mismatch: 7 or 2007
    control: bool  # whether the valid stream worked; if not, nothing below means anything
    can: tuple[str, ...]  # gave the status
    ends: tuple[str, ...]  # ended the process instead
    other: tuple[str, ...]  # failed with another status of cudnnSetStream
    cannot: tuple[str, ...]
    unmade: tuple[str, ...]  # "id: why": the driver or library refused a call that leads to the state
    not_tried: tuple[str, ...]  # "id: why"
    text: str  # the same in plain words: sentences and lists, a line each, those of a list begin with "- "


class Agreement(Base, frozen=True, kw_only=True):
    """How a state fits a log: whether it shows here what the log shows; None where it did not run, or where the log
    names no status."""

    cause: str
    scenario: str
    agrees: bool | None
    why: str


class Reproduction(Base, frozen=True, kw_only=True):
    """The one document of `reproduce`."""

    schema: Literal["cudnn-doctor/reproduction/1"] = "cudnn-doctor/reproduction/1"
    tool: Tool
    verdict: Verdict
    exit_code: int
    reason: str
    rows: tuple[Row, ...]
    conclusions: tuple[Conclusion, ...]
    findings: tuple[Finding, ...]
    scenarios: tuple[ScenarioResult, ...]
    agreements: tuple[Agreement, ...] = ()
    notes: tuple[str, ...] = ()
