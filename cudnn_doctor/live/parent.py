"""Child processes for everything that touches libcuda or libcudnn.

A library may crash, abort, hang, print a hundred megabytes, close every descriptor or kill its process group: all of
that comes back as data, whole and on time. How one child is started, listened to and ended is in live/process.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from cudnn_doctor.live.process import Child
from cudnn_doctor.live.transcript import Job, JobOutcome, Task, TaskOutcome, not_started

if TYPE_CHECKING:
    import selectors

__all__ = ["Job", "JobOutcome", "Task", "TaskOutcome", "run_jobs"]

Hear = Callable[[JobOutcome], Job | None]


def run_jobs(
    jobs: Sequence[Job],
    *,
    deadline: float,
    width: int | None = None,
    hear: Hear | None = None,
    linger: bool = False,
    started: Mapping[int, Child] | None = None,
) -> tuple[JobOutcome, ...]:
    """Runs all jobs, at most `width` children at a time, and returns their outcomes in the order of `jobs`, then those
    of the jobs that followed.

    `deadline` is in seconds from now and bounds the whole call; children that have not ended by then are killed, those
    not yet started are `not-started`. `hear` is told of each child as it ends, and may name a job to follow it. With
    `linger` a child counts as ended once it has said its last word; taking its CUDA context down (0.1 s) then goes on
    beside the caller's work and is awaited at exit. `started` are children that run already, by their place in `jobs`.
    """
    import selectors

    until = time.monotonic() + deadline
    waiting, count = list(enumerate(jobs)), len(jobs)
    outcomes: dict[int, JobOutcome] = {}
    running: dict[int, Child] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                now = time.monotonic()
                while waiting and len(running) < (width or count) and now < until:
                    index, job = waiting.pop(0)
                    ends = min(until, now + job.deadline)
                    child = (started or {}).get(index) or Child(job, ends)
                    child.until, child.linger = ends, linger
                    child.listen(selector)
                    running[index] = child
                if now >= until:
                    outcomes.update((i, not_started(job, "no time was left for it")) for i, job in waiting)
                    waiting.clear()
                _wait(selector, running.values())
                for index, child in list(running.items()):
                    outcome = child.outcome()
                    if outcome is not None:
                        del running[index]
                        outcomes[index] = outcome
                        follower = hear(outcome) if hear else None
                        if follower is not None:
                            waiting.append((count, follower))
                            count += 1
        finally:
            for child in running.values():  # an interrupted run (Ctrl-C) leaves no child behind either
                child.abandon()
    return tuple(outcomes[i] for i in range(count))


def _wait(selector: selectors.BaseSelector, children: Collection[Child]) -> None:
    if not children:
        return
    timeout = max(0.0, min(c.until for c in children) - time.monotonic())
    if any(c.pidfd is None for c in children):
        timeout = min(timeout, 0.01)
    if any(c.over for c in children):
        timeout = 0.0
    for key, _ in selector.select(timeout):
        key.data()
