"""CD411 to CD414: combinations known to be bad, two CUDA majors in one program, wheels that cannot do the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cudnn_doctor.matrix.compat import cautions, same_flavour
from cudnn_doctor.matrix.compat_cuda import same_build
from cudnn_doctor.matrix.pins import fitting_cudnn
from cudnn_doctor.model.base import Fact, Known, known, value_or
from cudnn_doctor.model.facts import Framework
from cudnn_doctor.model.report import Fix
from cudnn_doctor.model.versions import numbers
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, shown, skip
from cudnn_doctor.rules.compat_cures import gpu_build
from cudnn_doctor.rules.compat_facts import (
    Loaded,
    built_cuda,
    capabilities,
    compiled_cudnn,
    flavour,
    framework_version,
    loaded,
    outcome,
    requirement,
)
from cudnn_doctor.rules.facts import gpu_present, gpus
from cudnn_doctor.rules.remedies import again, fix, pip, unshadow
from cudnn_doctor.rules.sample import ABSENT, EX, NO_DEVICE, sample


@rule(
    "CD411",
    title="Combinations known to be bad",
    severity="error",
    owner="environment",
    causes=("library-bug", "gpu-too-old-for-build"),
    explain="""Some combinations pass the version rule and are refused or wrong all the same: torch from 2.10.0 on
raises RuntimeError with cuDNN 9.11 or newer when the weakest visible GPU is below 7.5, even if the others are not;
JAX refuses cuDNN 9.10.0, whose enumerations had been reordered, and cuDNN below 9.10.1 with cuBLAS 12.9 on several
GPUs, which gave wrong products.""",
    source="torch/backends/cudnn/__init__.py of 2.10.0; jax_plugins/cuda/__init__.py (compat_matrix.yaml, cautions)",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.compute_capability": known("7.0", EX)})),
    ),
    follows=("CD303", "CD304", "CD308", "CD306", "CD305", "CD508"),
)
def known_bad(case: Case) -> Iterator[Outcome]:
    here = capabilities(case)
    for found in loaded(case):
        if not isinstance(found, Loaded):
            continue
        framework = found.framework
        cuda = built_cuda(case, framework)
        judgements = cautions(
            case.matrix,
            framework.name,
            framework.version,
            cudnn=found.version,
            cublas=_cublas(case, cuda),
            capabilities=here,
            gpus=sum(1 for _ in gpus(case)),
            built=compiled_cudnn(case, framework),
        )
        evidence = [*found.evidence(), *(e for _, _, e in here.values())]
        if not judgements:
            yield passed(
                found.name, f"Nothing is known against {found.name} with cuDNN {found.version}", evidence=evidence
            )
        for judgement in judgements:
            yield outcome(
                judgement,
                found.name,
                f"{found.name} does not work with cuDNN {found.version} on this machine",
                evidence=evidence,
                fixes=[_other_cudnn(case, found)],
                causes=("gpu-too-old-for-build",) if judgement.rule == "caution:torch-sm75" else ("library-bug",),
            )


def _minor_builds(cuda: str, made_for: str) -> dict[str, object]:
    """Changes to the healthy sample: a framework of the days of CUDA 10, and the cuDNN 7.6.5 for one of its minors."""
    return {
        "frameworks.0.version": "1.4.0",
        "frameworks.0.built_cuda": known(cuda, EX),
        "cudnn.0.version": known("7.6.5", EX),
        "cudnn.0.cudart": known(made_for, EX),
        "cudnn.0.cuda_flavour": ABSENT,
    }


def _cublas(case: Case, cuda: str) -> str:
    """The version of the cuBLAS of that CUDA major, "" when there is none or it does not say."""
    found = [x for x in case.snapshot.cuda.libraries if x.name == "libcublas" and cuda and x.major == numbers(cuda)[0]]
    return next((x.version.value for x in found if isinstance(x.version, Known)), "")


def _other_cudnn(case: Case, found: Loaded) -> Fix:
    distribution = f"nvidia-cudnn-cu{flavour(found.copy) or 12}"
    specifier, exact = requirement(case, found.framework, distribution)
    candidates = fitting_cudnn(
        case.matrix,
        distribution,
        specifier="" if exact else specifier,
        capabilities=tuple(capabilities(case)),
        framework=found.framework.name,
        version=found.framework.version,
        machine=case.snapshot.host.machine,
    )
    if release := next(candidates, ""):
        command = pip(case, "install", f"{distribution}=={release}")
        return fix(f"Install {distribution} {release}", command, verify=again("CD411"))
    cards = ", ".join(label for _, label, _ in capabilities(case).values())
    text = (
        f"No {distribution} does for {cards}: leave the old GPU out (CUDA_VISIBLE_DEVICES), or install an older release"
    )
    return fix(text, verify=again("CD411"))


@rule(
    "CD412",
    title="CUDA major of cuDNN against that of the framework",
    severity="error",
    owner="environment",
    causes=("cudnn-wrong-build",),
    explain="""nvidia-cudnn-cu11, -cu12 and -cu13 install the same files into the same folder, so that a framework
