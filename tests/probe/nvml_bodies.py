"""What children of the NVML session's tests run: a fake NVML that answers, crashes or hangs."""

from __future__ import annotations

import os
import time
from typing import Any

from cudnn_doctor.live.wire import Wire
from cudnn_doctor.probe.nvml import Nvml
from cudnn_doctor.probe.nvml_session import tell
from tests.probe.machine import FakeNvml, error, h200


def _ask(wire: Wire, **changes: Any) -> None:
    wire.send(next="nvmlInit")
    tell(wire, Nvml(FakeNvml(h200(**changes)), "/lib/libnvidia-ml.so.1"))


def healthy(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire)


def no_devices(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire, nvmlDeviceGetCount=0)


def mismatch(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire, nvmlInit=error(18), nvmlSystemGetNVMLVersion="13.580.95.05")


def mismatch_without_version(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire, nvmlInit=error(18), nvmlSystemGetNVMLVersion=error(1))


def aborts(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire, nvmlInit=os.abort)


def hangs(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire, nvmlInit=lambda: time.sleep(60))


def aborts_at_the_second(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire, nvmlDeviceGetCount=3, nvmlDeviceGetHandleByIndex=lambda index: os.abort() if index == 1 else index)


def hangs_at_the_second(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire, nvmlDeviceGetCount=3, nvmlDeviceGetHandleByIndex=lambda index: time.sleep(60) if index == 1 else index)


def raises(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    raise ImportError("no pynvml here")


def nonsense(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    wire.send(did="nvmlInit", value={"kind": "known", "value": 3})


def which_library(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    _ask(wire, nvmlSystemGetDriverVersion=str(args["library"]))
