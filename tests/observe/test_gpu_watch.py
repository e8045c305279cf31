"""What the watching process makes of NVML's answers. NVML itself is played; its answers are those of an H200 (driver
580.159.04, recorded in tests/recordings/run)."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

import pytest

from cudnn_doctor.observe import gpu_watch
from cudnn_doctor.observe.gpu_watch import GpuWatch, _sample, _Work
from cudnn_doctor.observe.watch import _gpus, _users


class NVMLError(Exception):
    pass


class NotFoundError(NVMLError):
    pass


class Nvml:
    """One GPU with two processes; the second works."""

    NVMLError, NVMLError_NotFound = NVMLError, NotFoundError

    def __init__(self, work: list[tuple[int, int, int]] | Exception) -> None:
        self.work, self.asked = work, []

    asked: list[int]

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> Any:  # noqa: N802  NVML's own name
        return SimpleNamespace(gpu=37)

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Any:  # noqa: N802
        return SimpleNamespace(used=5 << 30, total=140 << 30)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> Any:  # noqa: N802
        return [SimpleNamespace(pid=10, usedGpuMemory=1 << 30), SimpleNamespace(pid=11, usedGpuMemory=None)]

    def nvmlDeviceGetProcessUtilization(self, handle: object, since: int) -> Any:  # noqa: N802
        self.asked.append(since)
        if isinstance(self.work, Exception):
            raise self.work
        return [SimpleNamespace(pid=p, smUtil=u, timeStamp=t) for p, u, t in self.work]


def sample(nvml: Nvml, work: _Work) -> list[Any]:
    return _sample(nvml, None, work)


def test_whose_work_it_is() -> None:
    nvml = Nvml([(11, 36, 5000), (0, 9, 6000)])  # the driver leaves empty places
    work = _Work(nvml, None)
    assert sample(nvml, work) == [5 << 30, 37, [[10, 1 << 30, 0], [11, 0, 36]]]
    sample(nvml, work)
    assert nvml.asked == [0, 6000]  # only what is new


def test_nobody_works() -> None:
    nvml = Nvml(NotFoundError())
    assert sample(nvml, _Work(nvml, None))[2] == [[10, 1 << 30, 0], [11, 0, 0]]


def test_a_driver_that_does_not_tell_whose_work_it_is() -> None:
    nvml = Nvml(NVMLError())
    assert sample(nvml, _Work(nvml, None))[2] == [[10, 1 << 30, 37], [11, 0, 37]]


def test_samples_become_peaks_and_last_values() -> None:
    lines = [
        {"at": 0.1, "gpus": [["NVIDIA H200", 100]]},
        {"at": 0.1, "sample": [[7, 0, [[10, 7, 0]]]]},
        {"at": 1.1, "sample": [[90, 99, [[10, 7, 0], [11, 80, 99]]]]},
        {"at": 2.1, "sample": [[40, 3, [[11, 33, 3]]]]},
    ]
    tree: Any = SimpleNamespace(holds=lambda pid: pid == 11)
    (gpu,) = _gpus(lines)
    assert (gpu.name, gpu.total, gpu.used_before, gpu.used_peak, gpu.used_last) == ("NVIDIA H200", 100, 7, 90, 40)
    assert [(u.pid, u.peak, u.last, u.ours) for u in _users(lines, tree)] == [(10, 7, 7, False), (11, 80, 33, True)]
    assert _gpus(lines[:1]) == []


def test_it_ends_with_the_wrapper_and_says_its_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(out: int, control: int, started: float) -> None:
        os.read(control, 1)  # until the wrapper closes it
        os.write(out, json.dumps({"at": 1.0, "xid": 31, "gpu": 0}).encode() + b"\n")

    monkeypatch.setattr(gpu_watch, "_watch", watch)
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    followed = GpuWatch(0.0)
    monkeypatch.undo()
    pid = followed.pid
    assert followed.lines == []
    followed.end(last_word=True)
    assert followed.lines == [{"at": 1.0, "xid": 31, "gpu": 0}]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
