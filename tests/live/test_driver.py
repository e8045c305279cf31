"""cuInit asked in a child: every known refusal by name, a crash and a hang as data."""

from __future__ import annotations

import pytest

from cudnn_doctor.live.checks import live_check
from cudnn_doctor.live.questions import ask_driver, init_of
from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.facts import CudaInit
from tests.native import build


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0, "CUDA_SUCCESS"),
        (35, "cudaErrorInsufficientDriver"),
        (100, "CUDA_ERROR_NO_DEVICE"),
        (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
        (999, "CUDA_ERROR_UNKNOWN"),
        (4711, "CUDA error 4711"),
    ],
)
def test_the_answer_by_name(monkeypatch: pytest.MonkeyPatch, old: bool, code: int, name: str) -> None:
    monkeypatch.setenv("STUB_STATUS", f"cuInit:{code}")
    monkeypatch.setenv("STUB_DRIVER", "11040")
    path = str(build.cuda(old=old))
    assert ask_driver(path) == Known(
        value=CudaInit(
            code=code, name=name, driver_cuda=Known(value="11.4", source="cuDriverGetVersion"), library=path
        ),
        source="cuInit in a child process",
    )


def test_the_loaders_own_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build.cuda().parent))
    answer = ask_driver()
    assert isinstance(answer, Known)
    assert answer.value.library == str(build.cuda())


def test_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cuInit:segv")
    answer = ask_driver(str(build.cuda()))
    assert isinstance(answer, Absent)
    assert answer.reason == "error"
    assert answer.detail.startswith("killed by SIGSEGV in cuInit")


def test_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cuInit:hang")
    assert ask_driver(str(build.cuda()), deadline=1.0) == Absent(
        reason="timeout", detail="no answer before the deadline in cuInit"
    )


def test_no_libcuda_at_all() -> None:
    answer = ask_driver("/nowhere/libcuda.so.1")
    assert isinstance(answer, Absent)
    assert answer.reason == "not-found"


@pytest.mark.parametrize("code", [35, 100, 803, 804, 999])
def test_the_live_check_asks_cudnn_all_the_same(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build.cuda().parent))
    monkeypatch.setenv("STUB_STATUS", f"cuInit:{code},cudnnCreate:1001")
    (result,) = live_check([0], [(str(build.cudnn()), ())], 10.0)
    calls = [(s.call, s.status) for s in result.steps if s.status is not None]
    assert calls[-2:] == [("cuInit", code), ("cudnnCreate", 1001)]
    init = init_of([result])
    assert isinstance(init, Known)
    assert init.value.code == code
    assert init.value.driver_cuda == Known(value="13.0", source="cuDriverGetVersion")


def test_a_driver_older_than_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuInit is answered by ctypes; what cuda.bindings cannot find is named."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build.cuda(old=True).parent))
    (result,) = live_check([0], [(str(build.cudnn()), ())], 10.0)
    assert ("cuInit", 0) in [(s.call, s.status) for s in result.steps]
    assert result.fate.kind == "completed"
    assert result.fate.error == "cuDeviceGet: RuntimeError: Failed to get cuGetProcAddress_v2"
