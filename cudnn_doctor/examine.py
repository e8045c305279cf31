"""The pipe: facts and live results in, a `Report` out. Commands differ only in what they put into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from cudnn_doctor import recordings
from cudnn_doctor.live import open_files
from cudnn_doctor.model.base import Absent, Base, Fact, value_or
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.facts import CudaInit, FrameworkWord, ProbeFailure, Snapshot, TargetEnv
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination

if TYPE_CHECKING:
    from datetime import date
    from threading import Thread

    from cudnn_doctor.live.checks import EarlyChecks
    from cudnn_doctor.live.questions import Answer
    from cudnn_doctor.probe import Libraries

FRAMEWORK_TIME = 120.0  # seconds at least for --framework; a first import from a slow disk takes a minute


def facts(options: Options, environ: Mapping[str, str], replay: str | None) -> Examination:
    """This machine's facts, or those of the recording that `replay` names.

    Raises:
        UsageError: as `gather` and `load`, or options that contradict each other.
    """
    gpu = "--device" if options.devices else "--all-cudnn" if options.all_cudnn else ""
    here = "--env" if options.env is not None else "--framework" if options.framework else gpu
    if replay is not None and here:
        raise UsageError(f"{here} is for this machine, and --replay judges a recording: leave one of them out.")
    work = gpu or ("--framework" if options.framework else "")
    if work and not options.live:
        raise UsageError(f"{work} is for the live check, and --no-live leaves that out: leave one of them out.")
    return gather(options, environ) if replay is None else recordings.load(replay)


def gather(options: Options, environ: Mapping[str, str]) -> Examination:
    """Reads this machine; live children run meanwhile.

    Raises:
        UsageError: `--env` names nothing that is a Python environment, or `--device` a device that is not there.
    """
    from cudnn_doctor import probe
    from cudnn_doctor.probe.cudnn_copies import not_loaded, with_answers
    from cudnn_doctor.probe.driver import with_init

    patient = find_target_env(options, environ)
    live = _Live(options, environ)

    def go_on(libraries: Libraries) -> None:
        live.use(libraries)
        if live.busy:
            _prepare(options, libraries)

    try:
        live.start()
        snapshot = probe.collect(patient, environ, timeout=options.timeout, on_libraries=go_on)
        live.join()
    except ValueError as e:
        raise UsageError(str(e)) from e
    finally:
        live.abandon()
    snapshot = msgspec.structs.replace(
        snapshot,
        driver=with_init(snapshot.driver, live.driver),
        cudnn=with_answers(snapshot.cudnn, live.answers) if options.live else not_loaded(snapshot.cudnn),
        failures=(*snapshot.failures, *live.failures),
        framework_words=_framework_words(snapshot, environ, options.timeout) if options.framework else (),
    )
    return Examination(snapshot=snapshot, scenarios=live.results)


def _framework_words(snapshot: Snapshot, environ: Mapping[str, str], timeout: float) -> tuple[FrameworkWord, ...]:
    """After everything else, so that the GPU is free for it; importing a framework alone takes seconds."""
    from cudnn_doctor.live.frameworks import ask

    python = value_or(snapshot.patient.python, "")
    names = [f.name for f in snapshot.frameworks if value_or(f.cuda_build, True)]
    return ask(python, names, environ, max(timeout, FRAMEWORK_TIME)) if python else ()


def find_target_env(options: Options, environ: Mapping[str, str]) -> TargetEnv:
    """The environment to examine; children that load its libraries run as its owner from now on.

    Raises:
        UsageError: `--env` names none.
    """
    from cudnn_doctor.live.account import examine_as_owner
    from cudnn_doctor.probe import target_env
    from cudnn_doctor.probe.environment import ALLOWED

    if options.env == "":
        raise UsageError("--env is empty; it takes a virtual environment, a conda prefix or a python executable.")
    try:
        found = target_env.find_target_env(options.env, environ)
    except ValueError as e:
        raise UsageError(str(e)) from e
    examine_as_owner(found.prefix, trust=options.trust_env, variables=ALLOWED)
    return found


class LiveTargets(Base, frozen=True, kw_only=True):
    """What a live command works on: devices by CUDA ordinal, copies of cuDNN with the libraries to load before."""

    devices: tuple[int, ...]
    copies: tuple[tuple[str, tuple[str, ...]], ...]


def live_targets(options: Options, environ: Mapping[str, str], which: str | None) -> LiveTargets:
    """Devices and copies for `reproduce` and `engines`; `which` is their `--cudnn`.

    Raises:
        UsageError: no GPU or no cuDNN to work on, or what was asked for is not there.
    """
    from cudnn_doctor.live.choose import devices_to_check, named_copies
    from cudnn_doctor.probe import read_libraries

    try:
        devices = devices_to_check(environ, options.devices)
        if not devices:
            raise ValueError("no NVIDIA GPU that a program started here could use; `cudnn-doctor check` says why.")
        copies = named_copies(read_libraries(find_target_env(options, environ), environ), which)
    except ValueError as e:
        raise UsageError(str(e)) from e
    return LiveTargets(devices=devices, copies=copies)


def _prepare(options: Options, libraries: Libraries) -> None:
    """Loads what judging will need while the children work; a matrix that is wrong is told when it is used."""
    from importlib import import_module

    from cudnn_doctor.rules import all_rules
    from cudnn_doctor.rules.judge import matrix_with

    all_rules()
    if any(f.requires for f in libraries.frameworks):
        import_module("packaging.requirements")
    with suppress(ValueError):  # MatrixError is one
        matrix_with(options.matrix)


class _Live:
    """Live work of `check` in a thread beside the probes: it waits for children, so threads cost nothing here."""

    def __init__(self, options: Options, environ: Mapping[str, str]) -> None:
        self.options, self.environ = options, environ
        self.answers: Mapping[str, Answer] = {}
        self.driver: Fact[CudaInit] = Absent(reason="not-found", detail="no libcuda.so.1 where the loader looks")
        self.results: tuple[ScenarioResult, ...] = ()
        self.devices: tuple[int, ...] = ()
        self.failures: list[ProbeFailure] = []
        self._until = monotonic() + options.timeout
        self._threads: list[Thread] = []
        self._early: EarlyChecks | None = None
        self._libcuda = False

    def start(self) -> None:
        """Starts what can do without knowing which cuDNN wins: contexts on the devices, or else the driver alone.

        Raises:
            ValueError: a device that was asked for is not there.
        """
        from cudnn_doctor.live.choose import devices_to_check
        from cudnn_doctor.probe.loader_path import find_on_path

        open_files.make_room()
        if not open_files.enough():
            few = f"only {open_files.given()} open files are allowed: no child process was started"
            self.driver = Absent(reason="not-examined", detail=few)
            return
        self._libcuda = bool(find_on_path("libcuda.so.1", Path("/"), self.environ))
        if self.options.live:
            self.devices = devices_to_check(self.environ, self.options.devices)
        if self.devices:
            from cudnn_doctor.live.checks import EarlyChecks

            self._early = EarlyChecks(self.devices, self._left())
        elif self._libcuda:
            self._run(self._ask_driver)

    def use(self, libraries: Libraries) -> None:
        """Goes on now that it is known which cuDNN wins, and asks every copy its version where it may be loaded."""
        if self.devices:
            from cudnn_doctor.live.choose import choose_copies

            chosen = choose_copies(libraries, everything=self.options.all_cudnn)
            self._run(partial(self._check, self.devices, chosen))
        # Without live work no code of the environment runs.
        if libraries.cudnn and self.options.live and open_files.enough():
            self._run(partial(self._ask_versions, [c.real_path for c in libraries.cudnn]))

    @property
    def busy(self) -> bool:
        """Whether there are children to wait for."""
        return bool(self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def abandon(self) -> None:
        """Ends early children that nobody used, after an error."""
        if self._early:
            self._early.abandon()

    def _run(self, work: Callable[[], None]) -> None:
        from threading import Thread

        def guarded() -> None:
            try:
                work()
            except Exception as e:  # as for any other probe: the run goes on and says so
                self.failures.append(ProbeFailure(probe="live work", error=f"{type(e).__name__}: {e}"))

        thread = Thread(target=guarded, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _left(self) -> float:
        """Seconds until the deadline of all live work; a child that starts late has a moment at least."""
        return max(0.2, self._until - monotonic())

    def _check(self, devices: Sequence[int], copies: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        from cudnn_doctor.live.checks import live_check
        from cudnn_doctor.live.questions import init_of

        self.results = live_check(devices, copies, deadline=self._left(), early=self._early)
        init = init_of(self.results)
        if init:
            self.driver = init
        elif self._libcuda:  # no check got as far as cuInit
            self._ask_driver()

    def _ask_versions(self, paths: Sequence[str]) -> None:
        from cudnn_doctor.live.questions import ask_versions

        self.answers = ask_versions(paths, deadline=self._left())

    def _ask_driver(self) -> None:
        from cudnn_doctor.live.questions import ask_driver

        self.driver = ask_driver(deadline=self._left())


def today() -> date:
    """The date, in UTC: a machine's time zone says nothing about the age of data."""
    from datetime import datetime, timezone

    return datetime.now(timezone.utc).date()
