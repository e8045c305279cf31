"""Runs a plan: children by phases, results judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from cudnn_doctor.live.parent import Job, JobOutcome, run_jobs
from cudnn_doctor.live.results import scenario_results
from cudnn_doctor.model.base import Fact
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.reproduction import Copy, Device, Request
from cudnn_doctor.reproduce.compare import judged
from cudnn_doctor.reproduce.plan import make_plan
from cudnn_doctor.reproduce.prestart import EarlyStates

Progress = Callable[[int, int, str], None]  # states done, states in all, the state or child that ended


def run_states(
    request: Request,
    copies: Sequence[Copy],
    devices: Sequence[Device],
    mps: Fact[bool],
    environ: Mapping[str, str],
    progress: Progress | None = None,
    early: EarlyStates | None = None,
) -> tuple[ScenarioResult, ...]:
    """Every wanted state under every copy on every device. `early` are children that run already.

    Raises:
        UnknownStateError: a state is asked for that there is not.
    """
    plan = make_plan(request, copies, devices, mps, environ)
    until = time.monotonic() + request.timeout
    total = sum(len(j.tasks) for p in plan.phases for j in p.jobs)
    done = 0
    results: list[ScenarioResult] = []

    def hear(outcome: JobOutcome) -> Job | None:
        nonlocal done
        done += sum(t.begun for t in outcome.tasks)
        if progress:
            progress(done, total, outcome.job.tasks[0].id)
        return _left_over(outcome)

    for phase in plan.phases:
        left = max(0.0, until - time.monotonic())
        last = phase is plan.phases[-1]
        started = {i: c for i, j in enumerate(phase.jobs) if early and (c := early.take(j))} if phase.shared else {}
        for outcome in run_jobs(phase.jobs, deadline=left, width=phase.width, hear=hear, linger=last, started=started):
            rest = _left_over(outcome)
            again = {t.id for t in rest.tasks} if rest else set()
            results += [r for r in scenario_results(outcome) if r.scenario not in again]
    renamed = (msgspec.structs.replace(r, scenario=r.scenario.split("#", 1)[0]) for r in results)
    return tuple(judged(r) for r in (*renamed, *plan.skipped))


def _left_over(outcome: JobOutcome) -> Job | None:
    """The states of a shared child that died before their turn; they get another child."""
    begun = [t.begun for t in outcome.tasks]
    if not any(begun) or all(begun):
        return None
    job = outcome.job
    return msgspec.structs.replace(job, tasks=tuple(t for t, b in zip(job.tasks, begun, strict=True) if not b))
