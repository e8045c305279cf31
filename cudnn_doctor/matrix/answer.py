"""The `matrix` command: a question about one thing, answered from the compatibility matrix.

`answer("tensorflow", "2.18", matrix, driver="535.54", gpu="RTX 5090")` gives the facts, the verdicts with their rules,
and a pip command that was checked against the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from cudnn_doctor.matrix.judgement import Judgement
from cudnn_doctor.matrix.rows import GpuRow, Row
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.model.versions import numbers

SUBJECTS = ("tensorflow", "torch", "jax", "cudnn", "gpu", "driver", "cuda")
ALIASES = {"tf": "tensorflow", "pytorch": "torch", "gpus": "gpu", "jaxlib": "jax"}


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


def answer(
    subject: str,
    name: str,
    matrix: Matrix,
    *,
    driver: str | None = None,
    gpu: str | None = None,
    python: str | None = None,
    system: str = "linux",
) -> Answer:
    """Answers one question.

    Raises:
        QuestionError: when the subject, the name or an option is nothing that the matrix knows.
    """
    from cudnn_doctor.matrix import answer_frameworks as advice_frameworks
    from cudnn_doctor.matrix import answer_parts as advice_parts

    by_subject: dict[str, Callable[[str, Ask], Answer]] = {
        "tensorflow": advice_frameworks.tensorflow,
        "torch": advice_frameworks.torch,
        "jax": advice_frameworks.jax,
        "cudnn": advice_parts.cudnn,
        "gpu": advice_parts.gpu,
        "driver": advice_parts.driver,
        "cuda": advice_parts.cuda,
    }
    chosen = ALIASES.get(subject.lower(), subject.lower())
    if chosen not in by_subject:
        raise QuestionError(
            f"matrix {subject}: no such subject. Subjects: {', '.join(SUBJECTS)}.{near(subject, SUBJECTS)}"
        )
    if not name.strip():
        what = 'a GPU, such as "RTX 5090"' if chosen == "gpu" else "a version"
        raise QuestionError(f"matrix {chosen}: name {what}. `cudnn-doctor matrix` shows what there is.")
    if system not in ("linux", "windows"):
        raise QuestionError(f"--system {system}: it is linux or windows.")
    row = find_gpu(matrix, gpu, "--gpu") if gpu else None
    ask = Ask(
        matrix=matrix,
        driver=release(driver, "--driver") if driver else "",
        gpu=gpu or "",
        cc=row.cc if row else "",
        python=release(python, "--python") if python else "",
        system=system,
    )
    return by_subject[chosen](name.strip(), ask)


def overview(matrix: Matrix) -> Answer:
    """What can be asked, from where to where, and the table that is asked for most: the least driver of each CUDA."""
    versions: dict[str, list[str]] = {
        "tensorflow": [v for r in matrix.tensorflow for v in r.releases],
        "torch": [v for r in matrix.torch for v in r.releases],
        "jax": [v for r in matrix.jax for v in r.releases],
        "cudnn": [v for w in matrix.cudnn_wheels for v in w.versions] + [matrix.cudnn[0].first],
        "driver": [r.branch for r in matrix.branches],
        "cuda": [r.cuda for r in matrix.cuda],
    }
    facts = [
        Fact(label=f"matrix {subject} ...", value=f"{min(found, key=numbers)} to {max(found, key=numbers)}")
        for subject, found in versions.items()
    ]
    facts.append(Fact(label='matrix gpu "..."', value=f"{matrix.gpus[0].arch} to {matrix.gpus[-1].arch}"))
    for row in matrix.minor_compat:
        text = f"{row.linux} and newer (Linux), {row.windows} and newer (Windows)"
        facts.append(fact(f"driver for CUDA {row.major}.x", text, row))
    note = "Name one of them: cudnn-doctor matrix tensorflow 2.18; what you have goes into --driver, --gpu, --python."
    return Answer(subject="", name="", title="Compatibility matrix", facts=tuple(facts), notes=(note,))


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
