"""NVML sessions: what does not start, hangs or is old, and the real bindings over a library made of Python."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pynvml
import pytest

from cudnn_doctor.model import Absent, Gpu, Known, NvmlStatus, known
from cudnn_doctor.probe.gpus import NvmlSession, probe_gpus
from cudnn_doctor.probe.nvml import ERRORS, error_name
from tests.probe.machine import FakeNvml, elf, error, facts, gpus, h200, put, session


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        (18, "NVML_ERROR_LIB_RM_VERSION_MISMATCH", "error"),
        (9, "NVML_ERROR_DRIVER_NOT_LOADED", "error"),
        (4, "NVML_ERROR_NO_PERMISSION", "no-permission"),
        (999, "NVML_ERROR_UNKNOWN", "error"),
        (77, "NVML_ERROR_77", "error"),
    ],
)
def test_nvml_that_does_not_start(code: int, name: str, reason: Any) -> None:
    nvml = session(h200(nvmlInit=error(code)))
    assert isinstance(nvml.status, Known)
    assert (nvml.status.value.code, nvml.status.value.name) == (code, name)
    assert not nvml.ready
    assert probe_gpus(nvml) == Absent(reason=reason, detail=f"nvmlInit: {name} ({code})")


def test_message_of_nvml_is_kept() -> None:
    status = session({"nvmlInit": error(18)}).status
    message = "RM has detected an NVML/RM version mismatch."
    assert status == known(NvmlStatus(code=18, name=error_name(18), message=message), "nvmlInit")


def test_error_names_are_those_of_the_bindings() -> None:
    named = {v: n for n, v in vars(pynvml).items() if n.startswith("NVML_ERROR_") and isinstance(v, int)}
    assert named.items() <= {code: f"NVML_ERROR_{name}" for code, name in ERRORS.items()}.items()
    assert len(named) >= 27  # 12.535 has 27, 13.615 all 31


def test_bindings_that_do_not_start_for_a_reason_of_their_own() -> None:
    nvml = session({"nvmlInit": RuntimeError("boom")})
    assert nvml.status == Absent(reason="error", detail="RuntimeError: boom")


# ---------------------------------------------------------------- time and life


def test_init_that_hangs() -> None:
    release = threading.Event()
    nvml = session(h200(nvmlInit=release.wait), timeout_s=0.05)
    why = Absent(reason="timeout", detail="nvmlInit did not return within 0.05 s")
    assert nvml.status == why
    assert probe_gpus(nvml) == why
    nvml.close()
    release.set()


def test_device_that_hangs_leaves_the_earlier_ones() -> None:
    release = threading.Event()

    def handle(index: int) -> str:
        if index == 1:
            release.wait()
        return f"handle {index}"

    module = FakeNvml(h200(nvmlDeviceGetCount=3, nvmlDeviceGetHandleByIndex=handle))
    with NvmlSession(module=module, timeout_s=0.2) as nvml:
        fact = probe_gpus(nvml)
    assert isinstance(fact, Known)
    first, second, third = fact.value
    assert first.name == known("NVIDIA H200", "nvmlDeviceGetName")
    assert second.name == Absent(reason="timeout", detail="reading GPU 1 did not return within 0.2 s")
    assert third.name == Absent(reason="timeout", detail="an earlier NVML call did not return")
    assert "nvmlShutdown" not in module.calls  # it would wait for the call that hangs
    release.set()


def test_nvml_that_reports_a_timeout_is_not_stuck() -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetName=error(10)))
    assert gpu.name == Absent(reason="timeout", detail="nvmlDeviceGetName: NVML_ERROR_TIMEOUT (10)")
    first, second = gpus(h200(nvmlDeviceGetCount=2, nvmlDeviceGetHandleByIndex=error(10)))
    assert first.name == second.name
    assert first.name == Absent(reason="timeout", detail="nvmlDeviceGetHandleByIndex: NVML_ERROR_TIMEOUT (10)")


def test_session_is_opened_and_closed_once() -> None:
    module = FakeNvml(h200())
    with NvmlSession(module=module) as nvml:
        assert nvml.ready
        probe_gpus(nvml)
    nvml.close()
    assert (module.calls.count("nvmlInit"), module.calls.count("nvmlShutdown")) == (1, 1)
    assert probe_gpus(nvml) == Absent(reason="not-examined", detail="the NVML session is closed")


def test_session_that_failed_is_not_shut_down() -> None:
    module = FakeNvml(h200(nvmlInit=error(9)))
    with NvmlSession(module=module):
        pass
    assert module.calls == ["nvmlInit"]


def test_pynvml_is_not_imported_without_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # importing it would raise
    nvml = NvmlSession(tmp_path, {})
    detail = "no libnvidia-ml.so.1 in LD_LIBRARY_PATH, ld.so.cache and the default folders"
    assert nvml.status == Absent(reason="not-found", detail=detail)
    assert nvml.library == ""


def test_library_there_but_no_bindings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"/usr/lib64/libnvidia-ml.so.1": elf()})
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml = NvmlSession(tmp_path, {})
    assert isinstance(nvml.status, Absent)
    assert nvml.status.reason == "error"
    assert nvml.status.detail.startswith("ModuleNotFoundError: ")
    assert nvml.library == "/usr/lib64/libnvidia-ml.so.1"


# ---------------------------------------------------------------- the real bindings over a library made of Python


class Library:
    """Stands where pynvml holds libnvidia-ml: functions that are given exist, all others are missing symbols."""

    def __init__(self, **functions: Any) -> None:
        self.__dict__.update(functions)


@pytest.fixture
def real_bindings(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return lambda library: monkeypatch.setattr(pynvml, "nvmlLib", library)


def write(value: int) -> Any:
    def function(*args: Any) -> int:
        args[-1]._obj.value = value
        return 0

    return function


def test_real_bindings_over_a_driver_that_lacks_the_newest_symbols(real_bindings: Any) -> None:
    def init(flags: int) -> int:
        return 0

    def name(handle: Any, buffer: Any, length: Any) -> int:
        buffer.value = b"Tesla K80"
        return 0

    def handle_by_index(index: Any, handle: Any) -> int:
        return 0

    real_bindings(
        Library(
            nvmlInitWithFlags=init,
            nvmlShutdown=lambda: 0,
            nvmlDeviceGetCount_v2=write(1),
            nvmlDeviceGetHandleByIndex_v2=handle_by_index,
            nvmlDeviceGetName=name,
            nvmlDeviceGetTemperature=write(41),
            nvmlDeviceGetPersistenceMode=lambda handle, mode: 4,
        )
    )
    with NvmlSession(module=pynvml) as nvml:
        fact = probe_gpus(nvml, Path("/nonexistent"))
    assert isinstance(fact, Known)
    (gpu,) = fact.value
    assert gpu.name == known("Tesla K80", "nvmlDeviceGetName")
    assert gpu.temperature == known(41, "nvmlDeviceGetTemperature")
    refused = Absent(reason="no-permission", detail="nvmlDeviceGetPersistenceMode: NVML_ERROR_NO_PERMISSION (4)")
    assert gpu.persistence == refused
    rest = {k: v for k, v in facts(gpu).items() if k not in ("name", "temperature", "persistence")}
    for field_name, answer in rest.items():
        assert isinstance(answer, Absent), field_name
        assert answer.reason == "not-supported", field_name
        missing = (": NVML_ERROR_FUNCTION_NOT_FOUND (13)", "nvidia-ml-py has no NVML_FI_DEV_GET_GPU_RECOVERY_ACTION")
        assert answer.detail.endswith(missing), field_name
    assert msgspec.json.decode(msgspec.json.encode(gpu), type=Gpu) == gpu


def test_real_bindings_over_a_mismatched_driver(real_bindings: Any) -> None:
    real_bindings(Library(nvmlInitWithFlags=lambda flags: 18))
    nvml = NvmlSession(module=pynvml)
    message = "RM has detected an NVML/RM version mismatch."
    assert nvml.status == known(
        NvmlStatus(code=18, name="NVML_ERROR_LIB_RM_VERSION_MISMATCH", message=message), "nvmlInit"
    )
