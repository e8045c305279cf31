"""The `matrix` command: a question about one thing, answered from the compatibility matrix.

`answer("tensorflow", "2.18", matrix, driver="535.54", gpu="RTX 5090")` gives the facts, the verdicts with their rules,
and a pip command that was checked against the same rules.
"""

from __future__ import annotations

from collections.abc import Callable

from cudnn_doctor.matrix import answer_frameworks, answer_parts
from cudnn_doctor.matrix.question import Answer, Ask, Fact, QuestionError, fact, find_gpu, near, release
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.model.versions import numbers

SUBJECTS = ("tensorflow", "torch", "jax", "cudnn", "gpu", "driver", "cuda")
ALIASES = {"tf": "tensorflow", "pytorch": "torch", "gpus": "gpu", "jaxlib": "jax"}


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
    by_subject: dict[str, Callable[[str, Ask], Answer]] = {
        "tensorflow": answer_frameworks.tensorflow,
        "torch": answer_frameworks.torch,
        "jax": answer_frameworks.jax,
        "cudnn": answer_parts.cudnn,
        "gpu": answer_parts.gpu,
        "driver": answer_parts.driver,
        "cuda": answer_parts.cuda,
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
