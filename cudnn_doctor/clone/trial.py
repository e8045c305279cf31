"""The trial: copy, run, change, run again, compare, remove; the original is read before and after."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from cudnn_doctor.clone import copying, integrity
from cudnn_doctor.clone.advice import fixes_for
from cudnn_doctor.clone.fixes import names_in
from cudnn_doctor.clone.installing import Installer
from cudnn_doctor.clone.running import in_copy, run_times, variables
from cudnn_doctor.clone.source import clonable, refuse_outside
from cudnn_doctor.clone.verdicts import EXIT, bisect, verdict_of
from cudnn_doctor.model.base import Base
from cudnn_doctor.model.facts import Package, TargetEnv
from cudnn_doctor.model.package_trial import Attempt, PackageChange, PackageTrial, Series, Step, Verdict
from cudnn_doctor.probe.packages import installed, probe_packages

Say = Callable[[str], None]


class Request(Base, frozen=True, kw_only=True):
    """What to try: a command (the words after --), how often, how long each time may take in seconds."""

    command: tuple[str, ...]
    times: int
    timeout: float
    find_links: tuple[str, ...] = ()
    download: bool = False
    verify: str = ""  # the command that shows whether it worked for good
    built_in: str = ""  # the framework whose built-in test the command is


class _Copy:
    """A copy while it is in use. It goes at the end, on an error, on Ctrl-C and on SIGTERM and SIGHUP; a maker that
    was killed leaves it to the next call."""

    def __init__(self, patient: TargetEnv, changed: Sequence[str], say: Say) -> None:
        self.prefix = clonable(patient)
        place = copying.plan(self.prefix)
        size = place.size
        say(
            f"copying {self.prefix}: {size.files} files, {size.bytes / (1 << 30):.1f} GiB by {place.method} into "
            f"{place.folder}, where {place.free / (1 << 30):.0f} GiB are free"
        )
        self.before = integrity.state_of(self.prefix, changed)
        self._changed = tuple(changed)
        self._handlers = {s: signal.signal(s, _interrupt) for s in (signal.SIGTERM, signal.SIGHUP)}
        try:
            self.top, self.clone = copying.make(self.prefix, place)
        except BaseException:
            self._restore()
            raise
        self.env = self.top / "env"

    def __enter__(self) -> _Copy:
        return self

    def __exit__(self, *_: object) -> None:
        copying.remove(self.top)
        self._restore()

    def original(self) -> str:
        """Whether the original is as it was, in words."""
        return integrity.in_words(self.before, integrity.state_of(self.prefix, self._changed))

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def compare(
    patient: TargetEnv, change: PackageChange, request: Request, environ: Mapping[str, str], say: Say
) -> PackageTrial:
    """Runs the command before and after the change.

    Raises:
        UsageError: the environment cannot be cloned, there is no room, or nothing can install there.
        OSError: the copy could not be made.
    """
    names = names_in(change)
    if not change.packages:
        return _variables_only(patient, change, request, environ, say)
    refuse_outside(Path(patient.prefix), patient, names)
    with _Copy(patient, names, say) as copy:
        env = str(copy.env)
        installer = Installer(copy.env, find_links=request.find_links, download=request.download)
        versions = _versions(patient, copy)
        run = _runner(copy, request, say)
        before = run("before", PackageChange(), environ)
        error = ""
        for words in change.packages:
            say(f"{installer.name} {' '.join(words)}")
            error = error or installer.run(words, variables(environ, str(copy.prefix), env, ()))
        now = _versions(patient, copy)
        changed = sorted(n for n in versions.keys() | now.keys() if versions.get(n) != now.get(n))
        after = () if error else run("after", change, environ)
        series = [
            Series(attempts=a, packages={n: v.get(n, "not installed") for n in changed})
            for a, v in ((before, versions), (after, now))
        ]
        verdict: Verdict = "not-comparable"
        reason = f"the change could not be made: {error}"
        if not error:
            verdict, reason = verdict_of(*series)
        packages = installed(probe_packages(patient))
        fixes = fixes_for(patient, change, {n: now[n] for n in changed if n in now}, packages, request.verify)
        return PackageTrial(
            verdict=verdict,
            reason=reason,
            exit_code=EXIT[verdict],
            command=() if request.built_in else request.command,
            change=change,
            before=series[0],
            after=series[1] if after else None,
            clone=copy.clone,
            original=copy.original(),
            fixes=fixes if verdict == "proved" else (),
            remarks=_remarks(request, copy.prefix, changed, error),
        )


def find_version(
    patient: TargetEnv,
    distribution: str,
    versions: Sequence[str],
    request: Request,
    environ: Mapping[str, str],
    say: Say,
) -> PackageTrial:
    """Bisects over versions of one distribution, which are in order.

    Raises:
        UsageError, OSError: as `compare`.
    """
    refuse_outside(Path(patient.prefix), patient, (distribution,))
    with _Copy(patient, (distribution,), say) as copy:
        installer = Installer(copy.env, find_links=request.find_links, download=request.download)
        run = _runner(copy, request, say)

        def fails(version: str) -> Step:
            words = ("install", "--no-deps", f"{distribution}=={version}")
            error = installer.run(words, variables(environ, str(copy.prefix), str(copy.env), ()))
            if error:
                return Step(version=version, failed=0, of=0, error=error)
            attempts = run(version, PackageChange(), environ)
            return Step(version=version, failed=sum(not a.ok for a in attempts), of=len(attempts))

        steps, turning, reason = bisect(versions, fails)
        good = _good(steps, turning)
        change = PackageChange(packages=(("install", f"{distribution}=={good}"),) if good else ())
        fixes = fixes_for(patient, change, {distribution: good}, installed(probe_packages(patient)), request.verify)
        return PackageTrial(
            verdict="proved" if turning else "no-difference",
            reason=reason,
            exit_code=0 if turning else 1,
            command=request.command,
            change=change,
            steps=steps,
            turning=turning,
            clone=copy.clone,
            original=copy.original(),
            fixes=fixes if turning else (),
        )


def _good(steps: Sequence[Step], turning: tuple[str, str] | None) -> str:
    return next((s.version for s in steps if turning and s.version in turning and not s.failed), "")


def _runner(
    copy: _Copy, request: Request, say: Say
) -> Callable[[str, PackageChange, Mapping[str, str]], tuple[Attempt, ...]]:
    env, prefix = str(copy.env), str(copy.prefix)

    def run(label: str, change: PackageChange, environ: Mapping[str, str]) -> tuple[Attempt, ...]:
        say(f"{label}: {request.times} runs")
        ready = variables(environ, prefix, env, change.variables)
        command = in_copy(request.command, prefix, env)
        return run_times(request.times, command, ready, timeout=request.timeout, env=env, scratch=str(copy.top))

    return run


def _variables_only(
    patient: TargetEnv, change: PackageChange, request: Request, environ: Mapping[str, str], say: Say
) -> PackageTrial:
    """Variables alone need no copy."""
    prefix = patient.prefix
    series = []
    for label, variables_ in (("before", ()), ("after", change.variables)):
        say(f"{label}: {request.times} runs")
        ready = variables(environ, prefix, prefix, variables_)
        command = in_copy(request.command, prefix, prefix)
        attempts = run_times(request.times, command, ready, timeout=request.timeout, env=prefix, scratch=None)
        series.append(Series(attempts=attempts, packages={}))
    verdict, reason = verdict_of(*series)
    return PackageTrial(
        verdict=verdict,
        reason=reason,
        exit_code=EXIT[verdict],
        command=() if request.built_in else request.command,
        change=change,
        before=series[0],
        after=series[1],
        fixes=fixes_for(patient, change, {}, (), request.verify) if verdict == "proved" else (),
        remarks=(
            "only variables change: it was run in the environment itself, no copy was made",
            *_remarks(request, Path("/no copy"), ("",), ""),
        ),
    )


def _versions(patient: TargetEnv, copy: _Copy) -> dict[str, str]:
    """Every CUDA and framework distribution in the copy, with its version."""
    from msgspec.structs import replace

    prefix, env = str(copy.prefix), str(copy.env)
    folders = tuple(env + f[len(prefix) :] for f in patient.site_packages if f.startswith(f"{prefix}/"))
    found: tuple[Package, ...] = installed(probe_packages(replace(patient, prefix=env, site_packages=folders)))
    return {p.name: p.version for p in found}


def _remarks(request: Request, prefix: Path, changed: Sequence[str], error: str) -> tuple[str, ...]:
    remarks = []
    if request.built_in:
        remarks.append(
            f"run was the built-in test of {request.built_in}: convolution, RNN, attention in fp32, fp16, bf16"
        )
    if any(f"{prefix}{os.sep}" in word for word in request.command[1:]):
        remarks.append(f"an argument of the command names {prefix}: there the original was used")
    if not changed and not error:
        remarks.append("the installation changed no version: what was asked for was there already")
    return tuple(remarks)
