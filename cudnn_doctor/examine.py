"""The pipe: facts and live results in, a `Report` out. Commands differ only in what they put into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from cudnn_doctor import __version__
from cudnn_doctor.model import verdict as exits
from cudnn_doctor.model.base import Absent, Base, Fact, decode
from cudnn_doctor.model.facts import CudaInit, Patient, ProbeFailure, Snapshot
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.report import Owner, Report, Severity, SnapshotFile, Tool

if TYPE_CHECKING:
    from datetime import date
    from threading import Thread

    from cudnn_doctor.live.checks import EarlyChecks
    from cudnn_doctor.live.questions import Answer
    from cudnn_doctor.matrix.tables import Matrix
    from cudnn_doctor.probe import Libraries

LARGEST = 64 << 20  # bytes of a recording; a real one has 0.2 MB
REQUIREMENTS = {  # what --require takes, and the rule that answers it
    "gpu": "CD101",
    "driver": "CD114",
    "cudnn": "CD301",
    "tensorflow": "CD415",
    "torch": "CD415",
    "jax": "CD415",
}


class UsageError(ValueError):
    """The user asked for something that cannot be; the text says what is, what it clashes with and what to do."""


class Options(Base, frozen=True, kw_only=True):
    """What the user asked for."""

    env: str | None = None
    live: bool = True
    all_cudnn: bool = False
    devices: tuple[int, ...] = ()  # CUDA ordinals; empty for all
    timeout: float = 20.0  # seconds for all live work
    matrix: Path | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    fail_on: Severity = "error"
    owner: Owner | None = None
    exit_style: exits.ExitStyle = "plain"


class Facts(Base, frozen=True, kw_only=True):
    """What there is to judge, live or replayed."""

    snapshot: Snapshot
    scenarios: tuple[ScenarioResult, ...] = ()
    replayed: str = ""  # name of the recording


def facts(options: Options, environ: Mapping[str, str], replay: str | None) -> Facts:
    """This machine's facts, or those of the recording that `replay` names.

    Raises:
        UsageError: as `gather` and `load`, or options that contradict each other.
    """
    gpu = "--device" if options.devices else "--all-cudnn" if options.all_cudnn else ""
    here = "--env" if options.env is not None else gpu
    if replay is not None and here:
        raise UsageError(f"{here} is for this machine, and --replay judges a recording: leave one of them out.")
    if gpu and not options.live:
        raise UsageError(f"{gpu} is for the live check, and --no-live leaves that out: leave one of them out.")
    return gather(options, environ) if replay is None else load(replay)


def gather(options: Options, environ: Mapping[str, str]) -> Facts:
    """Reads this machine; live children run meanwhile.

    Raises:
        UsageError: `--env` names nothing that is a Python environment, or `--device` a device that is not there.
    """
    from cudnn_doctor import probe
    from cudnn_doctor.probe.cudnn_copies import with_answers
    from cudnn_doctor.probe.driver import with_init

    patient = find_patient(options, environ)
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
        cudnn=with_answers(snapshot.cudnn, live.answers),
        failures=(*snapshot.failures, *live.failures),
    )
    return Facts(snapshot=snapshot, scenarios=live.results)


def find_patient(options: Options, environ: Mapping[str, str]) -> Patient:
    """The environment to examine.

    Raises:
        UsageError: `--env` names none.
    """
    from cudnn_doctor.probe import target_env as patient

    if options.env == "":
        raise UsageError("--env is empty; it takes a virtual environment, a conda prefix or a python executable.")
    try:
        return patient.find_patient(options.env, environ)
    except ValueError as e:
        raise UsageError(str(e)) from e


class Bench(Base, frozen=True, kw_only=True):
    """What a live command works on: devices by CUDA ordinal, copies of cuDNN with the libraries to load before."""

    devices: tuple[int, ...]
    copies: tuple[tuple[str, tuple[str, ...]], ...]


def bench(options: Options, environ: Mapping[str, str], which: str | None) -> Bench:
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
        copies = named_copies(read_libraries(find_patient(options, environ), environ), which)
    except ValueError as e:
        raise UsageError(str(e)) from e
    return Bench(devices=devices, copies=copies)


def _prepare(options: Options, libraries: Libraries) -> None:
    """Loads what judging will need while the children work; a matrix that is wrong is told when it is used."""
    from importlib import import_module

    from cudnn_doctor.rules import all_rules

    all_rules()
    if any(f.requires for f in libraries.frameworks):
        import_module("packaging.requirements")
    with suppress(ValueError):  # MatrixError is one
        _matrix(options.matrix)


@cache
def _matrix(overlay: Path | None) -> Matrix:
    from cudnn_doctor.matrix.tables import load_matrix

    return load_matrix(overlay)


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

        self._libcuda = bool(find_on_path("libcuda.so.1", Path("/"), self.environ))
        if self.options.live:
            self.devices = devices_to_check(self.environ, self.options.devices)
        if self.devices:
            from cudnn_doctor.live.checks import EarlyChecks

            self._early = EarlyChecks(self.devices, self._left())
        elif self._libcuda:
            self._run(self._ask_driver)

    def use(self, libraries: Libraries) -> None:
        """Goes on now that it is known which cuDNN wins, and asks every copy its version."""
        if self.devices:
            from cudnn_doctor.live.choose import choose_copies

            chosen = choose_copies(libraries, everything=self.options.all_cudnn)
            self._run(partial(self._check, self.devices, chosen))
        if libraries.cudnn:
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


def load(name: str) -> Facts:
    """A snapshot or report file, or `example:NAME`, one of the recordings that ship with the tool.

    Raises:
        UsageError: not there, not readable, not JSON of ours, or of a later schema.
    """
    path = _example(name.removeprefix("example:")) if name.startswith("example:") else Path(name)
    try:
        with open(0 if name == "-" else path, "rb", closefd=name != "-") as f:
            data = f.read(LARGEST + 1)
    except OSError as e:
        raise UsageError(f"cannot read {name!r}: {e.strerror}. It takes a file of `cudnn-doctor snapshot`.") from e
    if len(data) > LARGEST:
        raise UsageError(f"{name} has more than {LARGEST >> 20} MiB: no snapshot or report of cudnn-doctor.")
    if data.startswith(b"PK\3\4"):
        raise UsageError(f"{name} is an archive: unpack report.json (of `report -o FILE.zip`) and give that one.")
    kinds: dict[str, type[Report] | type[SnapshotFile]] = {
        "cudnn-doctor/report/1": Report,
        "cudnn-doctor/snapshot/1": SnapshotFile,
    }
    try:
        data = _utf8(data)
        schema = decode(data, _Head).schema
        if schema not in kinds:
            raise UsageError(f"{name} has schema {schema!r}; this version reads {', '.join(kinds)}.")
        document = decode(data, kinds[schema])
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise UsageError(f"{name} is not a snapshot or report of cudnn-doctor: {e}.") from e
    return Facts(snapshot=document.snapshot, scenarios=document.scenarios, replayed=name)


def _utf8(data: bytes) -> bytes:
    """Without the mark that editors of Windows put in front; the `>` of its PowerShell writes UTF-16."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


