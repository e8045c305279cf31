"""CD6xx on what real children bring back: stub libraries that fail on demand, and lines that real ones printed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cudnn_doctor.live.checks import live_check
from cudnn_doctor.model.base import known
from cudnn_doctor.model.facts import CudaLibrary
from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.sample import live, live_steps, sample
from tests.native import build
from tests.rules import BY_CODE, judge, only

LIVE = [code for code in BY_CODE if "CD601" <= code <= "CD611"]


def run(monkeypatch: pytest.MonkeyPatch, *, old: bool = False, deadline: float = 10.0, **stub: str) -> Case:
    """The healthy machine with the live check of a stub cuDNN 9."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build.cuda(old=old).parent))
    for name, value in stub.items():
        monkeypatch.setenv(f"STUB_{name}", value)
    path = str(build.cudnn())
    results = live_check([0], [(path, ())], deadline)
    base = sample().snapshot
    copy = msgspec.structs.replace(base.cudnn[0], path=path, real_path=path, found_by=("LD_LIBRARY_PATH",))
    return Case(msgspec.structs.replace(base, cudnn=(copy,)), results)


def problems(case: Case) -> dict[str, str]:
    return {f.code: f.title for code in LIVE for f in judge(code, case) if f.status == "problem"}


def statuses(case: Case) -> set[str]:
    return {f.status for code in LIVE for f in judge(code, case)}


def test_every_trouble_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    case = run(monkeypatch, DO="cudnnCreate:segv")
    assert problems(case) == {"CD602": "The process was ended by SIGSEGV in cudnnCreate"}
    assert only("CD601", case).detail == "it failed: see the finding below"


def test_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    case = run(monkeypatch, DO="cudnnSetStream:hang", deadline=2.0)
    assert problems(case) == {"CD604": "cudnnSetStream did not return in 2 s"}
    assert only("CD604", case).owner == "node"


@pytest.mark.parametrize(
    ("stub", "code", "title"),
    [
        ("cudnnCreate:1001", "CD605", "cudnnCreate answers 1001 CUDNN_STATUS_NOT_INITIALIZED"),
        ("cudnnSetStream:2007", "CD606", "cudnnSetStream answers 2007 CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH"),
        ("cuStreamCreate:2", "CD606", "cuStreamCreate answers 2 CUDA_ERROR_OUT_OF_MEMORY"),
    ],
)
def test_statuses_by_name(monkeypatch: pytest.MonkeyPatch, stub: str, code: str, title: str) -> None:
    case = run(monkeypatch, STATUS=stub)
    assert problems(case) == {code: title}
    finding = only(code, case)
    assert finding.severity == "error"
    assert finding.detail
    assert finding.fixes[-1].command.startswith("CUDNN_LOGLEVEL_DBG=3 CUDNN_LOGDEST_DBG=stderr cudnn-doctor")


