"""From what a child wrote to `ScenarioResult`s."""

from __future__ import annotations

import msgspec

from cudnn_doctor.live.parent import JobOutcome, TaskOutcome
from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.native.cudnn import dotted

UNNAMED = ("", "CUDNN_UNKNOWN_STATUS")


def scenario_results(outcome: JobOutcome) -> tuple[ScenarioResult, ...]:
    """One result a task. The fate of the child belongs to the task in which it ended; tasks before it are completed,
    tasks after it were not started."""
    version = cudnn_version(outcome)
    return tuple(
        ScenarioResult(
            scenario=task.id,
            device=outcome.job.device,
            cudnn=str(outcome.job.tasks[0].args.get("cudnn", "")),
            cudnn_version=version,
            fate=_fate(outcome, task),
            steps=named(task.steps, version),
            ms=max(0.0, round(task.ms - waited(task), 3)),
        )
        for task in outcome.tasks
    )


def waited(task: TaskOutcome) -> float:
    """Milliseconds for which a child that was started early had nothing to do."""
    return sum(s.value for s in task.steps if s.call == "waited" and isinstance(s.value, (int, float)))


def cudnn_version(outcome: JobOutcome) -> str:
    """What cudnnGetVersion said in this child; "" when it never answered."""
    for task in outcome.tasks:
        for step in task.steps:
            if step.call == "cudnnGetVersion" and isinstance(step.value, int):
                return dotted(step.value)
    return ""


def named(steps: tuple[Step, ...], version: str) -> tuple[Step, ...]:
    """Steps with the names that the libraries could not give: cuDNN's by (major, code), CUDA's by code."""
    if not any(s.status and s.name in UNNAMED for s in steps):
        return steps
    from cudnn_doctor.knowledge.status import cuda_error, cudnn_status

    major = int(version.split(".", 1)[0]) if version else 0
    done = []
    for step in steps:
        if step.status and step.name in UNNAMED:
            found = cudnn_status(major, step.status) if step.call.startswith("cudnn") else cuda_error(step.status)
            done.append(msgspec.structs.replace(step, name=found.name) if found else step)
        else:
            done.append(step)
    return tuple(done)


def _fate(outcome: JobOutcome, task: TaskOutcome) -> Termination:
    fate = outcome.fate
    if (task.begun and not task.ended) or len(outcome.tasks) == 1 or not any(t.begun for t in outcome.tasks):
        return fate
    if task.ended:
        return Termination(kind="completed", error=task.error)
    return Termination(kind="not-started", error="the child ended before this state's turn")
