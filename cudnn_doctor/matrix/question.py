"""A question to the matrix and its answer: the types, and the names and versions that people type."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from cudnn_doctor.matrix.builds import Catalog
from cudnn_doctor.matrix.judgement import Judgement
from cudnn_doctor.matrix.names import capability_of, model_line, shared, spellings, vendor
from cudnn_doctor.matrix.rows import GpuRow, Row
from cudnn_doctor.matrix.solve import Solver
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.matrix.target import System, Target
from cudnn_doctor.model.versions import numbers

LEAST_DRIVER = 100  # a branch has three digits; what is smaller is a CUDA version


class QuestionError(ValueError):
    """A question that cannot be answered as asked: what was given, what would be valid, what comes nearest."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an answer."""

    label: str
    value: str
    source: str = ""
    checked_on: str = ""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do: what it is, what it costs, the command for pip and what that needs."""

    changes: tuple[str, ...] = ()  # "build", "release", "python", "driver"; () = nothing but the command
    text: str
    command: str = ""
    needs: str = ""  # "driver 525.60.13 or newer (install branch 580); Python 3.9 to 3.12"
    costs: str = ""
    notes: tuple[str, ...] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the matrix says. `ways` is what fits, the cheapest change first; `command` and `condition` are those of the
    first, `checked` names the rules that it satisfies. "" when nothing fits."""

    subject: str
    name: str
    title: str
    facts: tuple[Fact, ...] = ()
    verdicts: tuple[Judgement, ...] = ()
    command: str = ""
    checked: str = ""
    condition: str = ""
    ways: tuple[Way, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Literal["ok", "problem", "unknown"]:
        """The worst of the verdicts; notes are information and do not count. No verdict at all is ok: only facts were
        asked for."""
        counted = [v for v in self.verdicts if v.verdict != "problem" or v.severity != "note"]
        if any(v.verdict == "problem" for v in counted):
            return "problem"
        return "unknown" if any(v.verdict == "unknown" for v in counted) else "ok"


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """The question's machine, and the solver for it."""

    matrix: Matrix
    target: Target
    solver: Solver
    cc: str = ""  # the compute capability of the GPU that was named

    @property
    def system(self) -> Literal["linux", "windows"]:
        """Whose driver numbers count."""
        return self.target.driver_system

    @property
    def capabilities(self) -> tuple[str, ...]:
        return self.target.capabilities

    @property
    def driver(self) -> str:
        return self.target.driver

    @property
    def gpu(self) -> str:
        return self.target.gpu

    def of_gpu(self, name: str, row: GpuRow) -> Ask:
        """The same question on another GPU, and on ARM where that GPU is."""
        target = msgspec.structs.replace(self.target, gpu=name, capabilities=(row.cc,))
        if machine_of(name, row) == "aarch64":
            target = msgspec.structs.replace(target, machine="aarch64")
        return ask_about(self.matrix, target, row.cc)

    def of_driver(self, driver: str, system: System) -> Ask:
        """The same question with another driver."""
        return ask_about(self.matrix, msgspec.structs.replace(self.target, driver=driver, system=system), self.cc)


def ask_about(matrix: Matrix, target: Target, cc: str) -> Ask:
    """A question on a machine; `cc` is the capability of the GPU that was named."""
    catalog = Catalog(matrix, target.wheels, target.machine)
    return Ask(matrix=matrix, target=target, solver=Solver(catalog), cc=cc)


def machine_of(gpu: str, row: GpuRow | None) -> str:
    """The machine that a GPU is in: ARM for Jetson, Grace and GB10, else x86-64."""
    arm = row is not None and row.cc in ("12.1", "11.0", "10.1", "8.7", "7.2", "6.2", "5.3")
    return "aarch64" if arm or re.search(r"(?i)\bG[HB]\d{2,3}\b|grace|jetson|spark", gpu) else "x86_64"


def release(text: str, where: str) -> str:
    """A version as given, without a leading "v" or "R".

    Raises:
        QuestionError: when it is none.
    """
    plain = text.strip().lstrip("vVrR=").removesuffix(".*").removesuffix(".x")
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})*((\.post|\.dev|rc|a|b)\d+)*(\+[\w.]+)?", plain, re.ASCII):
        raise QuestionError(f"{where} {text}: not a version number, such as 12.5 or 535.54.03.")
    return plain


def driver_release(text: str, matrix: Matrix, system: System, where: str = "--driver") -> str:
    """A driver's release; a CUDA version is not one.

    Raises:
        QuestionError: when it is no version, or that of a CUDA.
    """
    plain = release(text, where)
    if numbers(plain)[0] < LEAST_DRIVER:
        row = matrix.cuda_row(plain if "." in plain else f"{plain}.0")
        least = row and (row.windows if system in ("windows", "wsl") and row.windows else row.linux)
        hint = f" A driver that shows CUDA {plain} is {least} or newer." if least else ""
        raise QuestionError(
            f"{where} {text}: that is a CUDA version. nvidia-smi prints the driver's release to the left of it "
            f'("Driver Version", such as 535.104.05).{hint}'
        )
    return plain


def find_gpu(matrix: Matrix, name: str, where: str) -> GpuRow:
    """The GPU that a name ("RTX 5090", "4090", "A6000") or a compute capability ("7.0", "sm_70") stands for.

    Raises:
        QuestionError: when the matrix knows neither, the name means several cards, or the card is another vendor's.
    """
    if cc := capability_of(name):
        row = matrix.gpu(cc)
        if row is None:
            known = [g.cc for g in matrix.gpus]
            raise QuestionError(
                f"{where} {name}: compute capability {cc} is not in the matrix. Known: {', '.join(known)}."
            )
        return row
    if several := shared(name):
        raise QuestionError(f"{where} {name}: that name may mean {several}. Give the full name or the capability.")
    if other := vendor(name):
        raise QuestionError(f"{where} {name}: that is a device of {other}. cuDNN and CUDA run on NVIDIA GPUs only.")
    row = next((r for r in map(matrix.gpu_by_name, spellings(name)) if r), None)
    if row is None:
        line = model_line(name)
        raise QuestionError(
            f"{where} {name}: no GPU of that name is known. Give its name as nvidia-smi prints it, or its compute "
            f"capability (7.0).{' ' + line if line else ''}"
        )
    return row


def near(given: str, choices: Iterable[str]) -> str:
    """ " Nearest: 2.15." or nothing."""
    from difflib import get_close_matches

    original = {c.lower(): c for c in choices}
    found = get_close_matches(given.lower(), original, n=1, cutoff=0.5)
    return f" Nearest: {original[found[0]]}." if found else ""


def fact(label: str, value: str, row: Row) -> Fact:
    return Fact(label=label, value=value, source=row.cited, checked_on=row.checked_on.isoformat())