class _Head(msgspec.Struct):
    schema: str


def examples() -> tuple[str, ...]:
    """Names of the recordings that ship with the tool."""
    return tuple(sorted(p.stem for p in (Path(__file__).parent / "examples").glob("*.json")))


def _example(name: str) -> Path:
    if name not in examples():
        raise UsageError(f"no example {name!r}; there are {', '.join(examples()) or 'none here'}.")
    return Path(__file__).parent / "examples" / f"{name}.json"


def judge(facts: Facts, options: Options, today: date) -> Report:
    """Applies the rules. Pure but for reading the matrix file.

    Raises:
        UsageError: `--only`, `--skip` or `--require` name nothing known, or the matrix file is inconsistent.
    """
    from cudnn_doctor.rules import all_rules
    from cudnn_doctor.rules.base import Case
    from cudnn_doctor.rules.selection import select_rules

    unknown = [r for r in options.require if r not in REQUIREMENTS]
    if unknown:
        raise UsageError(f"--require {unknown[0]}: not known; it takes {', '.join(REQUIREMENTS)}.")
    asked = {REQUIREMENTS[r] for r in options.require}
    told = {"CD512"} if facts.snapshot.failures else set()  # what a failed probe left out is no pass for anybody
    loaded: list[Matrix] = []

    def load_once() -> Matrix:
        loaded[:] = [_matrix(options.matrix)]
        return loaded[0]

    try:
        rules = select_rules(all_rules(), only=options.only, skip=options.skip, always=asked | told)
        if options.matrix:
            load_once()
        case = Case(facts.snapshot, facts.scenarios, load_matrix=load_once, required=options.require)
        findings = tuple(f for rule in rules for f in rule.apply(case))
    except ValueError as e:  # of select_rules, or a MatrixError
        raise UsageError(str(e)) from e
    if options.owner:
        findings = tuple(f for f in findings if f.owner == options.owner or f.status == "crashed")
    left_out = not options.live and not facts.scenarios  # the user left the live check out: no answer is owed
    required = {r.code for r in rules if r.required and not (left_out and r.code.startswith("CD6"))}
    verdict, reason = exits.judge(findings, fail_on=options.fail_on, required=required | asked)
    old = loaded[0].age_note(today) if loaded else None
    replayed = f"Replayed from {facts.replayed}, recorded {facts.snapshot.taken_at}; not this machine."
    return Report(
        tool=tool(loaded[0].checked_on if loaded else ""),
        verdict=verdict,
        exit_code=exits.exit_code(verdict, findings, options.exit_style),
        fail_on=options.fail_on,
        reason=reason,
        findings=findings,
        scenarios=facts.scenarios,
        snapshot=facts.snapshot,
        notes=(*([old] if old else ()), *([replayed] if facts.replayed else ())),
    )


def today() -> date:
    """The date, in UTC: a machine's time zone says nothing about the age of data."""
    from datetime import datetime, timezone

    return datetime.now(timezone.utc).date()


def tool(matrix_checked_on: str = "") -> Tool:
    """Who wrote a document."""
    return Tool(version=__version__, matrix_checked_on=matrix_checked_on)


def snapshot_file(facts: Facts) -> SnapshotFile:
    """The document of `cudnn-doctor snapshot`."""
    return SnapshotFile(tool=tool(), snapshot=facts.snapshot, scenarios=facts.scenarios)
