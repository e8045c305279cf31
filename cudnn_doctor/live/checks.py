"""The live check of `check`: a child per GPU and copy, all at once."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cudnn_doctor.live.mask import only
from cudnn_doctor.live.parent import Job, Task, run_jobs
from cudnn_doctor.live.results import scenario_results
from cudnn_doctor.model import ScenarioResult

BODY = "cudnn_doctor.scenarios.live_check:run"


def live_check(
    devices: Sequence[int], copies: Sequence[tuple[str, Sequence[str]]], deadline: float
) -> tuple[ScenarioResult, ...]:
    """Runs the live check of every copy on every device.

    `devices` are CUDA ordinals as the user's environment shows them (CUDA_VISIBLE_DEVICES applies); with several, each
    child sees its own alone. A copy is the path of a libcudnn and the libraries that the framework would have loaded
    before it. `deadline` is in seconds.
    """
    jobs = [_job(device, path, preload, len(devices) > 1, deadline) for path, preload in copies for device in devices]
    outcomes = run_jobs(jobs, deadline=deadline, linger=True)
    return tuple(r for outcome in outcomes for r in scenario_results(outcome))


def _job(device: int, path: str, preload: Sequence[str], alone: bool, deadline: float) -> Job:
    args = {"device": 0 if alone else device, "cudnn": path, "preload": list(preload)}
    return Job(
        tasks=(Task(id="live-check", body=BODY, args=args),),
        device=device,
        set_env={"CUDA_VISIBLE_DEVICES": only(device, os.environ)} if alone else {},
        deadline=deadline,
    )
