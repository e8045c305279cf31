"""Children: whatever they do, the outcome is whole and on time."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cudnn_doctor.engines import keys
from cudnn_doctor.live import become, process, wire
from cudnn_doctor.live import transcript as story
from cudnn_doctor.live.parent import Job, JobOutcome, Task, run_jobs
from cudnn_doctor.model.live import Step


def job(*bodies: tuple[str, dict[str, Any]], **more: Any) -> Job:
    tasks = tuple(Task(id=f"{i}-{b}", body=f"tests.live.bodies:{b}", args=a) for i, (b, a) in enumerate(bodies))
    return Job(tasks=tasks, **more)


def one(*bodies: tuple[str, dict[str, Any]], deadline: float = 10.0, **more: Any) -> JobOutcome:
    (outcome,) = run_jobs([job(*bodies, **more)], deadline=deadline)
    return outcome


def children_of_this_process() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()


def test_tasks_of_a_child_share_their_dictionary_and_keep_their_order() -> None:
    outcome = one(("count", {"add": 2}), ("count", {"add": 5}))
    assert outcome.fate.kind == "completed"
    assert [t.steps for t in outcome.tasks] == [(Step(call="n", value=2),), (Step(call="n", value=7),)]
    assert all(t.begun and t.ended for t in outcome.tasks)


def test_an_exception_is_told_and_the_next_task_runs() -> None:
    outcome = one(("fail", {}), ("count", {"add": 1}))
    assert outcome.fate.kind == "completed"
    assert outcome.tasks[0].error == "ValueError: no[31m such\nthing"
    assert outcome.tasks[0].steps == (Step(call="before"),)
    assert outcome.tasks[1].steps == (Step(call="n", value=1),)


def test_a_failed_must_call_ends_the_task_without_error() -> None:
    (task,) = one(("stop", {})).tasks
    (step,) = task.steps
    assert (step.call, step.label, step.status, step.name, step.detail) == ("cuThing", "l", 3, "NAME_3", "why")
    assert task.ended
    assert task.error == ""


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGKILL])
def test_a_signal_and_the_step_it_came_in(number: signal.Signals) -> None:
    outcome = one(("count", {"add": 1}), ("die", {"signal": int(number)}), ("count", {"add": 1}))
    assert outcome.fate.kind == "signal"
    assert outcome.fate.signal == number.name
    assert outcome.fate.last_step == "cudnnCreate"
    assert [(t.begun, t.ended) for t in outcome.tasks] == [(True, True), (True, False), (False, False)]


def test_the_deadline_of_a_job() -> None:
    start = time.monotonic()
    outcome = one(("count", {"add": 1}), ("sleep", {"seconds": 30}), deadline=10.0)
    assert time.monotonic() - start < 11.5
    assert outcome.fate.kind == "timeout"
    start = time.monotonic()
    (first, second) = run_jobs(
        [job(("sleep", {"seconds": 30}), deadline=0.5), job(("count", {"add": 1}))], deadline=10.0
    )
    assert time.monotonic() - start < 2.0
    assert (first.fate.kind, first.fate.last_step) == ("timeout", "nap")
    assert second.fate.kind == "completed"


def test_jobs_that_find_no_time_are_not_started() -> None:
    outcomes = run_jobs([job(("sleep", {"seconds": 30}))] * 3, deadline=0.5, width=1)
    assert [o.fate.kind for o in outcomes] == ["timeout", "not-started", "not-started"]
    assert outcomes[2].fate.error == "no time was left for it"
    assert [t.begun for t in outcomes[2].tasks] == [False]


def test_width_bounds_how_many_run_at_once() -> None:
    start = time.monotonic()
    outcomes = run_jobs([job(("sleep", {"seconds": 0.3}))] * 4, deadline=20.0, width=2)
    assert time.monotonic() - start >= 0.6
    assert {o.fate.kind for o in outcomes} == {"completed"}


def test_every_child_is_heard_of_and_may_be_followed() -> None:
    heard: list[int] = []

    def hear(outcome: JobOutcome) -> Job | None:
        add = outcome.job.tasks[0].args["add"]
        heard.append(add)
        return job(("count", {"add": add + 10})) if add in (1, 11) else None

    outcomes = run_jobs([job(("count", {"add": i})) for i in range(3)], deadline=10.0, width=1, hear=hear)
    assert heard == [0, 1, 2, 11, 21]
    assert [o.job.tasks[0].args["add"] for o in outcomes] == heard
    assert {o.fate.kind for o in outcomes} == {"completed"}


def test_a_job_that_follows_too_late_is_not_started() -> None:
    sleep = job(("sleep", {"seconds": 30}))
    outcomes = run_jobs([sleep], deadline=0.5, hear=lambda _: sleep)
    assert [o.fate.kind for o in outcomes] == ["timeout", "not-started"]


def test_the_childs_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CD_TEST_REMOVED", "1")
    monkeypatch.setenv("CD_TEST_KEPT", "kept")
    names = ["CD_TEST_REMOVED", "CD_TEST_KEPT", "CD_TEST_SET"]
    outcome = one(
        ("around", {"names": names}),
        set_env={"CD_TEST_SET": "set"},
        unset_env=("CD_TEST_REMOVED",),
        limits={"STACK": 1 << 20},
    )
    values = {s.call: s.value for s in outcome.tasks[0].steps}
    assert values == {
        "env": {"CD_TEST_REMOVED": None, "CD_TEST_KEPT": "kept", "CD_TEST_SET": "set"},
        "core": [0, 0],
        "stack": 1 << 20,
        "leader": True,
        "stdin": "",
        "stop": [],
    }


def test_more_results_than_one_should_keep() -> None:
    outcome = one(("flood", {}))
    assert outcome.fate.kind in ("completed", "exit")
    kept = sum(len(s.value) for s in outcome.tasks[0].steps)
    assert kept <= story.RESULT_LIMIT
    assert "could not be read" in outcome.fate.error


def test_a_grandchild_that_left_the_group_and_holds_the_pipes() -> None:
    start = time.monotonic()
    outcome = one(("fork_and_leave", {"seconds": 20}))
    assert time.monotonic() - start < 5.0
    assert outcome.fate.kind == "completed"
    os.kill(outcome.tasks[0].steps[0].value, signal.SIGKILL)


def test_a_program_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    outcome = one(("count", {"add": 1}))
    assert outcome.fate.kind == "not-started"
    assert outcome.fate.error.startswith("FileNotFoundError: ")


def test_without_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError("seccomp")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    outcome = one(("die", {"signal": int(signal.SIGSEGV)}))
    assert (outcome.fate.kind, outcome.fate.signal) == ("signal", "SIGSEGV")


def test_no_descriptor_and_no_process_is_left() -> None:
    process.reap()
    before = sorted(os.listdir("/proc/self/fd"))
    one(("count", {"add": 1}))
    one(("die", {"signal": int(signal.SIGABRT)}))
    run_jobs([job(("sleep", {"seconds": 30}))], deadline=0.3)
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert children_of_this_process() == []


def test_a_lingering_child_is_waited_for_later() -> None:
    (outcome,) = run_jobs([job(("count", {"add": 1}))], deadline=10.0, linger=True)
    assert outcome.fate.kind == "completed"
    process.reap()
    assert children_of_this_process() == []


def test_a_child_s_own_exit_codes_are_told_apart() -> None:
    codes = [become.NOT_BECOME, wire.LOST_CHANNEL, keys.POISONED]
    assert len(set(codes)) == len(codes)
