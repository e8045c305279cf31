"""The live check of `check`: a child per GPU and copy, all at once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cudnn_doctor.live.one_device import only
from cudnn_doctor.live.parent import Job, JobOutcome, Task, run_jobs
from cudnn_doctor.live.process import Child
from cudnn_doctor.live.results import scenario_results
from cudnn_doctor.model.live import ScenarioResult

BODY = "cudnn_doctor.scenarios.live_check:run"


class EarlyChecks:
    """Children of the live check that start before it is known which cuDNN they are to open.

    cuInit and the context take 0.2 s in the driver, as long as it takes to find out which copy wins: they run beside
    that. What `live_check` does not take over must be given to `abandon`.
    """

    def __init__(self, devices: Sequence[int], deadline: float) -> None:
        until = time.monotonic() + deadline
        alone = len(devices) > 1
        self.jobs = {d: _job(d, {}, alone, deadline) for d in devices}
        self.children = {d: Child(job, until, hold=True) for d, job in self.jobs.items()}

    def abandon(self) -> None:
        """Ends every child that nobody took over."""
        while self.children:
            self.children.popitem()[1].abandon()


def live_check(
    devices: Sequence[int],
    copies: Sequence[tuple[str, Sequence[str]]],
    deadline: float,
    early: EarlyChecks | None = None,
) -> tuple[ScenarioResult, ...]:
    """Runs the live check of every copy on every device.

    `devices` are CUDA ordinals as the user's environment shows them (CUDA_VISIBLE_DEVICES applies); with several, each
    child sees its own alone. A copy is the path of a libcudnn and the libraries that the framework would have loaded
    before it. `deadline` is in seconds. `early` are children that run already, for the first copy.
    """
    jobs: list[Job] = []
    paths: list[str] = []
    started: dict[int, Child] = {}
    for path, preload in copies:
        for device in devices:
            args = {"cudnn": path, "preload": list(preload)}
            child = early.children.pop(device, None) if early else None
            if child and early:
                child.tell(args)
                started[len(jobs)] = child
                jobs.append(early.jobs[device])
            else:
                jobs.append(_job(device, args, len(devices) > 1, deadline))
            paths.append(path)
    if early:
        early.abandon()
    outcomes = run_jobs(jobs, deadline=deadline, linger=True, started=started)
    return results_of(outcomes, paths)


def check_jobs(
    devices: Sequence[int], copies: Sequence[tuple[str, Sequence[str]]], environ: Mapping[str, str], deadline: float
) -> list[Job]:
    """The children of `live_check`, for a caller that runs them with another environment beside others."""
    return [
        _job(device, {"cudnn": path, "preload": list(preload)}, len(devices) > 1, deadline, environ)
        for path, preload in copies
        for device in devices
    ]


def results_of(outcomes: Iterable[JobOutcome], paths: Iterable[str]) -> tuple[ScenarioResult, ...]:
    """What the children did, each with the path of the libcudnn that it opened."""
    return tuple(
        msgspec.structs.replace(r, cudnn=path)
        for outcome, path in zip(outcomes, paths, strict=True)
        for r in scenario_results(outcome)
    )


def _job(
    device: int, args: Mapping[str, object], alone: bool, deadline: float, environ: Mapping[str, str] | None = None
) -> Job:
    task = Task(id="live-check", body=BODY, args={"device": 0 if alone else device, **args})
    return Job(
        tasks=(task,),
        device=device,
        set_env={"CUDA_VISIBLE_DEVICES": only(device, os.environ if environ is None else environ)} if alone else {},
        deadline=deadline,
    )
