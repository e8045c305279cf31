"""A stated machine as a (mostly absent) `Snapshot`, laid over the snapshot of the machine where there is one.

So the rules judge a text, a machine, and both together. What the text states comes first: the log may be of another
day or of another machine than the snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

from msgspec.structs import replace

from cudnn_doctor.logs.gpu_names import capability
from cudnn_doctor.logs.patterns import Knowledge
from cudnn_doctor.logs.values import dotted
from cudnn_doctor.matrix.compat_cuda import ONE_BUILD_A_MAJOR
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.model.base import Absent, Fact, Known, blank, known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Framework, FrameworkName, Gpu, ProbeFailure, Resolution, Snapshot
from cudnn_doctor.model.stated import NO_VERSION, NOT_STATED, StatedMachine
from cudnn_doctor.model.versions import below, numbers, within

PLACE = "stated"  # stands for the file that a text does not name
_NAMES = {"pytorch": "torch", "faster-whisper": "ctranslate2", "whisperx": "ctranslate2"}
_BRINGS_ITS_OWN = ("torch",)  # its wheels hold the cuDNN that they load; one named beside it may be another


def as_snapshot(stated: StatedMachine, knowledge: Knowledge, machine: Snapshot | None = None) -> Snapshot:
    """The snapshot that a text amounts to. `machine`: see `of_the_text`."""
    base = machine or blank(Snapshot, NOT_STATED)
    framework = _framework(stated, knowledge, base)
    copy = _copy(stated)
    host, driver = base.host, base.driver
    if isinstance(stated.os, Known):
        host = replace(host, os=_system(stated))
    if isinstance(stated.wsl, Known):
        host = replace(host, wsl=stated.wsl)
    if isinstance(stated.driver, Known) and isinstance(driver.version, Absent):
        driver = replace(driver, version=stated.driver)
    cudnn, resolutions = base.cudnn, base.resolutions
    if copy is not None:
        consumer = framework.name if framework and _loads_it(framework, stated) else "plain dlopen"
        cudnn, resolutions = (copy,), (_found(copy, consumer),)
    return replace(
        base,
        host=host,
        driver=driver,
        gpus=_gpus(stated, knowledge, base),
        cudnn=cudnn,
        resolutions=resolutions,
        frameworks=(framework,) if framework else base.frameworks,
    )


def of_the_text(machine: Snapshot, stated: StatedMachine) -> Snapshot | None:
    """The machine as far as the text can be of it: nothing where GPU or driver are others, and no libraries where the
    framework is: the text is of another environment, which this snapshot does not show."""
    if _other_driver(machine, stated) or _other_gpu(machine, stated):
        return None
    if not _other_framework(machine, stated):
        return machine
    unknown = ProbeFailure(probe="cuDNN copies", error="the text is of another environment")
    return replace(
        machine,
        cudnn=(),
        resolutions=(),
        cuda=replace(machine.cuda, libraries=()),
        packages=NOT_STATED,
        overwrites=(),
        frameworks=(),
        failures=(*machine.failures, unknown),
    )


def differences(machine: Snapshot, stated: StatedMachine) -> Iterator[str]:
    """Where the text and the machine contradict each other: it may be another machine, environment or day."""
    if said := _other_framework(machine, stated):
        here = ", ".join(f"{f.name} {f.version}" for f in machine.frameworks) or "no framework"
        yield f"the text is of {said}, the machine has {here}: was it this environment?"
    if said := _other_driver(machine, stated):
        here = value_or(machine.driver.version, "")
        yield f"the text names driver {said}, the machine has {here}: was it this machine, and updated since?"
    if said := _other_gpu(machine, stated):
        here = ", ".join(value_or(gpu.name, "a GPU") for gpu in value_or(machine.gpus, ()))
        yield f"the text names the GPU {said}, the machine has {here}: was it this machine?"


def _other_framework(machine: Snapshot, stated: StatedMachine) -> str:
    """The text's framework and release where the machine has another one; "" where it may be the same."""
    said, version = value_or(stated.framework, ""), value_or(stated.framework_version, "")
    name = _NAMES.get(said, said)
    version = version if re.match(r"\d", version) else ""
    here = [f.version for f in machine.frameworks if f.name == name]
    if name not in get_args(FrameworkName) or any(not version or _same_release(version, known(v, "")) for v in here):
        return ""
    return f"{said} {version}".rstrip()


