"""Libraries that crash, abort, hang, spam, close descriptors and kill: the stub libcudnn in the real child."""

from __future__ import annotations

import time

import pytest

from cudnn_doctor.live.checks import live_check
from cudnn_doctor.live.questions import ask_versions
from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.live import ScenarioResult
from tests.native import build

CALLS = [
    "cuInit",
    "cuDeviceGet",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuStreamCreate",
    "cudnnCreate",
    "cudnnSetStream",
    "cudnnGetStream",
    "cudnnConvolutionForward",
    "cuStreamSynchronize",
    "cudnnDestroy",
]


@pytest.fixture(autouse=True)
def stub_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build.cuda().parent))


def check(major: int = 9, deadline: float = 20.0) -> ScenarioResult:
    (result,) = live_check([0], [(str(build.cudnn(major)), ())], deadline)
    return result


def note(result: ScenarioResult, name: str) -> object:
    return next(s.value for s in result.steps if s.call == name and s.status is None)


@pytest.mark.parametrize(("major", "version"), [(8, "8.9.7"), (9, "9.19.0")])
def test_a_good_library(major: int, version: str) -> None:
    result = check(major)
    assert result.fate.kind == "completed"
    assert result.fate.error == ""
    assert result.cudnn_version == version
    assert [s.call for s in result.steps if s.call in CALLS] == CALLS
    assert {s.status for s in result.steps if s.call in CALLS} == {0}
    assert note(result, "stream kept") is True
    assert note(result, "wrong values") == 0
    libraries = note(result, "libraries")
    assert isinstance(libraries, list)
    assert str(build.cudnn(major)) in libraries


def test_one_wrong_value_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_STATUS", "wrong:1")
    result = check()
    assert note(result, "wrong values") == 1
    (step,) = (s for s in result.steps if s.call == "wrong values")
    assert step.detail.startswith(f"y[{3 * 256 + 2 * 16 + 1}] is ")


@pytest.mark.parametrize(
    ("major", "code", "name", "last"),
    [
        (8, 7, "CUDNN_STATUS_MAPPING_ERROR", ""),
        (9, 2007, "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH", "why it failed"),
        (9, 1008, "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED", "why it failed"),  # a name that this library lacks
        (9, 7, "CUDNN_UNKNOWN_STATUS", "why it failed"),
    ],
)
def test_a_status_is_named_by_major_and_code(
    monkeypatch: pytest.MonkeyPatch, major: int, code: int, name: str, last: str
) -> None:
    monkeypatch.setenv("STUB_STATUS", f"cudnnSetStream:{code}")
    monkeypatch.setenv("STUB_LAST_ERROR", "why it failed")
    last_step = check(major).steps[-1]
    assert (last_step.call, last_step.status, last_step.name, last_step.detail) == ("cudnnSetStream", code, name, last)


@pytest.mark.parametrize("function", ["cudnnGetVersion", "cudnnCreate", "cudnnSetStream", "cudnnConvolutionForward"])
@pytest.mark.parametrize(
    ("what", "kind", "how"),
    [("segv", "signal", "SIGSEGV"), ("abort", "signal", "SIGABRT"), ("kill", "signal", "SIGKILL"), ("exit", "exit", 3)],
)
def test_a_death_and_the_call_it_came_in(
    monkeypatch: pytest.MonkeyPatch, function: str, what: str, kind: str, how: str | int
) -> None:
    monkeypatch.setenv("STUB_DO", f"{function}:{what}")
    fate = check().fate
    assert (fate.kind, fate.signal or fate.exit_code, fate.last_step) == (kind, how, function)


def test_the_librarys_last_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cudnnCreate:abort")
    assert check(8).fate.stderr.startswith("Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: cannot")


@pytest.mark.parametrize("what", ["hang", "stubborn"])
def test_a_hang_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setenv("STUB_DO", f"cudnnCreate:{what}")
    start = time.monotonic()
    fate = check(deadline=1.5).fate
    assert time.monotonic() - start < 3.0
    assert (fate.kind, fate.last_step) == ("timeout", "cudnnCreate")


def test_a_hundred_megabytes_of_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cudnnCreate:spam")
    result = check()
    assert result.fate.kind == "completed"
    assert note(result, "wrong values") == 0
    assert len(result.fate.stderr) < 20_000
    assert result.fate.stderr.endswith("the last words")
    assert f"[... {1600 * 65536 + 15 - 16384} bytes left out ...]" in result.fate.stderr
    assert "\x1b" not in result.fate.stderr


def test_every_descriptor_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cudnnCreate:close")
    fate = check().fate
    assert (fate.kind, fate.exit_code, fate.last_step) == ("exit", 96, "cudnnCreate")
    assert fate.error == "a library closed the result channel"


def test_a_grandchild_does_not_hold_the_report_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cudnnCreate:grandchild")
    start = time.monotonic()
    assert check().fate.kind == "completed"
    assert time.monotonic() - start < 5.0


def test_garbage_on_the_result_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cudnnCreate:forge")
    result = check()
    assert result.fate.kind == "completed"
    assert note(result, "wrong values") == 0
    assert "lines of the result channel could not be read" in result.fate.error


def test_a_library_that_is_not_there() -> None:
    (result,) = live_check([0], [("/nowhere/libcudnn.so.9", ())], 10.0)
    assert result.steps[0].name == "not loaded"
    assert result.steps[0].detail.startswith("/nowhere/libcudnn.so.9: cannot open shared object file")
    assert result.cudnn_version == ""


def test_versions_of_good_and_bad_copies_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(build.cudnn(8)), str(build.cudnn(9)), "/nowhere/libcudnn.so.9"]
    answers = ask_versions(paths, 10.0)
    assert list(answers) == paths
    assert answers[paths[0]].version == Known(value="8.9.7", source="cudnnGetVersion in a child process")
    assert answers[paths[1]].cudart == Known(value="13.0", source="cudnnGetCudartVersion in a child process")
    assert answers[paths[1]].asked == "ok"
    assert isinstance(answers[paths[2]].version, Absent)
    monkeypatch.setenv("STUB_DO", "cudnnGetVersion:abort")
    crashed = ask_versions(paths[:1], 10.0)[paths[0]]
    assert crashed.asked.startswith("killed by SIGABRT in cudnnGetVersion: Could not load library libcublasLt.so.12")
    assert isinstance(crashed.version, Absent)


def test_where_python_died_is_apart_from_what_the_library_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cudnnCreate:segv")
    fate = check().fate
    assert fate.stderr == ""
    assert fate.error.startswith("died at cudnn.py:")
    assert " create < wire.py:" in fate.error