built for CUDA 12 (TensorFlow up to 2.21) may load the cuDNN for CUDA 13 that another one (torch from 2.11 on)
brought. cuDNN 8 then aborts the process when it does not find the cuBLAS of its own CUDA; cuDNN 9 takes what it
finds, or fails at the first operation that needs it. Up to cuDNN 8.0 there was one build for each minor release of
CUDA: the build for 10.1 is not the one for 10.0.""",
    source="zip directories of the wheels; cuDNN's own dlopen calls, traced; the files of "
    "https://developer.nvidia.com/rdp/cudnn-archive, read 2026-12-01",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"frameworks.0.built_cuda": known("12.8", EX)})),
        ("problem", sample({"cudnn.0.cuda_flavour": known(12, EX), "cudnn.0.version": known("8.9.7", EX)})),
        ("problem", sample(_minor_builds("10.0", "10.1"))),
        ("ok", sample(_minor_builds("10.1", "10.1"))),
    ),
    follows=("CD303", "CD304", "CD308", "CD306", "CD305", "CD508"),
)
def one_cuda(case: Case) -> Iterator[Outcome]:
    for found in loaded(case, versions=False):
        if not isinstance(found, Loaded):
            continue
        cuda, mine = built_cuda(case, found.framework), flavour(found.copy)
        if not cuda or mine is None:
            continue
        wanted = f"nvidia-cudnn-cu{numbers(cuda)[0]}"
        specifier, _ = requirement(case, found.framework, wanted)
        text = f"Give each framework an environment of its own; in this one, put back {wanted} last"
        major = f">={found.copy.major},<{found.copy.major + 1}"  # the soname's: cu11 has cuDNN 9 too
        command = pip(case, "install", "--force-reinstall", "--no-deps", wanted + (specifier or major))
        remedy = fix(text, command, verify=again("CD412"))
        if found.search.step.startswith(("LD_LIBRARY_PATH", "LD_PRELOAD")):
            remedy = unshadow(case, found.copy, found.search, "CD412")  # installing would not change what wins
        name = "cuda_flavour" if isinstance(found.copy.cuda_flavour, Known) else "cudart"
        source: Fact[Any] = getattr(found.copy, name)
        made_for = value_or(found.copy.cudart, "") or str(mine)
        minors = same_build(case.matrix, found.name, cuda, found.version, made_for) if found.version else None
        yield outcome(
            minors or same_flavour(case.matrix, found.name, cuda, found.version, mine),
            found.name,
            f"{found.name} is built for CUDA {cuda if minors else numbers(cuda)[0]} and loads a cuDNN for CUDA "
            f"{made_for if minors else mine}",
            evidence=[
                *found.evidence(),
                shown(found.framework.built_cuda, f"{found.pointer}/built_cuda"),
                shown(source, f"{found.copy_pointer}/{name}"),
            ],
            fixes=[remedy],
        )


@rule(
    "CD413",
    title="CPU-only build on a machine with a GPU",
    severity="warning",
    owner="environment",
    causes=("environment-restriction",),
    explain="""The distribution that is installed has no GPU code, so that the program runs on the CPU without an
