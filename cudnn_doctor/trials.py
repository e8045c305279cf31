"""Trials: after a problem, the live check again in child processes with one thing changed, as the fixes say; then the
rules once more over what was seen. A machine without errors pays nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cudnn_doctor import examine
from cudnn_doctor.model.base import Base, known
from cudnn_doctor.model.facts import Limits, Snapshot
from cudnn_doctor.model.live import Change, Trial
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Finding, Report
from cudnn_doctor.rules.base import category_of
from cudnn_doctor.rules.causes import key, wanted
from cudnn_doctor.rules.cuinit import CUINIT
from cudnn_doctor.rules.judge import judge
from cudnn_doctor.rules.live import LIVE_CHECK

if TYPE_CHECKING:
    from cudnn_doctor.live.parent import Job, JobOutcome
    from cudnn_doctor.probe import Libraries

PATHS = ("LD_LIBRARY_PATH", "LD_PRELOAD")  # variables that decide which file a program loads
LIMITS = {"address_space": "AS", "open_files": "NOFILE", "stack": "STACK"}
VISIBLE = "CUDA_VISIBLE_DEVICES"
MOST = 4  # trials: making a context takes 0.1 s and the driver makes one at a time
ENOUGH = 0.3  # seconds: below that no child gets as far as a convolution


def check(options: Options, environ: Mapping[str, str], replay: str | None, today: date) -> tuple[Examination, Report]:
    """Facts and judgement of this machine or of a recording; with errors and time left, the fixes are tried as well.

    Raises:
        UsageError: as `examine.facts` and `judge`.
    """
    until = monotonic() + options.timeout
    examined = examine.facts(options, environ, replay)
    report = judge(examined, options, today)
    if replay is not None or not options.live or not options.trials:
        return examined, report
    changes = wanted(report.findings)[:MOST]
    if not changes:
        return examined, report
    examined = replace(examined, trials=tried(changes, examined, report, options, environ, until, today))
    return examined, judge(examined, options, today)


def tried(
    changes: Sequence[Change],
    examined: Examination,
    report: Report,
    options: Options,
    environ: Mapping[str, str],
    until: float,
    today: date,
) -> tuple[Trial, ...]:
    """One trial a change, all at once; `until` is by the clock of `monotonic`."""
    from cudnn_doctor.live.parent import run_jobs

    left = until - monotonic()
    sets: list[tuple[Change, ...]] = [(c,) for c in changes]
    together = tuple({c.name: c for c in reversed(changes) if c.kind in ("variable", "limit")}.values())
    if len(together) > 1:  # two faults at once: each change alone mends a part
        sets.append(together)
    plans = [_plan(s, examined, options, environ, left) for s in sets]
    outcomes: Iterable[JobOutcome] = ()
    if left > ENOUGH:
        outcomes = run_jobs([j for p in plans for j in p.jobs], deadline=left, linger=True)
    said = iter(outcomes)
    return tuple(
        _trial(p, [next(said) for _ in p.jobs], report, options, today)
        if left > ENOUGH and not p.refused
        else Trial(change=p.change, also=p.also, works=None, outcome=p.refused or "no time was left")
        for p in plans
    )


class _Plan(Base, frozen=True, kw_only=True):
    """What a trial runs, and the facts that hold where its change was made."""

    change: Change
    also: tuple[Change, ...]
    snapshot: Snapshot
    checks: tuple[Job, ...] = ()
    paths: tuple[str, ...] = ()  # of the libcudnn of each check
    versions: tuple[Job, ...] = ()
    refused: str = ""

    @property
    def jobs(self) -> tuple[Job, ...]:
        return (*self.checks, *self.versions)


def _plan(
    changes: Sequence[Change], examined: Examination, options: Options, environ: Mapping[str, str], deadline: float
) -> _Plan:
    from cudnn_doctor.live.checks import check_jobs
    from cudnn_doctor.live.choose import choose_copies, devices_to_check
    from cudnn_doctor.live.questions import version_jobs
    from cudnn_doctor.probe import Libraries, read_libraries

    change, *also = changes
    if any(c.kind == "limit" and not _may_raise(c) for c in changes):
        only_root = "the hard limit stands below it, and this process may not raise that"
        return _Plan(change=change, also=tuple(also), snapshot=examined.snapshot, refused=only_root)
    changed = _environment(changes, environ)
    before = examined.snapshot
    moved = any(c.name in PATHS for c in changes)
    libraries = (
        read_libraries(before.patient, changed)
        if moved
        else Libraries(
            frameworks=before.frameworks, cudnn=before.cudnn, resolutions=before.resolutions, cuda=before.cuda
        )
    )
    devices = devices_to_check(changed, options.devices if all(c.name != VISIBLE for c in changes) else ())
    copies = choose_copies(libraries, everything=options.all_cudnn)
    if change.kind == "copy":
        copies = ((change.value or "", next((p for path, p in copies if path == change.value), ())),)
    ask = [c.real_path for c in libraries.cudnn if moved or c.asked != known("ok", "child process")]
    checks = [_with(j, changes) for j in check_jobs(devices, copies, changed, deadline)]
    versions = [_with(j, changes) for j in version_jobs(ask, deadline)]
    return _Plan(
        change=change,
        also=tuple(also),
        snapshot=_snapshot(before, libraries, changed, changes),
        checks=tuple(checks),
        paths=tuple(path for path, _ in copies for _ in devices),
        versions=tuple(versions),
    )


def _environment(changes: Sequence[Change], environ: Mapping[str, str]) -> dict[str, str]:
    wanted = {c.name: c.value for c in changes if c.kind == "variable"}
    kept = {n: v for n, v in environ.items() if n not in wanted}
    return {**kept, **{n: v for n, v in wanted.items() if v is not None}}


def _with(job: Job, changes: Sequence[Change]) -> Job:
    for change in changes:
        job = _with_one(job, change)
    return job


def _with_one(job: Job, change: Change) -> Job:
    """The job under the change; CUDA_VISIBLE_DEVICES of a child that sees one device of several is its own."""
    if change.kind == "limit":
        return replace(
            job, limits={**job.limits, LIMITS[change.name]: -1 if change.value is None else int(change.value)}
        )
    if change.kind != "variable":
        return job
    if change.value is None:
        return job if change.name in job.set_env else replace(job, unset_env=(*job.unset_env, change.name))
    return replace(job, set_env={change.name: change.value, **job.set_env})


def _may_raise(change: Change) -> bool:
    """Whether a child may set the limit: the hard one allows it, or this process may raise that."""
    import resource

    which = getattr(resource, f"RLIMIT_{LIMITS[change.name]}")
    soft, hard = resource.getrlimit(which)
    wished = resource.RLIM_INFINITY if change.value is None else int(change.value)
    if hard == resource.RLIM_INFINITY or (wished != resource.RLIM_INFINITY and wished <= hard):
        return True
    try:
        resource.setrlimit(which, (soft, wished))
    except (ValueError, OSError):
        return False
    resource.setrlimit(which, (soft, hard))
    return True


def _snapshot(
    before: Snapshot, libraries: Libraries, environ: Mapping[str, str], changes: Sequence[Change]
) -> Snapshot:
    from cudnn_doctor.probe.driver import with_libcuda
    from cudnn_doctor.probe.environment import allowed_variables

    host = replace(before.host, environment=allowed_variables(environ))
    for change in changes:
        host = replace(host, limits=_limits(host.limits, change)) if change.kind == "limit" else host
    driver = with_libcuda(before.driver, environ) if any(c.name in PATHS for c in changes) else before.driver
    return replace(
        before,
        host=host,
        driver=driver,
        cudnn=libraries.cudnn,
        resolutions=libraries.resolutions,
        frameworks=libraries.frameworks,
        cuda=libraries.cuda,
    )


def _limits(limits: Limits, change: Change) -> Limits:
    value = known(-1 if change.value is None else int(change.value), "trial")
    return replace(limits, **{change.name: value})


def _trial(
    plan: _Plan,
    outcomes: Sequence[JobOutcome],
    report: Report,
    options: Options,
    today: date,
) -> Trial:
    """The rules over the facts that hold with the change, and what the children said then."""
    from cudnn_doctor.live.checks import results_of
    from cudnn_doctor.live.questions import answers, init_of
    from cudnn_doctor.probe.cudnn_copies import with_answers
    from cudnn_doctor.probe.driver import with_init

    checks = outcomes[: len(plan.checks)]
    results = results_of(checks, plan.paths)
    driver = plan.snapshot.driver
    init = init_of(results)
    snapshot = replace(
        plan.snapshot,
        driver=with_init(driver, init) if init else driver,
        cudnn=with_answers(plan.snapshot.cudnn, answers(outcomes[len(plan.checks) :])),
    )
    after = judge(Examination(snapshot=snapshot, scenarios=results), options, today)
    cleared = gone(report, after)
    trouble = [f for f in after.findings if _stops(f)]
    works = not trouble and bool(cleared) if plan.change.kind != "copy" else bool(results) and not trouble
    took = max((r.ms for r in results), default=0.0)
    if trouble:
        outcome = trouble[0].title
    elif not cleared and plan.change.kind != "copy":
        outcome = "the same findings stay"
    elif not any(f.code == LIVE_CHECK and f.status == "ok" for f in report.findings) and results:
        outcome = "the same calls work" if report.scenarios else "the live check works"
    else:
        outcome = f"{len(cleared)} {'finding is' if len(cleared) == 1 else 'findings are'} gone"
    return Trial(change=plan.change, also=plan.also, works=works, outcome=outcome, cleared=cleared, ms=took)


def _stops(finding: Finding) -> bool:
    """A call that fails: cuInit, or one of the live check."""
    calls = finding.code == CUINIT or category_of(finding.code) == "Live"
    return calls and finding.status == "problem" and finding.severity == "error"


def gone(before: Report, after: Report) -> tuple[str, ...]:
    """The problems that are no longer there. One that only moved to another subject is not gone."""
    was, now = ({key(f, r.scenarios): f.code for f in r.findings if f.status == "problem"} for r in (before, after))
    moved = {code for name, code in now.items() if name not in was}
    return tuple(name for name, code in was.items() if name not in now and code not in moved)
