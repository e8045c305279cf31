"""NVML's bindings: what does not start and what is old; the real ones over a library made of Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pynvml
import pytest

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import Gpu, NvmlStatus
from cudnn_doctor.probe.gpus import read_gpu
from cudnn_doctor.probe.nvml import ERRORS, Nvml, error_name
from tests.probe.machine import FakeNvml, error, facts, h200


def nvml(**changes: Any) -> Nvml:
    return Nvml(FakeNvml(h200(**changes)))


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
    session = nvml(nvmlInit=error(code))
    assert isinstance(session.status, Known)
    assert (session.status.value.code, session.status.value.name) == (code, name)
    assert not session.ready
    why = Absent(reason=reason, detail=f"nvmlInit: {name} ({code})")
    assert session.call("nvmlDeviceGetCount") == why
    assert set(facts(read_gpu(session, 0)).values()) == {why}


def test_message_of_nvml_is_kept() -> None:
    status = NvmlStatus(code=18, name=error_name(18), message="RM has detected an NVML/RM version mismatch.")
    assert nvml(nvmlInit=error(18)).status == known(status, "nvmlInit")


def test_library_that_is_there_and_that_the_loader_refuses() -> None:
    status = Nvml(FakeNvml({"nvmlInit": error(12)}), "/lib/libnvidia-ml.so.1").status
    message = "NVML Shared Library Not Found: /lib/libnvidia-ml.so.1 is there, but the loader refused it"
    assert status == known(
        NvmlStatus(code=12, name="NVML_ERROR_LIBRARY_NOT_FOUND", message=message), "nvmlInit of /lib/libnvidia-ml.so.1"
    )


def test_error_names_are_those_of_the_bindings() -> None:
    named = {v: n for n, v in vars(pynvml).items() if n.startswith("NVML_ERROR_") and isinstance(v, int)}
    assert named.items() <= {code: f"NVML_ERROR_{name}" for code, name in ERRORS.items()}.items()
    assert len(named) >= 27  # 12.535 has 28, 13.615 all 31


def test_bindings_that_do_not_start_for_a_reason_of_their_own() -> None:
    assert nvml(nvmlInit=RuntimeError("boom")).status == Absent(reason="error", detail="RuntimeError: boom")


def test_no_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    session = Nvml()
    assert isinstance(session.status, Absent)
    assert session.status.reason == "error"
    assert session.status.detail.startswith("ModuleNotFoundError: ")
    assert session.call("nvmlDeviceGetCount") == session.release() == session.status
    session.close()


def test_release() -> None:
    assert nvml().release() == known("580.159.04", "nvmlSystemGetDriverVersion")
    assert nvml(nvmlSystemGetDriverVersion=b"470.256.02").release() == known("470.256.02", "nvmlSystemGetDriverVersion")
    skew = nvml(nvmlInit=error(18), nvmlSystemGetNVMLVersion="13.580.95.05")
    assert skew.release() == known("580.95.05", "nvmlSystemGetNVMLVersion")
    silent = nvml(nvmlInit=error(18), nvmlSystemGetNVMLVersion=error(1))
    assert silent.release() == Absent(reason="error", detail="nvmlInit: NVML_ERROR_LIB_RM_VERSION_MISMATCH (18)")


def test_nvml_is_shut_down_once_it_was_initialised() -> None:
    started, failed = FakeNvml(h200()), FakeNvml(h200(nvmlInit=error(9)))
    Nvml(started).close()
    Nvml(failed).close()
    assert started.calls == ["nvmlInit", "nvmlShutdown"]
    assert failed.calls == ["nvmlInit"]


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
    session = Nvml(pynvml)
    assert session.call("nvmlDeviceGetCount") == known(1, "nvmlDeviceGetCount")
    gpu = read_gpu(session, 0, Path("/nonexistent"))
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
    message = "RM has detected an NVML/RM version mismatch."
    assert Nvml(pynvml).status == known(
        NvmlStatus(code=18, name="NVML_ERROR_LIB_RM_VERSION_MISMATCH", message=message), "nvmlInit"
    )