error. tensorflow is CPU-only on Linux in 1.15.2 to 1.15.5 and all of 2.0 (tensorflow-gpu is not), on native Windows
from 2.11 on and on Linux for ARM; tensorflow-cpu and the PyTorch wheels for Windows on PyPI always are; jaxlib needs
its CUDA plugin.""",
    source="build_info of every TensorFlow wheel, torch/version.py (compat_matrix.yaml, table tensorflow_builds)",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"frameworks.0.cuda_build": known(False, EX)})),
        ("skipped", sample(NO_DEVICE)),
    ),
)
def cpu_only(case: Case) -> Iterator[Outcome]:
    if not gpu_present(case):
        yield skip("machine", "no NVIDIA GPU on this machine")
        return
    for i, framework in enumerate(case.snapshot.frameworks):
        if not isinstance(framework.cuda_build, Known):
            continue
        pointer = f"/snapshot/frameworks/{i}"
        name = f"{framework.distribution} {framework.version}"
        kind = "built with CUDA" if framework.cuda_build.value else "built without CUDA"
        evidence = [framework_version(pointer, framework), shown(framework.cuda_build, f"{pointer}/cuda_build", kind)]
        if framework.cuda_build.value:
            yield passed(name, f"{name} is a GPU build", evidence=evidence)
            continue
        yield problem(
            name,
            f"{name} is a CPU-only build, and this machine has a GPU",
            detail=_why_cpu(case, framework),
            evidence=evidence,
            fixes=_gpu_build(case, framework),
            severity=None if framework.name in ("tensorflow", "torch", "jax") else "note",  # often meant so
        )


def _system(case: Case) -> str:
    return "windows" if "Windows" in value_or(case.snapshot.host.os, "") else "linux"


def _why_cpu(case: Case, framework: Framework) -> str:
    row = case.matrix.build(framework.distribution, framework.version, _system(case), case.snapshot.host.machine)
    if row is None or row.gpu:
        return "It says so itself; nothing in it can use the GPU."
    where = f"{_system(case)} {row.machine}".rstrip()
    return f"{row.distribution} {row.first} to {row.last} for {where} has no GPU code. [{row.cited}]"


def _gpu_build(case: Case, framework: Framework) -> list[Fix]:
    verify = again("CD413")
    if framework.name in ("tensorflow", "torch", "jax"):
        if found := gpu_build(case, framework, "CD413"):
            return found
        if case.snapshot.host.machine == "aarch64":
            text = "No GPU wheel of it for Linux on ARM is on PyPI: use NVIDIA's container or build it"
            return [fix(text, verify=verify)]
        if _system(case) == "windows" and framework.name != "torch":
            text = "Use WSL2: for native Windows there is no newer GPU build than TensorFlow 2.10"
            return [fix(text, verify=verify)]
        return [fix(f"No GPU build of {framework.name} in the matrix fits this machine", verify=verify)]
    others = {  # no command: which release fits depends on the CUDA and cuDNN that are here
        "onnxruntime": "the onnxruntime-gpu for the CUDA and cuDNN that are here (PyPI's newest is for CUDA 13)",
        "paddle": "the paddlepaddle-gpu of Paddle's own index (PyPI's ends at 2.6.2)",
    }
    wanted = others.get(framework.name, f"the GPU build of {framework.name}")
    return [fix(f"Where it should use the GPU: uninstall {framework.distribution} and install {wanted}", verify=verify)]


@rule(
    "CD414",
    title="Run-time compiled cuDNN (jit) under a framework",
    severity="error",
    owner="environment",
    causes=("cudnn-wrong-build",),
    explain="""nvidia-cudnn-jit-cu12 and -cu13 hold three libraries only: no ops, cnn or adv. Programs of the graph
interface can use them; the older interface, through which TensorFlow, PyTorch and others do most of their work,
answers 3009 (sub-library unavailable).""",
    source="zip directories of the jit wheels; calls to the true libraries of 9.27.0",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"cudnn.0.kind": "jit", "cudnn.0.package": known("nvidia-cudnn-jit-cu13 9.19.0.56", EX)})),
    ),
    follows=("CD303", "CD304", "CD308", "CD306", "CD305", "CD508"),
)
def runtime_only(case: Case) -> Iterator[Outcome]:
    for found in loaded(case):
        if not isinstance(found, Loaded):
            continue
        evidence = [*found.evidence(), shown(found.copy.package, f"{found.copy_pointer}/package")]
        if found.copy.kind != "jit":
            yield passed(found.name, f"{found.name} would load a full cuDNN", evidence=evidence)
            continue
        distribution = f"nvidia-cudnn-cu{flavour(found.copy) or 12}"
        specifier, _ = requirement(case, found.framework, distribution)
        row = case.matrix.files(found.version, "jit")
        detail = f"{found.copy.path} is the run-time compiled build: no ops, cnn or adv library."
        yield problem(
            found.name,
            f"{found.name} would load the jit build of cuDNN, which cannot serve it",
            detail=detail + (f" [{row.cited}]" if row else ""),
            evidence=evidence,
            fixes=[
                fix(
                    f"Install the full cuDNN, and take {found.copy.directory} out of the search path",
                    pip(case, "install", distribution + specifier),
                    verify=again("CD414"),
                )
            ],
        )
