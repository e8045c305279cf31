"""The child that asks NVML: what it told counts, however it ends."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import NvmlStatus
from cudnn_doctor.probe.nvml_session import NvmlSession, probe_gpus
from tests.probe.machine import elf, facts, gpus, h200, link, put

LIBRARY = "/usr/lib64/libnvidia-ml.so.580.159.04"
NAMED = known("580.159.04", f"file name {LIBRARY}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, {LIBRARY: elf()})
    link(tmp_path, "/usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.580.159.04")
    return tmp_path


def ask(root: Path, body: str, timeout_s: float = 30.0) -> NvmlSession:
    with NvmlSession(root, {}, body=f"tests.probe.nvml_bodies:{body}", timeout_s=timeout_s) as session:
        return session


def test_healthy(root: Path) -> None:
    session = ask(root, "healthy")
    assert session.status == known(NvmlStatus(code=0, name="NVML_SUCCESS"), "nvmlInit of /lib/libnvidia-ml.so.1")
    assert session.version == known("580.159.04", "nvmlSystemGetDriverVersion")
    assert probe_gpus(session) == known(gpus(h200()), "NVML")


def test_no_devices_is_an_empty_answer(root: Path) -> None:
    assert ask(root, "no_devices").gpus == known((), "NVML")


def test_child_is_told_which_library_the_loader_finds(root: Path) -> None:
    assert ask(root, "which_library").version == known("/usr/lib64/libnvidia-ml.so.1", "nvmlSystemGetDriverVersion")


def test_mismatch(root: Path) -> None:
    session = ask(root, "mismatch")
    assert isinstance(session.status, Known)
    assert (session.status.value.code, session.status.value.name) == (18, "NVML_ERROR_LIB_RM_VERSION_MISMATCH")
    assert session.version == known("580.95.05", "nvmlSystemGetNVMLVersion")
    assert session.gpus == Absent(reason="error", detail="nvmlInit: NVML_ERROR_LIB_RM_VERSION_MISMATCH (18)")
    assert ask(root, "mismatch_without_version").version == NAMED


def test_abort_in_init(root: Path) -> None:
    session = ask(root, "aborts")
    assert isinstance(session.status, Absent)
    assert session.status.reason == "error"
    assert session.status.detail.startswith("the child that asked NVML: killed by SIGABRT in nvmlInit")
    assert session.gpus == session.status
    assert session.version == NAMED


def test_hang_in_init(root: Path) -> None:
    begin = time.monotonic()
    session = ask(root, "hangs", timeout_s=3.0)
    assert time.monotonic() - begin < 10
    why = Absent(reason="timeout", detail="the child that asked NVML: no answer before the deadline in nvmlInit")
    assert session.status == session.gpus == why
    assert session.version == NAMED


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ("aborts_at_the_second", "error", "killed by SIGABRT in reading GPU 1"),
        ("hangs_at_the_second", "timeout", "no answer before the deadline in reading GPU 1"),
    ],
)
def test_end_at_the_second_device_keeps_the_first(root: Path, body: str, reason: str, words: str) -> None:
    session = ask(root, body, timeout_s=3.0)
    assert isinstance(session.status, Known)
    assert isinstance(session.gpus, Known)
    first, second, third = session.gpus.value
    assert first == gpus(h200())[0]
    assert (second.index, third.index) == (1, 2)
    assert facts(second) == facts(third)
    assert isinstance(second.name, Absent)
    assert second.name.reason == reason
    assert second.name.detail.startswith(f"the child that asked NVML: {words}")


def test_body_that_raises(root: Path) -> None:
    why = Absent(reason="error", detail="the child that asked NVML: ImportError: no pynvml here")
    session = ask(root, "raises")
    assert session.status == session.gpus == why


def test_answer_of_another_shape(root: Path) -> None:
    session = ask(root, "nonsense")
    assert isinstance(session.status, Absent)
    assert session.status.detail.startswith("ValidationError: ")


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="the loader finds a real libnvidia-ml here")
def test_the_true_body_over_a_library_that_the_loader_refuses(root: Path) -> None:
    with NvmlSession(root, {}) as session:
        status = session.status
    message = "NVML Shared Library Not Found: /usr/lib64/libnvidia-ml.so.1 is there, but the loader refused it"
    assert status == known(
        NvmlStatus(code=12, name="NVML_ERROR_LIBRARY_NOT_FOUND", message=message),
        "nvmlInit of /usr/lib64/libnvidia-ml.so.1",
    )
    assert session.version == NAMED
    assert session.gpus == Absent(reason="error", detail="nvmlInit: NVML_ERROR_LIBRARY_NOT_FOUND (12)")


def test_environment_of_the_process_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"/opt/driver/libnvidia-ml.so.1": elf()})
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/driver")
    with NvmlSession(tmp_path, body="tests.probe.nvml_bodies:which_library") as session:
        assert session.version == known("/opt/driver/libnvidia-ml.so.1", "nvmlSystemGetDriverVersion")


def test_no_child_and_no_bindings_where_there_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*args: Any) -> None:
        raise AssertionError("a child was started")

    monkeypatch.setattr("cudnn_doctor.probe.nvml_session._run", run)
    monkeypatch.setitem(sys.modules, "pynvml", None)  # importing it would raise
    session = ask(tmp_path, "healthy")
    detail = "no libnvidia-ml.so.1 in LD_LIBRARY_PATH, ld.so.cache and the default folders"
    assert session.status == session.version == session.gpus == Absent(reason="not-found", detail=detail)
