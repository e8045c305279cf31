"""The decision: what was seen of a plan, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from cudnn_doctor.engines.verdicts import WAITS, clone_right, controls, engine_row, judge_plan
from cudnn_doctor.model.engines import (
    CaptureSeen,
    CloneSeen,
    Control,
    DestroyedSeen,
    HeldSeen,
    PlanSeen,
    PlanVerdict,
    ThreadsSeen,
)

RIGHT, WRONG = CaptureSeen(given=2, kernels=2), CaptureSeen(plan=2, kernels=2)
HELD, EARLY = HeldSeen(equal=True), HeldSeen(early=True, equal=True)
NO_CAPTURE = CaptureSeen(error="cudnnBackendExecute: 3000 CUDNN_STATUS_NOT_SUPPORTED")
NO_WAIT = HeldSeen(error="cuStreamWaitValue32: 801 CUDA_ERROR_NOT_SUPPORTED")


def plan(**changes: Any) -> PlanSeen:
    """A right plan with both controls seen, changed."""
    fields: dict[str, Any] = {
        "key": "e5",
        "engine": 5,
        "source": "index",
        "capture": RIGHT,
        "capture_control": WRONG,
        "held": HELD,
        "held_control": EARLY,
    }
    return PlanSeen(**{**fields, **changes})


CASES: list[tuple[str, PlanSeen, PlanVerdict, str]] = [
    ("right by both", plan(), "ok", ""),
    ("right by capture, no memory operations", plan(held=NO_WAIT, held_control=NO_WAIT), "ok", ""),
    ("right by the held stream, not capturable", plan(capture=NO_CAPTURE, capture_control=NO_CAPTURE), "ok", ""),
    (
        "the MXNet fault",
        plan(capture=WRONG, held=EARLY),
        "wrong-stream",
        "2 of 2 graph nodes are in the stream of the handle that built the plan; output or workspace was written while "
        "the given stream was held",
    ),
    (
        "escaped to a stream nobody gave",
        plan(capture=CaptureSeen(), held=EARLY),
        "wrong-stream",
        "no graph node in any captured stream: the work went to a stream that nobody gave; output or workspace was "
        "written while the given stream was held",
    ),
    (
        "one node elsewhere",
        plan(capture=CaptureSeen(given=1, other=1), held=EARLY),
        "wrong-stream",
        "1 of 2 graph nodes are in a third stream; output or workspace was written while the given stream was held",
    ),
    (
        "a node fewer than in the control",
        plan(capture=CaptureSeen(given=1)),
        "suspect",
        "1 graph nodes in the given stream, 2 in the control: some went elsewhere",
    ),
    (
        "capture alone alarms",
        plan(capture=WRONG),
        "suspect",
        "2 of 2 graph nodes are in the stream of the handle that built the plan",
    ),
    (
        "the held stream alone alarms",
        plan(held=EARLY),
        "suspect",
        "output or workspace was written while the given stream was held",
    ),
    (
        "the output is another one",
        plan(held=HeldSeen(equal=False)),
        "suspect",
        "the output differs from the reference after the given stream was released",
    ),
    ("not comparable is no alarm", plan(held=HeldSeen(equal=None)), "ok", ""),
    (
        "a blind capture control",
        plan(capture_control=RIGHT),
        "unknown",
        "the capture control did not see the fault that was put there",
    ),
    (
        "a blind capture control hides an alarm, too",
        plan(capture=WRONG, capture_control=RIGHT),
        "unknown",
        "the capture control did not see the fault that was put there",
    ),
    (
        "a blind held control",
        plan(held_control=HELD),
        "unknown",
        "the held-stream control did not see the fault that was put there",
    ),
    (
        "the control never ran",
        plan(capture_control=None, held_control=None),
        "unknown",
        "the tests did not come to an end",
    ),
    ("the call waits", plan(held=HeldSeen(waited=True)), "ok", ""),
    ("the control waits", plan(held_control=HeldSeen(waited=True)), "ok", ""),
    (
        "neither test can be made",
        plan(capture=NO_CAPTURE, capture_control=NO_CAPTURE, held=NO_WAIT, held_control=NO_WAIT),
        "unknown",
        "cudnnBackendExecute: 3000 CUDNN_STATUS_NOT_SUPPORTED; cuStreamWaitValue32: 801 CUDA_ERROR_NOT_SUPPORTED",
    ),
    (
        "not capturable and it waits",
        plan(capture=NO_CAPTURE, capture_control=NO_CAPTURE, held=HeldSeen(waited=True)),
        "unknown",
        f"cudnnBackendExecute: 3000 CUDNN_STATUS_NOT_SUPPORTED; {WAITS}",
    ),
    ("it wrote nothing", plan(silent=True), "unknown", "a run that was waited for left its output untouched"),
    (
        "it wrote nothing where one looked",
        plan(silent=True, capture=CaptureSeen()),
        "suspect",
        "no graph node in any captured stream: the work went to a stream that nobody gave",
    ),
    ("it killed the child", plan(died="killed by SIGSEGV in step run"), "crashed", "killed by SIGSEGV in step run"),
    ("left out", plan(failure="wants 2048 MiB of workspace"), "unknown", "wants 2048 MiB of workspace"),
    ("nothing was seen", PlanSeen(key="e1", engine=1), "unknown", "the tests did not come to an end"),
]


@pytest.mark.parametrize(("seen", "verdict", "why"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_judge_plan(seen: PlanSeen, verdict: PlanVerdict, why: str) -> None:
    assert judge_plan(seen) == (verdict, why)


def test_a_row_has_the_worst_verdict_and_all_counts() -> None:
    row = engine_row(
        5,
        [
            plan(clone=CloneSeen(ms=2.0, capture=RIGHT, equal=True, same_choice=True), threads=ThreadsSeen(runs=24)),
            plan(key="e5 k2=1", capture=WRONG, held=EARLY),
            plan(key="e5 k2=2", capture=NO_CAPTURE, capture_control=NO_CAPTURE),
            plan(key="e5 k2=3", threads=ThreadsSeen(runs=24, different=3), destroyed=DestroyedSeen(error="2007 X")),
        ],
        ("RUNTIME_COMPILATION",),
        ("TENSOR_CORE",),
    )
    assert (row.engine, row.verdict, row.plans, row.ok, row.wrong_stream, row.suspect) == (
        5,
        "wrong-stream",
        4,
        3,
        1,
        0,
    )
    assert (row.not_capturable, row.threads_tested, row.threads_differ) == (1, 2, 1)
    assert (row.destroyed_tested, row.destroyed_bad, row.clones_right, row.clones_wrong) == (1, 1, 1, 0)
    assert (row.clone_ms, row.behaviour, row.numerical) == (2.0, ("RUNTIME_COMPILATION",), ("TENSOR_CORE",))
    assert [(f.seen.key, f.verdict, f.remarks) for f in row.faults] == [
        ("e5 k2=1", "wrong-stream", ()),
        ("e5 k2=2", "ok", ("not capturable: cudnnBackendExecute: 3000 CUDNN_STATUS_NOT_SUPPORTED",)),
        (
            "e5 k2=3",
            "ok",
            (
                "3 of 24 outputs differ when two threads share the plan",
                "after its handle was destroyed: 2007 X",
            ),
        ),
    ]


def test_the_alarm_of_a_wrong_plan_is_not_counted_again_after_the_destruction() -> None:
    row = engine_row(5, [plan(capture=WRONG, held=EARLY, destroyed=DestroyedSeen(capture=WRONG, equal=True))])
    assert (row.destroyed_tested, row.destroyed_bad) == (1, 0)


@pytest.mark.parametrize(
    ("clone", "right"),
    [
        (CloneSeen(ms=1.0, capture=RIGHT, equal=True, same_choice=True), True),
        (CloneSeen(ms=1.0, capture=NO_CAPTURE, equal=True, same_choice=True), True),
        (CloneSeen(ms=1.0, capture=RIGHT, equal=None, same_choice=True), True),
        (CloneSeen(ms=1.0, capture=WRONG, equal=True, same_choice=True), False),
        (CloneSeen(ms=1.0, capture=RIGHT, equal=False, same_choice=True), False),
        (CloneSeen(ms=1.0, capture=RIGHT, equal=True, same_choice=False), False),
        (CloneSeen(error="3000 CUDNN_STATUS_NOT_SUPPORTED"), False),
    ],
)
def test_what_a_right_clone_is(clone: CloneSeen, right: bool) -> None:
    assert clone_right(clone) is right


def test_controls_count_what_was_planted_and_what_was_seen() -> None:
    plans = [
        plan(),
        plan(capture_control=RIGHT),
        plan(held_control=HeldSeen(waited=True)),
        plan(capture_control=NO_CAPTURE, held_control=NO_WAIT),
        plan(capture_control=None, held_control=HELD),
    ]
    assert controls(plans) == (Control(planted=3, seen=2), Control(planted=3, seen=2))
