"""The whole examination on the stub: every fault planted once, each found, the rest examined all the same."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cudnn_doctor.engines.run import nvrtc_beside, run
from cudnn_doctor.model.base import decode, encode
from cudnn_doctor.model.engines import EngineOptions, EngineProgress, EngineRow, EnginesReport, ProblemReport
from cudnn_doctor.model.errors import UsageError
from tests.engines.stub import stub

PLANTED = {
    1: "plan-handle",
    2: "default-stream",
    3: "split",
    4: "no-capture",
    5: "race",
    6: "random",
    7: "segv-build",
    8: "fault-run",
    9: "unsupported",
    10: "dead-handle",
    11: "segv-destroyed",
}


def examine(faults: dict[int, str] | None = None, **changes: Any) -> EnginesReport:
    """One run on the stub; matmul in fp16 unless told otherwise, in one child at a time."""
    fields: dict[str, Any] = {"operations": ("matmul",), "data_types": ("fp16",), "width": 1, "stall": 5.0}
    paths = stub()
    os.environ["STUB_ENGINES"] = ",".join(f"{n}:{what}" for n, what in (faults or {}).items())
    try:
        return run(EngineOptions(cudnn=str(paths.cudnn), preload=(str(paths.cuda),), **{**fields, **changes}))
    finally:
        del os.environ["STUB_ENGINES"]


@cache
def planted() -> EnginesReport:
    return examine(PLANTED)


def rows(report: EnginesReport, problem: int = 0) -> dict[int, EngineRow]:
    return {row.engine: row for row in report.problems[problem].rows}


def test_a_right_cudnn_is_ok() -> None:
    report = examine()
    assert (report.verdict, report.exit_code, report.reason) == ("ok", 0, "examined, nothing wrong")
    assert (report.cudnn_version, report.device_name, report.interrupted) == ("9.19.0", "Stub GPU", False)
    t = report.totals
    assert (t.problems, t.plans, t.engines, t.ok, t.unsupported) == (2, 28, 12, 28, 0)
    assert (t.threads_tested, t.threads_differ, t.destroyed_tested, t.destroyed_bad) == (28, 0, 28, 0)
    assert (t.clones, t.clones_wrong) == (24, 0)
    for control in (report.capture_control, report.held_control):
        assert (control.planted, control.seen) == (28, 28)
    first = report.problems[0]
    assert first.heuristics == (("heuristics A", 14), ("heuristics B", 14), ("heuristics FALLBACK", 14))
    assert first.anew_ms is not None
    assert first.autotune_ms is not None
    assert 0 < first.anew_ms < first.autotune_ms
    assert rows(report)[1].behaviour == ("RUNTIME_COMPILATION",)
    assert rows(report)[2].numerical == ("TENSOR_CORE",)
    assert rows(report)[0].plans == 2  # with its default knobs and with one that the heuristics set


@pytest.mark.parametrize(
    ("engine", "verdict", "why"),
    [
        (0, "ok", ""),
        (
            1,
            "wrong-stream",
            "1 of 1 graph nodes are in the stream of the handle that built the plan; output or workspace was written "
            "while the given stream was held",
        ),
        (
            2,
            "wrong-stream",
            "no graph node in any captured stream: the work went to a stream that nobody gave; output or workspace was "
            "written while the given stream was held",
        ),
        (
            3,
            "wrong-stream",
            "1 of 2 graph nodes are in the stream of the handle that built the plan; output or workspace was written "
            "while the given stream was held",
        ),
        (4, "ok", ""),
        (5, "ok", ""),
        (6, "ok", ""),
        (7, "crashed", "killed by SIGSEGV in step build"),
        (8, "crashed", "CUDA_ERROR_ILLEGAL_ADDRESS, the context was lost in step run"),
        (10, "ok", ""),
        (11, "ok", ""),
    ],
)
def test_each_planted_fault_is_found(engine: int, verdict: str, why: str) -> None:
    for problem in (0, 1):
        row = rows(planted(), problem)[engine]
        assert row.verdict == verdict
        assert [f.why for f in row.faults if f.why] == ([why] * row.plans if why else [])


def test_what_the_other_tests_find() -> None:
    found = rows(planted())
    assert (found[4].not_capturable, found[4].ok) == (1, 1)
    assert found[4].faults[0].remarks == (
        "not capturable: cudnnBackendExecute: 3000 CUDNN_STATUS_NOT_SUPPORTED: a reason",
    )
    assert (found[5].threads_tested, found[5].threads_differ) == (1, 1)
    assert found[5].faults[0].remarks[-1] == "two threads with a plan each: 0 differ"
    assert (found[5].own_tested, found[5].own_differ) == (1, 0)
    assert (found[6].threads_tested, found[6].ok) == (0, 1)  # other bits each time: nothing to compare with
    assert (found[10].destroyed_tested, found[10].destroyed_bad) == (1, 1)
    assert found[10].faults[0].remarks == (
        "after its handle was destroyed: cudnnBackendExecute: 4000 CUDNN_STATUS_INTERNAL_ERROR: a reason",
    )
    assert found[11].faults[0].remarks == ("after its handle was destroyed: killed by SIGSEGV",)
    assert 9 not in found
    assert [(r.status, r.name, r.engines, r.example) for r in planted().problems[0].refusals] == [
        (3000, "CUDNN_STATUS_NOT_SUPPORTED", (9,), "cudnnBackendFinalize ENGINE: a reason")
    ]


def test_the_clone_cures_the_plan_that_keeps_its_handle_and_not_the_one_that_leaves_all_streams() -> None:
    found = rows(planted())
    assert (found[1].clones_right, found[1].clones_wrong) == (1, 0)
    assert (found[3].clones_right, found[3].clones_wrong) == (1, 0)
    assert (found[2].clones_right, found[2].clones_wrong) == (0, 1)


def test_the_verdict_and_the_controls_of_the_planted_run() -> None:
    report = planted()
    assert (report.verdict, report.exit_code) == ("problem", 1)
    assert report.reason == "CD650 engine 1 of matmul: Ignores the stream of the handle that is given"  # of three alike
    assert report.problems[0].restarts == 3
    assert report.capture_control.seen == report.capture_control.planted > 0
    assert report.held_control.seen == report.held_control.planted > 0
    assert report.totals.unsupported == 2


def test_the_report_goes_through_json() -> None:
    report = planted()
    assert decode(encode(report), EnginesReport) == report
    assert msgspec.json.decode(encode(report))["schema"] == "cudnn-doctor/engines/1"


def test_a_control_that_sees_nothing_leaves_no_verdict() -> None:
    report = examine({4: "blind"}, engines=(3, 4))
    assert {e: r.verdict for e, r in rows(report).items()} == {3: "ok", 4: "unknown"}
    assert (report.capture_control.planted, report.capture_control.seen) == (4, 2)
    assert (report.verdict, report.exit_code) == ("no-verdict", 2)
    assert report.reason == (
        "CD650 cuDNN 9.19.0: The examination cannot see the fault that it looks for: the capture control put the fault "
        "there 4 times and saw it 2 times"
    )


def test_an_engine_that_ends_the_process_when_shared_is_shared_no_more() -> None:
    report = examine({1: "segv-shared"}, engines=(0, 1), max_plans=3)
    first, second = rows(report, 0)[1], rows(report, 1)[1]
    assert [f.remarks for f in first.faults] == [("two threads: killed by SIGSEGV",)]
    assert (first.ok, first.threads_tested, first.threads_differ) == (first.plans, 1, 1)
    assert (second.ok, second.threads_tested, second.faults) == (second.plans, 0, ())
    assert rows(report, 1)[0].threads_tested == rows(report, 1)[0].plans
    assert not [p for p in report.problems if p.error]


def test_an_engine_that_agrees_with_itself_by_chance_is_not_suspect() -> None:
    """Two serial runs agree, a later one does not, nor do those of a fresh plan: its sums are made in any order."""
    row = rows(examine({1: "drift"}, engines=(1,)))[1]
    assert (row.verdict, row.ok, row.plans, row.clones_wrong, row.destroyed_bad) == ("ok", row.plans, row.plans, 0, 0)
    assert row.threads_tested == 0  # there is nothing to compare with


def test_other_bits_with_another_handle_are_suspect() -> None:
    """A fresh plan of the same choice goes on to give the reference, so the plan itself is at fault."""
    row = rows(examine({1: "other-handle"}, engines=(1,)))[1]
    assert (row.verdict, row.suspect, row.clones_wrong) == ("suspect", row.plans, 0)
    assert {f.why for f in row.faults} == {"the output differs from the reference after the given stream was released"}


def test_a_clone_that_is_always_wrong_is_found() -> None:
    """A second clone is as wrong as the first, and agrees with itself: that is no plan whose sums come in any order."""
    row = rows(examine({1: "bad-clone"}, engines=(1,)))[1]
    assert (row.verdict, row.clones_right, row.clones_wrong) == ("ok", 0, 1)
    assert row.faults[0].seen.reproducible


def test_without_stream_memory_operations_the_capture_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_NO_WAIT", "1")
    report = examine({1: "plan-handle"}, engines=(0, 1))
    assert {e: r.verdict for e, r in rows(report).items()} == {0: "ok", 1: "suspect"}
    assert report.held_control.planted == 0
    assert report.verdict == "ok"  # one test alone is a warning (CD651)


def test_a_call_that_waits_for_the_held_stream_is_let_go() -> None:
    report = examine({2: "waits"}, engines=(2,))
    row = rows(report)[2]
    assert (row.verdict, row.plans) == ("ok", 1)
    assert row.faults[0].seen.held is not None
    assert row.faults[0].seen.held.waited


def test_an_engine_that_hangs_is_a_row_and_the_rest_runs() -> None:
    report = examine({0: "hang-run"}, engines=(0, 1), stall=0.7, max_plans=1)
    row = rows(report)[0]
    assert (row.verdict, row.faults[0].why) == ("crashed", "no answer, ended by its own clock in step run")


def test_an_engine_that_wants_too_much_workspace_is_unknown() -> None:
    row = rows(examine({1: "huge"}, engines=(1,)))[1]
    assert (row.verdict, row.faults[0].why) == ("unknown", "wants 2048 MiB of workspace")


def test_an_engine_that_writes_nothing_is_unknown() -> None:
    """Its controls cannot be seen by the output either, so nothing is known of it."""
    row = rows(examine({1: "silent"}, engines=(1,)))[1]
    assert (row.verdict, row.faults[0].seen.silent) == ("unknown", True)


def test_of_an_engine_that_compiles_two_plans_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_PROPOSED", "38")
    report = examine(operations=("attention",), data_types=("bf16",))
    first = rows(report)
    assert (first[0].plans, first[0].left_out) == (4, 0)  # default knobs and three values
    assert (first[1].plans, first[1].left_out, first[1].behaviour) == (2, 2, ("RUNTIME_COMPILATION",))
    assert report.totals.left_out == 6
    named = rows(examine(operations=("attention",), data_types=("bf16",), engines=(1,)))
    assert (named[1].plans, named[1].left_out) == (4, 0)


def test_the_last_words_of_an_engine_that_aborts_are_kept() -> None:
    row = rows(examine({1: "abort-engine"}, engines=(1,)))[1]
    assert row.faults[0].why == "killed by SIGABRT (Unable to load any of {libcublasLt.so.12}) in step engine"


def test_max_plans_and_engine_choose() -> None:
    report = examine(max_plans=3)
    assert [sorted(rows(report, i)) for i in (0, 1)] == [[0, 1, 2], [0, 1, 2]]
    assert sorted(rows(examine(engines=(7, 9)))) == [7, 9]


def test_the_quick_form_asks_the_heuristics_alone_and_confirms_alarms() -> None:
    report = examine({1: "plan-handle"}, operations=(), data_types=("fp16",), quick=True)
    assert [(p.operation, p.layout) for p in report.problems] == [
        ("conv-forward", "nhwc"),
        ("conv-backward-data", "nhwc"),
        ("conv-backward-filter", "nhwc"),
    ]
    assert report.totals.plans == 42
    assert (report.totals.threads_tested, report.totals.destroyed_tested, report.totals.clones) == (0, 0, 0)
    assert report.totals.wrong_stream == 6  # both plans of engine 1, the second by an alarm of test 1
    assert report.held_control.planted == 3 * 12 + 3


@pytest.mark.parametrize(("major", "status"), [(9, 1008), (8, 1)])
def test_a_cudnn_whose_engines_do_not_load_gives_no_verdict(
    major: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_GRAPH", str(status))
    paths = stub(major)
    options = EngineOptions(cudnn=str(paths.cudnn), preload=(str(paths.cuda),), operations=("matmul",), width=1)
    report = run(options)
    name = {1008: "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED", 1: "CUDNN_UNKNOWN_STATUS"}[status]
    detail = ": a reason" if major == 9 else ""
    assert (report.verdict, report.exit_code) == ("no-verdict", 2)
    assert report.problems[0].error == f"graph: {status} {name}: cudnnBackendFinalize OPERATIONGRAPH{detail}"
    assert report.reason == (
        f"CD650 cuDNN {report.cudnn_version}: No execution plan was examined: matmul fp16 row-major b4-128x128x64: "
        + report.problems[0].error
    )


def test_cudnn_8_is_examined_alike() -> None:
    paths = stub(8)
    options = EngineOptions(
        cudnn=str(paths.cudnn), preload=(str(paths.cuda),), operations=("attention",), data_types=("bf16",), width=1
    )
    report = run(options)
    composite, statistics, unified = report.problems
    assert (report.cudnn_version, len(composite.rows), len(statistics.rows)) == ("8.9.7", 12, 12)
    assert unified.error == "graph: 9 CUDNN_STATUS_NOT_SUPPORTED: cudnnBackendCreateDescriptor OPERATION_SDPA_FWD"
    assert report.verdict == "ok"


def test_without_a_gpu_there_is_no_verdict() -> None:
    paths = stub()
    report = run(
        EngineOptions(cudnn=str(paths.cudnn), preload=(str(paths.cuda),), device=1, operations=("matmul",), width=1)
    )
    assert (report.verdict, report.exit_code) == ("no-verdict", 2)
    assert report.problems[0].error == "CudaError: cuInit: 100 CUDA_ERROR_NO_DEVICE"


def test_wrong_use_is_told() -> None:
    with pytest.raises(UsageError) as e:
        run(EngineOptions(cudnn="/nowhere/libcudnn.so.9"))
    assert str(e.value) == "no libcudnn at /nowhere/libcudnn.so.9: give the file libcudnn.so.N by --cudnn."
    with pytest.raises(UsageError) as e:
        examine(operations=("convolution",))
    assert str(e.value).startswith("--op convolution: not known. Known are conv-forward, ")


def test_a_file_that_is_no_library_gives_no_verdict(tmp_path: Path) -> None:
    file = tmp_path / "libcudnn.so.9"
    file.write_text("not a library " * 100)
    report = run(EngineOptions(cudnn=str(file), preload=(str(stub().cuda),), operations=("matmul",), width=1))
    assert report.exit_code == 2
    assert "invalid ELF header" in report.problems[0].error


def test_progress_counts_up_and_an_interruption_keeps_what_there_is() -> None:
    told: list[EngineProgress] = []

    def progress(p: EngineProgress) -> None:
        told.append(p)
        if p.done == 4:
            raise KeyboardInterrupt

    paths = stub()
    options = EngineOptions(
        cudnn=str(paths.cudnn), preload=(str(paths.cuda),), operations=("matmul",), width=1, max_plans=2
    )
    report = run(options, progress)
    assert [(p.done, p.problems, p.plans) for p in told] == [(2, 8, 4), (4, 8, 8)]
    assert report.interrupted
    assert report.totals.ok == 8
    assert [(p.error, p.finished) for p in report.problems] == [("", True)] * 4 + [("interrupted", False)] * 4
    assert (report.verdict, report.exit_code) == ("no-verdict", 2)
    assert report.reason == (
        "CD650 cuDNN 9.19.0: The examination was not finished: 4 of 8 problems were not examined to the end "
        "(interrupted); so far 8 plans, all in the stream of the given handle"
    )


def test_children_that_find_no_room_beside_others_are_tried_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_CROWD", str(tmp_path / "crowd"))
    report = examine(operations=("matmul", "attention"), engines=(3,), width=2)
    assert [p.error for p in report.problems] == [""] * 5
    assert report.totals.ok == 5


def test_the_compiler_of_the_wheels_is_opened_first(tmp_path: Path) -> None:
    cudnn = tmp_path / "nvidia/cudnn/lib/libcudnn.so.9"
    old, new = tmp_path / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12", tmp_path / "nvidia/cu13/lib/libnvrtc.so.13"
    for file in (cudnn, new):
        file.parent.mkdir(parents=True)
        file.touch()
    assert nvrtc_beside(str(cudnn)) == (str(new),)
    old.parent.mkdir(parents=True)
    old.touch()
    assert nvrtc_beside(str(cudnn)) == (str(old), str(new))
    assert nvrtc_beside("/usr/lib/x86_64-linux-gnu/libcudnn.so.9") == ()


def test_a_preload_that_does_not_load_does_no_harm() -> None:
    paths = stub()
    preload = ("/nowhere/libcublasLt.so.13", str(paths.cuda))
    options = EngineOptions(cudnn=str(paths.cudnn), preload=preload, operations=("matmul",), engines=(0,), width=1)
    assert run(options).verdict == "ok"


def test_no_time_leaves_no_verdict() -> None:
    report = examine(timeout=0.0)
    assert report.exit_code == 2
    assert [(p.error, p.finished) for p in report.problems] == [("the time was up", False)] * 2
    assert report.reason.endswith("2 of 2 problems were not examined to the end (the time was up); no plan so far")


def test_the_order_of_children_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two children at a time give the same rows as one."""
    one, two = (
        examine({1: "plan-handle"}, operations=("matmul", "attention"), engines=(0, 1), width=width) for width in (1, 2)
    )

    def counts(parts: tuple[ProblemReport, ...]) -> list[Any]:
        return [(p.operation, p.shape, [(r.engine, r.verdict, r.plans) for r in p.rows]) for p in parts]

    assert counts(one.problems) == counts(two.problems)