def _other_driver(machine: Snapshot, stated: StatedMachine) -> str:
    said = value_or(stated.driver, "")
    there = isinstance(machine.driver.version, Known)
    return said if said and there and not _same_release(said, machine.driver.version) else ""


def _other_gpu(machine: Snapshot, stated: StatedMachine) -> str:
    said = value_or(stated.gpu, "")
    names = [gpu.name.value for gpu in value_or(machine.gpus, ()) if isinstance(gpu.name, Known)]
    return said if said and names and not any(_same_gpu(said, name) for name in names) else ""


def _same_release(said: str, read: Fact[str]) -> bool:
    """Whether a version as people shorten it is the one that was read: "2.11" and "2.11.0+cu130"."""
    if isinstance(read, Absent):
        return False
    one, other = numbers(said), numbers(read.value)
    return one[: len(other)] == other[: len(one)]


def _system(stated: StatedMachine) -> Fact[str]:
    """The system, "Windows" as a probe spells it."""
    if isinstance(stated.windows, Known) and isinstance(stated.os, Known):
        return known("Windows", stated.os.source)
    return stated.windows if isinstance(stated.windows, Absent) and isinstance(stated.os, Absent) else stated.os


def _gpus(stated: StatedMachine, knowledge: Knowledge, base: Snapshot) -> Fact[tuple[Gpu, ...]]:
    """The stated GPU. A text of CUDA without one is of a GPU all the same, which has no name."""
    if isinstance(stated.gpu, Absent) and isinstance(stated.compute_capability, Absent):
        if isinstance(base.gpus, Known):
            return base.gpus
        return known((blank(Gpu, NOT_STATED),), "implied by the text")
    cc = stated.compute_capability
    if isinstance(stated.gpu, Known):
        named = capability(stated.gpu.value, knowledge)
        cc = known(named, stated.gpu.source) if named else cc
        if any(_same_gpu(stated.gpu.value, value_or(gpu.name, "")) for gpu in value_or(base.gpus, ())):
            return base.gpus
    gpu = replace(blank(Gpu, NOT_STATED), name=stated.gpu, compute_capability=cc)
    return known((gpu,), "the text")


def _same_gpu(stated: str, read: str) -> bool:
    """Whether a name as people write it is the GPU that NVML names so."""

    def letters(name: str) -> str:
        return re.sub(r"[^a-z0-9]|nvidia|geforce|tesla|quadro", "", name.lower())

    return bool(read) and letters(stated) in letters(read)


def _framework(stated: StatedMachine, knowledge: Knowledge, base: Snapshot) -> Framework | None:
    """The stated framework, as far as the text and the matrix tell; where the text names none, a program that is named
    by its CUDA alone."""
    if isinstance(stated.framework, Absent) and isinstance(stated.cuda, Absent):
        return None
    said = value_or(stated.framework, "the program")
    known_name = _NAMES.get(said, said)
    name: FrameworkName = known_name if known_name in get_args(FrameworkName) else "other"  # type: ignore[assignment]  # just checked
    version = value_or(stated.framework_version, NO_VERSION)
    version = version if re.match(r"\d", version) else NO_VERSION  # "nightly"
    for own in base.frameworks:
        same = own.name == name and (version == NO_VERSION or _same_release(version, known(own.version, "")))
        if same and isinstance(stated.cuda, Absent):
            return own
    source = stated.framework_version.source if isinstance(stated.framework_version, Known) else ""
    return replace(
        blank(Framework, NOT_STATED),
        name=name,
        distribution=said if name == "other" else name,
        version=version,
        location=source,
        cuda_build=known(False, source) if version.endswith("+cpu") else NOT_STATED,
        built_cuda=_cuda(stated, name, version, knowledge),
        built_cudnn=_dotted(stated.cudnn_built),
        compute_capabilities=_codes(knowledge.matrix, name, version),
    )


