"""What child processes did: native calls, how the process ended, one result a state, device and copy of cuDNN."""

from __future__ import annotations

from typing import Any, Literal

from cudnn_doctor.model.base import Base


class Step(Base, frozen=True, kw_only=True):
    """One native call that a child made, or a value that it noted."""

    call: str  # "cudnnSetStream", or a note's name
    status: int | None = None  # raw status; None for a note
    name: str = ""  # "CUDNN_STATUS_MAPPING_ERROR", "CUDA_SUCCESS"; cuDNN names are by (major, code)
    detail: str = ""  # cudnnGetLastErrorString, or what was expected
    label: str = ""  # tells like calls of one scenario apart: "its context current"
    value: Any = None  # a note's value: number, string, list
    ms: float | None = None


class Termination(Base, frozen=True, kw_only=True):
    """How a child process ended."""

    kind: Literal["completed", "signal", "exit", "timeout", "not-started"]
    signal: str = ""  # "SIGABRT"
    exit_code: int | None = None
    last_step: str = ""  # the call that had begun and not returned
    last_label: str = ""  # its label, where it had one
    stderr: str = ""  # what the libraries printed, capped and cleaned
    error: str = ""  # the child's own exception in one line


class Change(Base, frozen=True, kw_only=True):
    """What a remedy changes. A variable, a limit, or the copy opened can be tried in a child; packages cannot."""

    kind: Literal["variable", "limit", "copy", "packages"]
    name: str = ""  # the variable, or the limit: "address_space", "open_files", "stack"
    value: str | None = None  # None: the variable unset, the limit lifted; of "copy" the path of its libcudnn


class Trial(Base, frozen=True, kw_only=True):
    """The live check once more with one thing changed, or several that each mend a part."""

    change: Change
    works: bool | None  # every live check went well; None where it was not tried
    outcome: str  # how it went, or why it was not tried
    cleared: tuple[str, ...] = ()  # findings that are gone then: code, a space, subject
    ms: float = 0.0
    also: tuple[Change, ...] = ()  # changed together with it


class ScenarioResult(Base, frozen=True, kw_only=True):
    """What one state did on one device under one cuDNN copy."""

    scenario: str  # "live-check", "other-context-same-device", ...
    device: int | None
    cudnn: str  # path of libcudnn that was opened
    cudnn_version: str  # "9.19.0"; "" when it never answered
    fate: Termination
    steps: tuple[Step, ...]
    ms: float
    verdict: str = ""  # reproduce: "as-expected", "differs", "unknown-version"; live-check leaves it empty
    expected: str = ""
    skipped: str = ""  # why it was not run; then fate is "not-started"
