"""What `try` does and finds: runs of a program before and after a change, in a throw-away copy of an environment.

Units: bytes, seconds. A path in the copy is written with {env} in place of the copy's folder.
"""

from __future__ import annotations

from typing import Literal

from cudnn_doctor.model.base import Base
from cudnn_doctor.model.report import Fix

Verdict = Literal["proved", "no-difference", "worse", "flaky", "not-comparable"]


class Variable(Base, frozen=True, kw_only=True):
    """A variable of the program's environment; None takes it out."""

    name: str
    value: str | None


class PackageChange(Base, frozen=True, kw_only=True):
    """What is changed between before and after: words of `pip install` and `pip uninstall` in order, and variables."""

    packages: tuple[tuple[str, ...], ...] = ()  # ("install", "nvidia-cudnn-cu12>=9.15"), ("uninstall", "x")
    variables: tuple[Variable, ...] = ()
    origin: str = ""  # "CD302" where it is the fix of a finding


class Attempt(Base, frozen=True, kw_only=True):
    """One run of the program."""

    ok: bool  # it ended by itself with exit code 0
    ending: str  # "exit code 1", "SIGABRT", "no end within 600 s", "not started: ..."
    seconds: float
    said: str = ""  # the last lines that it printed, shortened
    cudnn: tuple[str, ...] = ()  # files of cuDNN that it mapped


class Series(Base, frozen=True, kw_only=True):
    """k runs in one state of the copy."""

    attempts: tuple[Attempt, ...]
    packages: dict[str, str]  # distribution -> version, those that differ between before and after

    @property
    def failed(self) -> int:
        return sum(not a.ok for a in self.attempts)


class Clone(Base, frozen=True, kw_only=True):
    """How the copy was made."""

    source: str
    place: str
    method: Literal["hard links", "reflinks", "copies"]
    files: int
    bytes: int  # of the files, however little of it the copy takes
    free: int  # on the disk of the copy, before
    seconds: float


class Step(Base, frozen=True, kw_only=True):
    """One version that a bisection tried."""

    version: str
    failed: int
    of: int
    error: str = ""  # it could not be installed


class PackageTrial(Base, frozen=True, kw_only=True):
    """The document of `try --format json`."""

    schema: Literal["cudnn-doctor/try/1"] = "cudnn-doctor/try/1"
    verdict: Verdict
    reason: str  # one sentence
    exit_code: int
    command: tuple[str, ...]  # what was run; empty for the built-in probes
    change: PackageChange
    before: Series | None = None
    after: Series | None = None
    steps: tuple[Step, ...] = ()  # of --bisect, in the order tried
    turning: tuple[str, str] | None = None  # the two neighbouring versions between which the outcome changes
    clone: Clone | None = None
    original: str = ""  # "identical: 12 RECORD files, 25311 files by size and time, 14 by sha256"
    fixes: tuple[Fix, ...] = ()  # for the real environment
    remarks: tuple[str, ...] = ()