def _cuda(stated: StatedMachine, name: str, version: str, knowledge: Knowledge) -> Fact[str]:
    """The stated CUDA; else that of the wheels older than the matrix: the one that pip installs where pip is named, the
    newest of them elsewhere."""
    if isinstance(stated.cuda, Known):
        return stated.cuda
    offered = wheel_cudas(stated, knowledge)
    if not offered or "+" in version or knowledge.matrix.framework(name, version):
        return NOT_STATED
    return known(max(offered, key=numbers), "the wheels of that release")


def wheel_cudas(stated: StatedMachine, knowledge: Knowledge) -> list[str]:
    """The CUDA releases that the wheels of the stated framework release are for; where pip is named, the one that it
    installs unasked."""
    framework, version = value_or(stated.framework, ""), value_or(stated.framework_version, NO_VERSION)
    if not re.match(r"\d", version):
        return []
    name = _NAMES.get(framework, framework)
    row = knowledge.matrix.framework(name, version)
    found = [row.cuda] if row and row.cuda else []
    if row and name == "torch":
        found += [v.cuda for v in knowledge.matrix.torch_variants if within(version, v.first, v.last)]
    release = ".".join(version.partition("+")[0].split(".")[:2])
    found += knowledge.old_wheels.get(framework, {}).get(release, [])
    return found[:1] if isinstance(stated.installer, Known) and "+" not in version else found


def _codes(matrix: Matrix, name: str, version: str) -> Fact[tuple[str, ...]]:
    """The architectures in the wheels of a release: all of them together, where a text does not say which wheel."""
    row = matrix.framework(name, version) if version != NO_VERSION and name != "other" else None
    if row is None or not row.capabilities:
        return NOT_STATED
    codes = dict.fromkeys(row.capabilities)
    if name == "torch":
        for variant in matrix.torch_variants:
            if within(version, variant.first, variant.last):
                codes |= dict.fromkeys(variant.capabilities)
    return known(tuple(codes), row.cited)


def _copy(stated: StatedMachine) -> CudnnCopy | None:
    if isinstance(stated.cudnn_loaded, Absent) and isinstance(stated.cudnn_for_cuda, Absent):
        return None
    version = _dotted(stated.cudnn_loaded)
    exact = isinstance(version, Known) and "." in version.value
    number = numbers(version.value)[0] if isinstance(version, Known) and version.value else 0
    made_for = stated.cudnn_for_cuda
    flavour = known(numbers(made_for.value)[0], made_for.source) if isinstance(made_for, Known) else NOT_STATED
    cudart = made_for
    if (
        isinstance(made_for, Known) and "." not in made_for.value
    ):  # one build for all minors: it needs the first of them
        whole = exact and not below(value_or(version, ""), ONE_BUILD_A_MAJOR)
        cudart = known(f"{made_for.value}.0", made_for.source) if whole else NOT_STATED
    return replace(
        blank(CudnnCopy, NOT_STATED),
        path=PLACE,
        real_path=PLACE,
        directory=PLACE,
        major=number,
        soname=f"libcudnn.so.{number}",
        kind="jit" if isinstance(stated.cudnn_kind, Known) else "full",
        version=version if exact else NOT_STATED,
        cudart=cudart,
        cuda_flavour=flavour,
    )


def _dotted(version: Fact[str]) -> Fact[str]:
    return known(dotted(version.value), version.source) if isinstance(version, Known) else version


def _loads_it(framework: Framework, stated: StatedMachine) -> bool:
    """Whether the framework loads the cuDNN that the text names."""
    return framework.name not in _BRINGS_ITS_OWN or isinstance(stated.cudnn_built, Known)


def _found(copy: CudnnCopy, consumer: str) -> Resolution:
    here = known(PLACE, "the text")
    return Resolution(
        consumer=consumer, wanted=copy.soname, path=here, real_path=here, step=PLACE, shadowed=(), steps=()
    )
