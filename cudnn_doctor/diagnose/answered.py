"""Which questions a snapshot answers: nobody is asked what the machine has told."""

from __future__ import annotations

from collections.abc import Callable

from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.facts import Gpu, Snapshot

Told = Callable[[Snapshot], bool]


def _each_gpu(told: Callable[[Gpu], bool]) -> Told:
    """Whether every GPU that is listed tells it; no list tells nothing."""

    def answered(snapshot: Snapshot) -> bool:
        gpus = value_or(snapshot.gpus, ())
        return bool(gpus) and all(told(gpu) for gpu in gpus)

    return answered


def _searched(snapshot: Snapshot) -> bool:
    """Whether the cuDNN copies were looked for; an empty list of a probe that failed is no answer."""
    return not any(f.probe == "cuDNN copies" for f in snapshot.failures)


# By the ids of questions.yaml. What only the program's run can tell (when it fails, what it does) is not here.
ANSWERS: dict[str, Told] = {
    "gpu-model": _each_gpu(lambda g: isinstance(g.name, Known)),
    "gpu-memory": _each_gpu(lambda g: isinstance(g.memory_used, Known) and isinstance(g.memory_total, Known)),
    "driver": lambda s: isinstance(s.driver.version, Known),
    "framework-version": lambda s: bool(s.frameworks) or isinstance(s.packages, Known),
    "display": _each_gpu(lambda g: isinstance(g.display_active, Known)),
    "os": lambda s: isinstance(s.host.os, Known),
    "other-processes": _each_gpu(lambda g: isinstance(g.processes, Known)),
    "kernel-log": lambda s: isinstance(s.xids, Known),
    "container": lambda s: isinstance(s.host.container, Known),
    "permissions": lambda s: isinstance(s.driver.device_nodes, Known),
    "visible-devices": _each_gpu(lambda g: isinstance(g.compute_mode, Known)),
    "temperature": _each_gpu(lambda g: isinstance(g.temperature, Known)),
    "library-path": lambda s: bool(s.resolutions),
    "cudnn-copies": _searched,
    "install-method": lambda s: any(p.installer for p in value_or(s.packages, ())),
    "other-frameworks": lambda s: len({f.name for f in s.frameworks}) == 1,
}


def answered_by_machine(snapshot: Snapshot) -> set[str]:
    """Ids of the questions that this snapshot answers."""
    return {question for question, told in ANSWERS.items() if told(snapshot)}
