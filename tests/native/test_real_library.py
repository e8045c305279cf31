"""The true libcudnn 9.27 without a GPU: its version, its names of statuses, what it answers when there is no driver."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cudnn_doctor.knowledge.status import cudnn_status
from cudnn_doctor.live.checks import live_check
from cudnn_doctor.live.parent import Job, Task, run_jobs
from cudnn_doctor.live.questions import ask_versions
from cudnn_doctor.model.base import known
from cudnn_doctor.probe.cudnn_copies import exported_version
from tests.native.wheel import real_cudnn


@pytest.fixture(scope="module")
def library() -> Path:
    return real_cudnn()


def test_versions(library: Path) -> None:
    answer = ask_versions([str(library)], 30.0)[str(library)]
    assert answer.version == known("9.27.0", "cudnnGetVersion in a child process")
    assert answer.cudart == known("12.9", "cudnnGetCudartVersion in a child process")
    assert answer.asked == "ok"


def test_the_version_that_the_file_holds_is_the_one_that_it_answers(library: Path) -> None:
    graph = library.with_name("libcudnn_graph.so.9")
    assert exported_version(str(graph), "_graph") == known("9.27.0", "cudnn_graph_version in libcudnn_graph.so.9")


def test_names_of_statuses_are_those_of_the_table(library: Path) -> None:
    args = {"path": str(library), "codes": [*range(6000)]}
    task = Task(id="names", body="tests.native.bodies:names", args=args)
    (outcome,) = run_jobs([Job(tasks=(task,))], deadline=30.0)
    names = {int(code): name for code, name in outcome.tasks[0].steps[0].value.items()}
    for code, name in names.items():
        status = cudnn_status(9, code)
        assert (status.name if status else "CUDNN_UNKNOWN_STATUS") == name, code


def test_a_handle_without_a_driver(library: Path) -> None:
    """Skipped where there is a driver: then it is the live check that answers."""
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has an NVIDIA driver")
    (result,) = live_check([0], [(str(library), ())], 30.0)
    assert result.cudnn_version == "9.27.0"
    last = result.steps[-1]
    assert (last.call, last.status, last.name) == ("cudnnCreate", 1001, "CUDNN_STATUS_NOT_INITIALIZED")
    assert last.detail == "cudaGetDeviceCount(&count) != cudaSuccess"


def test_a_library_opened_by_descriptor_finds_nothing_beside_it(library: Path) -> None:
    """What sub-library-missing stands on: graph is hidden, so the first call aborts and names what it sought."""
    args = {"cudnn": str(library), "hide": ["libcudnn_graph"], "state": "valid_stream"}
    task = Task(id="x", body="cudnn_doctor.scenarios.base:play", args=args)
    (outcome,) = run_jobs([Job(tasks=(task,), unset_env=("LD_LIBRARY_PATH",))], deadline=30.0)
    assert (outcome.fate.kind, outcome.fate.signal, outcome.fate.last_step) == ("signal", "SIGABRT", "cudnnGetVersion")
    assert "Cannot load symbol cudnnGetVersion" in outcome.fate.stderr
    assert outcome.fate.error.startswith("died at session.py:")


def test_the_same_with_nothing_hidden(library: Path) -> None:
    args = {"cudnn": str(library), "hide": ["libcudnn_nothing"], "state": "valid_stream"}
    task = Task(id="x", body="cudnn_doctor.scenarios.base:play", args=args)
    (outcome,) = run_jobs([Job(tasks=(task,), unset_env=("LD_LIBRARY_PATH",))], deadline=30.0)
    assert [s.value for s in outcome.tasks[0].steps if s.call == "cudnnGetVersion"] == [92700]
