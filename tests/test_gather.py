"""`engine.gather` on stub libraries: which children it starts, what it takes from each, and that it leaves none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from cudnn_doctor.examine import gather
from cudnn_doctor.live import choose, process
from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.facts import CudaInit
from cudnn_doctor.model.options import Options
from tests.live.test_parent import children_of_this_process
from tests.native import build


@pytest.fixture(autouse=True)
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose device node and libraries are stubs, and whose NVML is not there."""
    process.reap()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{build.cuda().parent}:{build.cudnn().parent}")
    monkeypatch.setattr(choose, "devices_to_check", lambda _, wanted: (0,))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The command lines of all children."""
    commands: list[Sequence[str]] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, command: Sequence[str], **options: Any) -> None:
            commands.append(command)
            super().__init__(command, **options)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    return commands


def test_the_live_check_starts_early_and_answers_for_the_driver(started: list[Sequence[str]]) -> None:
    facts = gather(Options(), os.environ)
    (check,) = facts.scenarios
    assert (check.cudnn, check.cudnn_version, check.fate.kind) == (str(build.cudnn()), "9.19.0", "completed")
    assert check.steps[0].call.startswith("dlopen libcuda")  # before it knew the cuDNN
    assert facts.snapshot.driver.init == Known(
        value=CudaInit(
            code=0,
            name="CUDA_SUCCESS",
            driver_cuda=Known(value="13.0", source="cuDriverGetVersion"),
            library=str(build.cuda()),
        ),
        source="cuInit in a child process",
    )
    stub = next(c for c in facts.snapshot.cudnn if c.real_path == str(build.cudnn()))
    assert stub.asked == Known(value="ok", source="child process")
    assert len(started) == 1 + len(facts.snapshot.cudnn)  # the check, and a version of each copy


def test_without_a_live_check_the_driver_has_its_own_child(started: list[Sequence[str]]) -> None:
    facts = gather(Options(live=False), os.environ)
    assert facts.scenarios == ()
    assert isinstance(facts.snapshot.driver.init, Known)
    assert facts.snapshot.driver.init.value.code == 0
    assert len(started) == 1  # no copy of cuDNN is loaded


def test_a_check_that_dies_in_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cuInit:segv")
    facts = gather(Options(), os.environ)
    assert [s.fate.signal for s in facts.scenarios] == ["SIGSEGV"]
    assert isinstance(facts.snapshot.driver.init, Absent)
    assert facts.snapshot.driver.init.detail.startswith("killed by SIGSEGV in cuInit")


def test_an_error_leaves_no_child_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("refused")

    monkeypatch.setattr(choose, "choose_copies", refuse)
    with pytest.raises(UsageError, match="refused"):
        gather(Options(), os.environ)
    process.reap()
    assert children_of_this_process() == []
