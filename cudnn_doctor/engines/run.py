"""The examination: children by operation, data type and layout, replaced where an engine kills them. Parent side."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from cudnn_doctor import __version__
from cudnn_doctor.engines.collect import Record
from cudnn_doctor.engines.problems import Problem, problems
from cudnn_doctor.engines.verdicts import controls
from cudnn_doctor.live.one_device import only
from cudnn_doctor.live.parent import Job, JobOutcome, Task, run_jobs
from cudnn_doctor.model.engines import EngineOptions, EngineProgress, EnginesReport, PlanSeen, ProblemReport, Totals
from cudnn_doctor.model.report import Tool
from cudnn_doctor.model.verdict import NO_VERDICT, exit_code, verdict_of

BODY = "cudnn_doctor.engines.child_task:examine"
MOST_CHILDREN = 8  # contexts are made one after the other by the driver, and each takes device memory
QUICK_CHILDREN = 3  # a context takes as long as the plans of three problems of the quick form

# With the default of 8 hardware queues two streams may share one, and the work of the other side then stands behind a
# held stream (seen on an H200 with plans of 32 kernels and more; never with 16). Each queue makes a context dearer: on
# an H200 0.24 s with one, 0.38 s with 8, 0.98 s with 32.
CHILD_ENV = {"CUDA_DEVICE_MAX_CONNECTIONS": "16"}

Progress = Callable[[EngineProgress], None]


def run(options: EngineOptions, progress: Progress | None = None) -> EnginesReport:
    """Examines every engine that the options ask for. An interruption (Ctrl-C) gives the report of what there is.

    Raises:
        UsageError: an operation or data type that is not known, or no libcudnn at the path.
    """
    from cudnn_doctor.model.errors import UsageError

    start = time.monotonic()
    taken_at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if not Path(options.cudnn).is_file():
        raise UsageError(f"no libcudnn at {options.cudnn}: give the file libcudnn.so.N by --cudnn.")
    records = [Record(p) for p in chosen(options.operations, options.data_types, quick=options.quick)]
    interrupted = False
    try:
        _work(options, records, start + options.timeout, progress)
    except KeyboardInterrupt:
        interrupted = True
    for record in records:
        if not record.finished:
            record.cut("interrupted" if interrupted else "the time was up")
    return report(options, records, taken_at=taken_at, ms=(time.monotonic() - start) * 1000, interrupted=interrupted)


def chosen(operations: Sequence[str], data_types: Sequence[str], *, quick: bool) -> tuple[Problem, ...]:
    """The problems that are asked for.

    Raises:
        UsageError: an operation or data type that is not known, or a choice that leaves nothing.
    """
    from cudnn_doctor.model.errors import UsageError

    try:
        return problems(operations=operations, data_types=data_types, quick=quick)
    except ValueError as e:
        raise UsageError(str(e)) from e


def nvrtc_beside(cudnn: str) -> tuple[str, ...]:
    """libnvrtc of the wheels beside the wheel of a libcudnn: frameworks open it first, for the engines that compile."""
    wheels = Path(cudnn).resolve().parent.parent.parent  # of nvidia/cudnn/lib
    folders = ("cuda_nvrtc/lib", "cu[0-9]*/lib") if wheels.name == "nvidia" else ()
    return tuple(str(p) for folder in folders for p in sorted(wheels.glob(f"{folder}/libnvrtc.so.*")))


def _work(options: EngineOptions, records: Sequence[Record], until: float, progress: Progress | None) -> None:
    """Children until every problem is finished or the time is up; what failed for want of memory once more, alone."""
    by_id = {r.problem.id: r for r in records}
    env = {**CHILD_ENV, "CUDA_VISIBLE_DEVICES": only(options.device, os.environ)}  # a child starts faster on one
    preload = list(dict.fromkeys((*options.preload, *nvrtc_beside(options.cudnn))))

    def job(of: Sequence[Record]) -> Job | None:
        tasks = tuple(_task(options, r, preload, _unshared(r, records)) for r in of if not r.finished)
        return Job(tasks=tasks, set_env=env, deadline=max(0.0, until - time.monotonic())) if tasks else None

    def hear(outcome: JobOutcome) -> Job | None:
        told = [by_id[task.id] for task in outcome.tasks]
        for record, task in zip(told, outcome.tasks, strict=True):
            record.take(task, outcome.fate)
        if progress:
            done = sum(1 for r in records if r.finished)
            progress(EngineProgress(done=done, problems=len(records), plans=sum(len(r.plans) for r in records)))
        return job(told)

    width = options.width or max(1, min(MOST_CHILDREN, (os.cpu_count() or 2) // 2))
    groups: dict[str, list[Record]] = {}
    for index, record in enumerate(records):
        group = str(index % QUICK_CHILDREN) if options.quick else record.problem.group
        groups.setdefault(group, []).append(record)
    while jobs := [j for g in groups.values() if (j := job(g))]:
        left = until - time.monotonic()
        if left <= 0:
            return
        for outcome in run_jobs(jobs, deadline=left, width=width, hear=hear):
            if outcome.fate.kind == "not-started":
                for task in outcome.tasks:
                    by_id[task.id].cut(outcome.fate.error)
        if width == 1:
            return
        width = 1
        for record in records:
            record.again_alone()


def _unshared(record: Record, records: Sequence[Record]) -> tuple[int, ...]:
    """Engines that ended a child on another problem of the same operation when two threads shared a plan: it would cost
    seconds again, and all plans of that child."""
    others = (r for r in records if r is not record and r.problem.operation == record.problem.operation)
    return tuple(sorted({engine for r in others for engine in r.unshared()}))


def _task(options: EngineOptions, record: Record, preload: list[str], unshared: tuple[int, ...]) -> Task:
    """The arguments of body.py's `Work`."""
    return Task(
        id=record.problem.id,
        body=BODY,
        args={
            "problem": msgspec.to_builtins(record.problem),
            "cudnn": options.cudnn,
            "preload": preload,
            "engines": list(options.engines),
            "max_plans": options.max_plans,
            "quick": options.quick,
            "stall": options.stall,
            "done": record.done,
            "destroyed_done": record.settled("destroyed"),
            "threads_done": record.settled("threads"),
            "threads": record.may_share(),
            "unshared": unshared,
            "deadly": record.deadly,
        },
    )


