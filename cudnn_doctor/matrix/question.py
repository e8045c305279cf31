"""What is asked of the matrix and what an answer is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from cudnn_doctor.matrix.judgement import Judgement
from cudnn_doctor.matrix.rows import GpuRow, Row
from cudnn_doctor.matrix.tables import Matrix


class QuestionError(ValueError):
    """A question that cannot be answered as asked: what was given, what would be valid, what comes nearest."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an answer."""

    label: str
    value: str
    source: str = ""
    checked_on: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the matrix says. `command` is for pip and fits by the rules named in `checked`, under `condition` where one
    is given ("with driver branch 580 or newer"); "" when nothing fits."""

    subject: str
    name: str
    title: str
    facts: tuple[Fact, ...] = ()
    verdicts: tuple[Judgement, ...] = ()
    command: str = ""
    checked: str = ""
    condition: str = ""
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
    """What the user said of the machine; "" for what was not said."""

    matrix: Matrix
    driver: str = ""
    gpu: str = ""  # its name
    cc: str = ""  # its compute capability
    python: str = ""
    system: str = "linux"

    @property
    def capabilities(self) -> tuple[str, ...]:
        return (self.cc,) if self.cc else ()


def release(text: str, where: str) -> str:
    """A version as given, without a leading "v" or "R".

    Raises:
        QuestionError: when it is none.
    """
    plain = text.strip().lstrip("vVrR")
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})*((\.post|\.dev|rc|a|b)\d+)*(\+[\w.]+)?", plain, re.ASCII):
        raise QuestionError(f"{where} {text}: not a version number, such as 12.5 or 535.54.03.")
    return plain


def find_gpu(matrix: Matrix, name: str, where: str) -> GpuRow:
    """The GPU that a name ("RTX 5090") or a compute capability ("7.0", "sm_70") stands for.

    Raises:
        QuestionError: when the matrix knows neither.
    """
    capability = re.fullmatch(r"(?:cc *)?(\d{1,2}\.\d)|sm_?(\d{1,2})(\d)", name.strip(), re.IGNORECASE)
    if capability:
        cc = capability[1] or f"{capability[2]}.{capability[3]}"
        known = [g.cc for g in matrix.gpus]
        row = matrix.gpu(cc)
        if row is None:
            raise QuestionError(
                f"{where} {name}: compute capability {cc} is not in the matrix. Known: {', '.join(known)}."
            )
        return row
    row = matrix.gpu_by_name(name) or matrix.gpu_by_name(f"GeForce {name}") or matrix.gpu_by_name(f"Tesla {name}")
    if row is None:
        models = [m.strip() for g in matrix.gpus for m in g.products.split(",")]
        raise QuestionError(
            f"{where} {name}: no GPU of that name is known. Give its name as nvidia-smi prints it, or its compute "
            f"capability (7.0).{near(name, models)}"
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


def problems(verdicts: Iterable[Judgement], *severities: str) -> list[Judgement]:
    """The problems of those severities."""
    return [v for v in verdicts if v.verdict == "problem" and v.severity in severities]