@pytest.mark.parametrize("code", [35, 100, 803, 804, 999])
def test_a_driver_that_refuses_is_told_by_the_driver_rule(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    case = run(monkeypatch, STATUS=f"cuInit:{code},cudnnCreate:1001")
    assert problems(case) == {}
    assert only("CD606", case).detail == "cuInit fails: CD109"


def test_a_driver_older_than_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    case = run(monkeypatch, old=True)
    finding = only("CD609", case)
    assert problems(case) == {"CD609": finding.title}
    assert finding.title == (
        "cuda.bindings cannot be used with this driver: cuDeviceGet: RuntimeError: Failed to get cuGetProcAddress_v2"
    )
    assert (finding.owner, finding.severity) == ("program", "warning")
    assert "'cuda-bindings==13.*'" in finding.fixes[0].command


def test_a_library_that_is_not_there() -> None:
    results = live_check([0], [("/nowhere/libcudnn.so.9", ())], 10.0)
    case = Case(sample().snapshot, results)
    assert problems(case) == {"CD603": "libcudnn.so.9 is missing"}
    assert only("CD603", case).severity == "note"  # no copy of the snapshot


CUBLAS = (
    "Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: cannot open shared object file: "
    "No such file or directory"
)


def aborted(stderr: str, step: str, **changes: Any) -> ScenarioResult:
    fate = Termination(kind="signal", signal="SIGABRT", last_step=step, stderr=stderr)
    steps = live_steps()[:3]
    assert sample().scenarios[0].steps != steps
    return msgspec.structs.replace(sample().scenarios[0], fate=fate, steps=steps, **changes)


def test_cudnn_8_without_cublas_names_the_missing_file() -> None:
    """The real line of 8.9.7 on an H200."""
    case = sample(live=(aborted(CUBLAS, "cudnnCreate", cudnn_version="8.9.7"),))
    assert problems(case) == {"CD603": "libcublasLt.so.12 is missing"}
    finding = only("CD603", case)
    assert finding.causes == ("helper-library-missing",)
    assert finding.detail == f"{CUBLAS}. The process was ended by SIGABRT in cudnnCreate."
    assert finding.fixes[0].command == "/opt/venv/bin/python -m pip install nvidia-cublas-cu12"


def test_a_missing_file_that_is_elsewhere() -> None:
    cublas = CudaLibrary(
        name="libcublasLt",
        major=12,
        path="/usr/local/cuda-12/lib64/libcublasLt.so.12",
        real_path="/usr/local/cuda-12/lib64/libcublasLt.so.12",
        version=known("12.0.1", "test"),
        found_by="CUDA toolkit",
    )
    case = sample({"cuda.libraries": (cublas,)}, live=(aborted(CUBLAS, "cudnnCreate"),))
    command = only("CD603", case).fixes[0].command
    assert command == "export LD_LIBRARY_PATH=/usr/local/cuda-12/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"


def test_a_graph_library_of_9_1_under_9_19() -> None:
    """The real lines of a mixed folder on an H200."""
    line = (
        "Could not load symbol cudnnGetLibConfig. Error: /opt/mixed/libcudnn_graph.so.9: undefined symbol: "
        "cudnnGetLibConfig\nFatal Python error: Aborted"
    )
    case = sample(live=(aborted(line, "cudnnCreate", cudnn_version="9.1.0"),))
    assert problems(case) == {
        "CD603": "/opt/mixed/libcudnn_graph.so.9 does not fit cuDNN's other libraries: it is of another release"
    }
    finding = only("CD603", case)
    assert finding.causes == ("cudnn-sublibs-mixed",)
    assert finding.fixes[0].text == "Install what is in /opt/mixed again as a whole, from one release."
    listed = sample({"host.environment.LD_LIBRARY_PATH": "/opt/mixed:/usr/local/cuda/lib64"}, live=case.scenarios)
    assert only("CD603", listed).fixes[0].command == "export LD_LIBRARY_PATH=/usr/local/cuda/lib64"


def test_a_sub_library_that_9_1_does_not_find() -> None:
    line = "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}"
    case = sample(live=(aborted(line, "cudnnCreateTensorDescriptor", cudnn_version="9.1.0"),))
    assert problems(case) == {"CD603": "libcudnn_ops.so.9 is missing or of another release"}
    assert only("CD603", case).fixes[0].command == (
        "/opt/venv/bin/python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu13==9.19.0.56"
    )


def test_the_number_is_read_by_the_major_that_answered() -> None:
    steps = live_steps(fails="cudnnSetStream", status=7, name="CUDNN_STATUS_MAPPING_ERROR")
    finding = only("CD606", live(steps=steps, cudnn_version="8.9.7"))
    assert finding.title == "cudnnSetStream answers 7 CUDNN_STATUS_MAPPING_ERROR"
    assert finding.detail.startswith("From cudnnSetStream: the handle's context and the stream do not live together")
    assert finding.causes[0] == "prior-cuda-fault"
    unknown = only("CD606", live(steps=live_steps(fails="cudnnSetStream", status=7), cudnn_version="9.19.0"))
    assert (unknown.title, unknown.detail) == ("cudnnSetStream answers 7", "")


def test_what_cudnn_itself_says_and_how_much_memory_was_free() -> None:
    detail = "cudaStreamCreateWithFlags(&ctx->streamPool[0][i], 0x01) != cudaSuccess"
    steps = live_steps(fails="cudnnCreate", status=4000, name="CUDNN_STATUS_INTERNAL_ERROR", detail=detail)
    finding = only("CD605", live(steps=steps))
    assert f"cuDNN says: {detail}." in finding.detail
    assert "139.8 GiB free" in [e.value for e in finding.evidence]


def test_a_version_mismatch_points_at_the_rule_that_names_the_file() -> None:
    """As on an H200 with libcudnn_ops.so.9 of 9.1 before the wheel's own 9.19."""
    name = "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"
    finding = only("CD606", live(steps=live_steps(fails="cudnnSetStream", status=1002, name=name)))
    assert finding.title == f"cudnnSetStream answers 1002 {name}"
    assert finding.fixes[0].command == "cudnn-doctor check --only CD306 --only CD307"


def with_note(name: str, value: Any, detail: str = "") -> Case:
    return live(steps=tuple(Step(call=name, value=value, detail=detail) if s.call == name else s for s in live_steps()))


def test_another_stream_and_a_wrong_result() -> None:
    assert list(problems(with_note("stream kept", False))) == ["CD607"]
    wrong = with_note("wrong values", 3, "y[17] is 0.0, not 72")
    assert problems(wrong) == {"CD608": "The convolution is wrong in 3 of its values"}
    assert only("CD608", wrong).detail == "y[17] is 0.0, not 72"


def test_files_of_two_folders_although_all_went_well() -> None:
    """As measured with a Debian folder on LD_LIBRARY_PATH before the wheel's."""
    paths = ["/opt/venv/nvidia/cudnn/lib/libcudnn.so.9", "/usr/lib/x86_64-linux-gnu/libcudnn_graph.so.9.14.0"]
    assert problems(with_note("libraries", [*paths, "/usr/lib/libcublasLt.so.13"])) == {
        "CD611": "cuDNN is mixed from /opt/venv/nvidia/cudnn/lib and /usr/lib/x86_64-linux-gnu"
    }


def test_noise_is_a_note() -> None:
    case = live(fate=Termination(kind="completed", stderr="first line\nsecond line"))
    assert problems(case) == {"CD610": "A library printed: first line"}
    assert only("CD610", case).severity == "note"


@pytest.mark.parametrize(
    ("result", "status", "detail"),
    [
        (
            Termination(kind="not-started", error="no time left before the deadline"),
            "unknown",
            "no time left before the deadline",
        ),
        (Termination(kind="completed", error="KeyError: 'x'"), "unknown", "KeyError: 'x'"),
    ],
)
def test_no_answer_is_no_pass(result: Termination, status: str, detail: str) -> None:
    case = live(fate=result, steps=live_steps()[:2])
    finding = only("CD601", case)
    assert (finding.status, finding.detail) == (status, detail)
    assert BY_CODE["CD601"].required
    assert "ok" not in statuses(case)


def test_a_broken_copy_that_nobody_loads_takes_no_verdict_away() -> None:
    good = sample().scenarios[0]
    stray = aborted(CUBLAS, "cudnnCreate", cudnn="/opt/stray/libcudnn.so.8")
    case = sample(live=(good, stray))
    assert [f.status for f in judge("CD601", case)] == ["ok"]
    assert [(f.status, f.severity) for f in judge("CD603", case)] == [("ok", "error"), ("problem", "note")]


def test_why_nothing_was_tried() -> None:
    assert only("CD601", sample(live=())).detail == "the live check was not run"
    assert only("CD601", sample({"cudnn": ()}, live=())).detail == "no cuDNN to try"
    assert statuses(sample(live=())) == {"skipped"}


def test_other_scenarios_are_not_judged_here() -> None:
    result = msgspec.structs.replace(
        sample().scenarios[0], scenario="context-destroyed", fate=Termination(kind="signal")
    )
    assert statuses(sample(live=(result,))) == {"skipped"}


def test_the_stub_that_does_all_right(monkeypatch: pytest.MonkeyPatch) -> None:
    case = run(monkeypatch)
    assert problems(case) == {}
    assert only("CD601", case).status == "ok"
