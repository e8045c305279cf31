"""The live check of `check`: a child per GPU and copy, all at once."""

from __future__ import annotations

from collections.abc import Sequence

from cudnn_doctor.live.parent import Job, Task, run_jobs
from cudnn_doctor.live.results import scenario_results
from cudnn_doctor.model import ScenarioResult

BODY = "cudnn_doctor.scenarios.live_check:run"


def live_check(
    devices: Sequence[int], copies: Sequence[tuple[str, Sequence[str]]], deadline: float
) -> tuple[ScenarioResult, ...]:
    """Runs the live check of every copy on every device.

    `devices` are CUDA ordinals as the user's environment shows them (CUDA_VISIBLE_DEVICES applies). A copy is the path
    of a libcudnn and the libraries that the framework would have loaded before it. `deadline` is in seconds.
    """
    jobs = [
        Job(
            tasks=(Task(id="live-check", body=BODY, args={"device": device, "cudnn": path, "preload": list(preload)}),),
            device=device,
            deadline=deadline,
        )
        for path, preload in copies
        for device in devices
    ]
    return tuple(r for outcome in run_jobs(jobs, deadline=deadline, linger=True) for r in scenario_results(outcome))