# ---------------------------------------------------------------- the report


def report(
    options: EngineOptions, records: Sequence[Record], *, taken_at: str, ms: float, interrupted: bool
) -> EnginesReport:
    """The report of what the records hold, with its verdict."""
    plans = [p for r in records for p in r.seen()]
    parts = tuple(r.report() for r in records)
    capture, held = controls(plans)
    draft = EnginesReport(
        tool=Tool(version=__version__),
        taken_at=taken_at,
        cudnn=options.cudnn,
        cudnn_version=next((r.version for r in records if r.version), ""),
        device=options.device,
        device_name=next((r.device for r in records if r.device), ""),
        quick=options.quick,
        interrupted=interrupted,
        ms=round(ms, 1),
        verdict="no-verdict",
        exit_code=NO_VERDICT,
        reason="",
        capture_control=capture,
        held_control=held,
        totals=totals(parts, plans),
        problems=parts,
    )
    from cudnn_doctor.rules.engines import findings

    judged = findings(draft)
    verdict, reason = verdict_of(judged, required=("CD650",))
    return msgspec.structs.replace(draft, verdict=verdict, exit_code=exit_code(verdict, judged), reason=reason)


def totals(parts: Sequence[ProblemReport], plans: Sequence[PlanSeen]) -> Totals:
    """Sums over all problems."""
    rows = [row for part in parts for row in part.rows]

    def over(name: str) -> int:
        return sum(int(getattr(row, name)) for row in rows)

    return Totals(
        problems=len(parts),
        plans=len(plans),
        engines=len({(part.operation, row.engine) for part in parts for row in part.rows}),
        ok=over("ok"),
        wrong_stream=over("wrong_stream"),
        suspect=over("suspect"),
        crashed=over("crashed"),
        unknown=over("unknown"),
        not_capturable=over("not_capturable"),
        unsupported=sum(len(refusal.engines) for part in parts for refusal in part.refusals),
        left_out=over("left_out"),
        threads_tested=over("threads_tested"),
        threads_differ=over("threads_differ"),
        own_tested=over("own_tested"),
        own_differ=over("own_differ"),
        destroyed_tested=over("destroyed_tested"),
        destroyed_bad=over("destroyed_bad"),
        clones=over("clones_right") + over("clones_wrong"),
        clones_wrong=over("clones_wrong"),
    )
