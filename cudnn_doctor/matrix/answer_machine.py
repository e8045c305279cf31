"""`matrix what`: the newest of each framework, of cuDNN and of CUDA that run on a machine."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.matrix.answer_frameworks import machine_words, without
from cudnn_doctor.matrix.answer_parts import cuda_target
from cudnn_doctor.matrix.compat import LABELS, driver_for_cuda
from cudnn_doctor.matrix.fits import what
from cudnn_doctor.matrix.pins import fitting_cudnn
from cudnn_doctor.matrix.question import Answer, Ask, Fact, QuestionError, Way, fact
from cudnn_doctor.matrix.solve import Option
from cudnn_doctor.matrix.words import way
from cudnn_doctor.model.versions import numbers


def everything(name: str, ask: Ask) -> Answer:
    """The newest of each framework, of cuDNN and of CUDA that run on a machine."""
    if name:
        raise QuestionError('matrix what: say the machine by options: matrix what --gpu "GTX 1080" --driver 470')
    facts, ways, notes = list(_newest_parts(ask)), [], []
    for framework in ("tensorflow", "torch", "jax"):
        found = ask.solver.solve(framework, ask.target)
        label = f"newest {LABELS[framework]}"
        if not found.options:
            facts.append(Fact(label=label, value="none with wheels for this machine"))
            notes += list(without(framework, ask))
            continue
        for option in found.options:
            one = way(option, ask, None)
            facts.append(fact(label, _said(option, one), option.build.row))
            ways.append(one)
            label = "or"
    return Answer(
        subject="what",
        name=ask.target.gpu,
        title=f"What runs on {machine_words(ask)}",
        facts=tuple(facts),
        ways=tuple(ways),
        notes=tuple(dict.fromkeys(notes)),
    )


def _said(option: Option, one: Way) -> str:
    return what(option.build) + (f", with {one.text.partition(', then ')[0]}" if option.changes else "")


def _newest_parts(ask: Ask) -> Iterator[Fact]:
    """The newest CUDA and the newest cuDNN that run on a machine."""
    matrix = ask.matrix
    toolkits = [
        r
        for r in matrix.cuda
        if (not ask.cc or cuda_target(r.cuda, ask).verdict == "ok")
        and (not ask.driver or driver_for_cuda(matrix, r.cuda, ask.driver, system=ask.system).verdict == "ok")
    ]
    yield fact("newest CUDA", toolkits[-1].cuda, toolkits[-1]) if toolkits else Fact(label="newest CUDA", value="none")
    majors = {numbers(r.cuda)[0] for r in toolkits}
    for wheels in reversed(matrix.cudnn_wheels):
        if wheels.kind != "full" or int(wheels.cuda_major) not in majors:
            continue
        fitting = fitting_cudnn(matrix, wheels.distribution, capabilities=ask.capabilities, machine=ask.target.machine)
        if found := next(fitting, ""):
            yield fact("newest cuDNN", f"{found} ({wheels.distribution})", wheels)
            return
    yield Fact(label="newest cuDNN", value="none on PyPI")
