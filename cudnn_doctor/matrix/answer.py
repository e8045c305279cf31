"""The `matrix` command: a question about one thing, answered from the compatibility matrix.

`answer("tensorflow", "2.18", matrix, driver="535.54", gpu="RTX 5090")` gives the facts, the verdicts with their rules,
and what to install or change, found by the solver with the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from cudnn_doctor.matrix import answer_frameworks, answer_machine, answer_parts
from cudnn_doctor.matrix.question import (
    Answer,
    Ask,
    Fact,
    QuestionError,
    ask_about,
    driver_release,
    fact,
    find_gpu,
    machine_of,
    near,
    release,
)
from cudnn_doctor.matrix.rows import GpuRow
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.matrix.target import MACHINES, SYSTEMS, System, Target
from cudnn_doctor.model.versions import numbers

SUBJECTS = ("tensorflow", "torch", "jax", "cudnn", "gpu", "driver", "cuda", "what")
ALIASES = {
    "tf": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "pytorch": "torch",
    "gpus": "gpu",
    "jaxlib": "jax",
    "nvidia-driver": "driver",
}
ELSEWHERE = {  # what people ask for and the matrix has no rows on
    "keras": "Keras runs on TensorFlow, PyTorch or JAX: ask for the one that it uses (`matrix tensorflow 2.18`).",
    "paddle": "",
    "paddlepaddle": "",
    "mxnet": "",
    "cupy": "",
    "onnxruntime": "",
    "onnxruntime-gpu": "",
    "ctranslate2": "",
    "tensorrt": "",
}


def answer(
    subject: str,
    name: str,
    matrix: Matrix,
    *,
    driver: str | None = None,
    gpu: str | None = None,
    python: str | None = None,
    system: str | None = None,
    machine: str | None = None,
    here: Target | None = None,
) -> Answer:
    """Answers one question. `here` are facts of a real machine; the options go before them.

    Raises:
        QuestionError: when the subject, the name or an option is nothing that the matrix knows.
    """
    by_subject: dict[str, Callable[[str, Ask], Answer]] = {
        "tensorflow": answer_frameworks.tensorflow,
        "torch": answer_frameworks.torch,
        "jax": answer_frameworks.jax,
        "what": answer_machine.everything,
        "cudnn": answer_parts.cudnn,
        "gpu": answer_parts.gpu,
        "driver": answer_parts.driver,
        "cuda": answer_parts.cuda,
    }
    chosen, name = _subject(subject, name)
    if chosen not in by_subject:
        if chosen in ELSEWHERE:
            why = ELSEWHERE[chosen] or "The matrix has rows on TensorFlow, PyTorch and JAX only."
            raise QuestionError(f"matrix {subject}: {why}")
        raise QuestionError(
            f"matrix {subject}: no such subject. Subjects: {', '.join(SUBJECTS)}.{near(subject, SUBJECTS)}"
        )
    if not name.strip() and chosen in ("cudnn", "gpu", "driver", "cuda"):
        what = 'a GPU, such as "RTX 5090"' if chosen == "gpu" else "a version"
        raise QuestionError(f"matrix {chosen}: name {what}. `cudnn-doctor matrix` shows what there is.")
    return by_subject[chosen](name.strip(), _ask(matrix, driver, gpu, python, system, machine, here))


def _subject(subject: str, name: str) -> tuple[str, str]:
    """The subject and the name; "torch==2.4.1+cu124" is both in one."""
    head, _, version = subject.partition("==")
    lower = re.sub(r"\[.*\]", "", head.strip().lower())
    given = re.sub(r"^[A-Za-z-]+(?:\[.*\])?==", "", name.strip())
    return ALIASES.get(lower, lower), version or given


def _ask(
    matrix: Matrix,
    driver: str | None,
    gpu: str | None,
    python: str | None,
    system: str | None,
    machine: str | None,
    here: Target | None,
) -> Ask:
    row = find_gpu(matrix, gpu, "--gpu") if gpu else None
    cpu = _machine(machine, gpu or "", row) if machine or row or here is None else ""
    target = here or Target()
    changed: dict[str, object] = {"system": _system(system)} if system else {}
    if cpu:
        changed["machine"] = cpu
    if row:
        changed |= {"gpu": gpu, "capabilities": (row.cc,)}
    if driver:
        changed |= {
            "driver": driver_release(driver, matrix, _system(system or target.system)),
            "serves": "",
            "compat": "",
        }
    if python:
        changed["python"] = release(python, "--python")
    target = msgspec.structs.replace(target, **changed)
    return ask_about(matrix, target, row.cc if row else next(iter(target.capabilities), ""))


def _system(text: str) -> System:
    lower = {"mac": "macos", "darwin": "macos", "win": "windows", "wsl2": "wsl"}.get(text.lower(), text.lower())
    found = next((s for s in SYSTEMS if s == lower), None)
    if found is None:
        raise QuestionError(f"--system {text}: it is {', '.join(SYSTEMS)}.")
    return found


def _machine(text: str | None, gpu: str, row: GpuRow | None) -> str:
    """The machine: as said, else ARM for GPUs that exist on ARM only."""
    if text:
        lower = {"arm64": "aarch64", "amd64": "x86_64", "x64": "x86_64", "sbsa": "aarch64"}.get(
            text.lower(), text.lower()
        )
        if lower not in MACHINES:
            raise QuestionError(f"--machine {text}: it is {' or '.join(MACHINES)}.")
        return lower
    return machine_of(gpu, row)


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
        Fact(label=f"matrix {subject} ...", value=_span_of(found) + _candidate(found))
        for subject, found in versions.items()
    ]
    facts.append(Fact(label='matrix gpu "..."', value=f"{matrix.gpus[0].arch} to {matrix.gpus[-1].arch}"))
    for row in matrix.minor_compat:
        text = f"{row.linux} and newer (Linux), {row.windows} and newer (Windows)"
        facts.append(fact(f"driver for CUDA {row.major}.x", text, row))
    notes = (
        "Name one of them: cudnn-doctor matrix tensorflow 2.18; what you have goes into --driver, --gpu, --python.",
        f"The rows are as of {matrix.checked_on}; what was released later is not known here.",
    )
    return Answer(subject="", name="", title="Compatibility matrix", facts=tuple(facts), notes=notes)


def _span_of(versions: list[str]) -> str:
    return f"{min(versions, key=numbers)} to {max(versions, key=numbers)}"


def _candidate(versions: list[str]) -> str:
    newest = max(versions, key=numbers)
    return " (a release candidate)" if "rc" in newest else ""
