"""CD631 and CD632: what the frameworks themselves did (`check --framework`), and whether the emulation was right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.facts import FrameworkWord, FrameworkWork
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, skip
from cudnn_doctor.rules.facts import searches
from cudnn_doctor.rules.remedies import fix
from cudnn_doctor.rules.sample import CUDNN_DIR, sample

ASKED = "the framework in the examined Python (--framework)"
AGAIN = "cudnn-doctor check --framework"


def _word(**changes: Any) -> Case:
    """The healthy machine on which torch did its convolution, with changes to its word."""
    work = FrameworkWork(name="convolution", right=True, deviation=0.0003, seconds=0.2)
    fields: dict[str, Any] = {
        "name": "torch",
        "version": "2.11.0",
        "cudnn": "91900",
        "gpu": True,
        "works": (work,),
        "mapped": (f"{CUDNN_DIR}/libcudnn.so.9",),
    }
    return sample({"framework_words": (FrameworkWord(**{**fields, **changes}),)})


@rule(
    "CD631",
    title="A convolution by the framework itself",
    severity="error",
    owner="environment",
    causes=("insufficient-info",),
    explain="""With --framework each of PyTorch, TensorFlow, JAX and CuPy that is installed does a convolution on the
GPU in the examined Python, in a child with a deadline, and the result is held against the CPU's. That is the last word
on whether it works. It runs the environment's code, so it is done only when asked for.""",
    source="live/framework_task.py; fp32 within 0.5 % of the largest value, since it may be TF32",
    examples=lambda: (
        ("skipped", sample()),
        ("ok", _word()),
        ("problem", _word(works=(FrameworkWork(name="convolution", right=False, error="RuntimeError: cuDNN error"),))),
        (
            "problem",
            _word(ending="killed by SIGABRT in convolution", works=(), mapped=(), said="Could not load library"),
        ),
        ("problem", _word(error="ImportError: libcudnn.so.9: file too short", works=())),
    ),
)
def works(case: Case) -> Iterator[Outcome]:
    for i, word in enumerate(case.snapshot.framework_words):
        pointer, name = f"/snapshot/framework_words/{i}", f"{word.name} {word.version}".rstrip()
        wrong = _wrong(word)
        done = [w for w in word.works if not w.skipped]
        if wrong:
            yield problem(
                name,
                wrong[0],
                detail=wrong[1],
                evidence=[Evidence(pointer=pointer, value=wrong[1] or wrong[0], source=ASKED)],
                fixes=[fix("What stands in its way is in the other findings, the cause first.", "cudnn-doctor check",
                           verify=AGAIN)],
            )  # fmt: skip
        elif not done:
            yield skip(name, word.skipped or "it has no GPU to work on here")
        else:
            told = ", ".join(f"{w.name} within {w.deviation:.1%} of the CPU" for w in done if w.deviation is not None)
            said = f"; it says cuDNN {word.cudnn}" if word.cudnn else ""
            evidence = [Evidence(pointer=f"{pointer}/works", value=told, source=ASKED)]
            yield passed(name, f"Works: {told}{said}", evidence=evidence)


def _wrong(word: FrameworkWord) -> tuple[str, str] | None:
    """Title and detail of what went wrong, if anything did."""
    if word.ending != "ok":
        return f"Its process {word.ending}" if not word.ending.startswith(
            "no end"
        ) else f"It gives {word.ending}", word.said
    if word.error:
        return f"It cannot be imported: {word.error[:120]}", word.error
    for work in word.works:
        if work.error:
            return f"Its {work.name} fails: {work.error.splitlines()[0][:120]}", work.error
        if not work.right and not work.skipped:
            return f"Its {work.name} is wrong: off by {work.deviation or 0:.0%} of the largest value", ""
    return None


@rule(
    "CD632",
    title="The emulated loader against what a framework mapped",
    severity="warning",
    owner="program",
    causes=("insufficient-info",),
    explain="""cudnn-doctor tells from files which libcudnn a framework will load. With --framework the framework has
loaded one, and the two are compared. A difference means that cudnn-doctor is wrong here: its findings on this
framework's cuDNN then rest on another file.""",
    source="/proc/self/maps of the child",
    examples=lambda: (
        ("skipped", sample()),
        ("ok", _word()),
        ("problem", _word(mapped=("/opt/other/libcudnn.so.9",))),
    ),
)
def emulation(case: Case) -> Iterator[Outcome]:
    for i, word in enumerate(case.snapshot.framework_words):
        pointer = f"/snapshot/framework_words/{i}/mapped"
        shims = [p for p in word.mapped if p.rpartition("/")[2].startswith(("libcudnn.so", "libcudnn-"))]
        for place, name, framework, search in searches(case):
            if framework.name != word.name or not shims:
                continue
            claimed = {value_or(search.real_path, ""), value_or(search.path, "")} - {""}
            evidence = [
                Evidence(pointer=pointer, value=", ".join(shims), source="/proc/self/maps of the framework"),
                Evidence(pointer=f"{place}/real_path", value=", ".join(sorted(claimed)) or "none", source="emulation"),
            ]
            if claimed & set(shims):
                yield passed(name, "It maps the libcudnn that was foretold", evidence=evidence)
                continue
            said = value_or(search.real_path, f"no {search.wanted}")
            yield problem(
                name,
                f"It maps {shims[0]}, and cudnn-doctor foretold {said}",
                detail="A fault of cudnn-doctor: what it says of this framework's cuDNN is about another file.",
                evidence=evidence,
                fixes=[
                    fix("Report it with the facts of this machine.", "cudnn-doctor report -o ticket.zip", verify=AGAIN)
                ],
            )
