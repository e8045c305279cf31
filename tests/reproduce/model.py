"""A machine of the stub libraries: devices, copies, and the states run on them."""

from __future__ import annotations

import os
from typing import Any

from cudnn_doctor.model.base import known
from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.model.reproduction import Copy, Device, Request
from cudnn_doctor.reproduce.run import run_states
from tests.native import build

NOBODY = known((), "test")
NO_MPS = known(False, "test")


def device(ordinal: int = 0, **changes: Any) -> Device:
    fields: dict[str, Any] = {"name": "stub", "users": NOBODY, "memory_used": known(0, "test"), **changes}
    return Device(ordinal=ordinal, **fields)


def copy(major: int = 9, **changes: Any) -> Copy:
    fields: dict[str, Any] = {"version": {8: "8.9.7", 9: "9.19.0"}[major], **changes}
    return Copy(path=str(build.cudnn(major)), major=major, **fields)


def run(*states: str, major: int = 9, devices: int = 1, **request: Any) -> tuple[ScenarioResult, ...]:
    """The states by the stub libraries; LD_LIBRARY_PATH must lead to the stub libcuda."""
    wanted = Request(states=states, **request)
    return run_states(wanted, [copy(major)], [device(i) for i in range(devices)], NO_MPS, os.environ)


def result(scenario: str, *steps: tuple[str, int | str], **changes: Any) -> ScenarioResult:
    """A result with labelled steps: a status of cudnnSetStream, "cuInit 100" for another call's, "=1" for a note."""
    made = []
    for label, answer in steps:
        if isinstance(answer, str) and answer.startswith("="):
            made.append(Step(call="note", label=label, value=int(answer[1:])))
            continue
        call, _, status = answer.rpartition(" ") if isinstance(answer, str) else ("cudnnSetStream", "", str(answer))
        made.append(Step(call=call, label=label, status=int(status)))
    fields: dict[str, Any] = {
        "device": 0,
        "cudnn": "/x/libcudnn.so.9",
        "cudnn_version": "9.19.0",
        "fate": Termination(kind="completed"),
        "ms": 1.0,
        **changes,
    }
    return ScenarioResult(scenario=scenario, steps=tuple(made), **fields)
