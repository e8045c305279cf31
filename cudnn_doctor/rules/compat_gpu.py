"""CD401 to CD405: drivers and GPUs against the CUDA, the cuDNN and the wheels in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudnn_doctor.matrix.compat import Judgement, cudnn_for_gpu, driver_for_cuda, service, wheel_for_gpu
from cudnn_doctor.matrix.pins import fitting_cudnn
from cudnn_doctor.model.base import Known, known, value_or
from cudnn_doctor.model.facts import CudaInit, CudnnCopy, Framework
from cudnn_doctor.model.report import Evidence, Fix
from cudnn_doctor.model.versions import numbers
from cudnn_doctor.rules.base import Case, Outcome, need, rule, see, shown, skip
from cudnn_doctor.rules.compat_cures import cures, needed_driver, newer_driver
from cudnn_doctor.rules.compat_facts import (
    Loaded,
    build_flavour,
    built_cuda,
    capabilities,
    driver_system,
    flavour,
    known_row,
    loaded,
    outcome,
    requirement,
)
from cudnn_doctor.rules.facts import (
    copies,
    copy_name,
    frameworks,
    gpu_present,
    resolutions,
)
from cudnn_doctor.rules.remedies import again, fix, pip
from cudnn_doctor.rules.sample import ABSENT, EX, NO_DEVICE, sample

COMPAT_DOC = "https://docs.nvidia.com/deploy/cuda-compatibility/"
PTX_90 = known(("sm_80", "sm_90", "compute_90"), EX)
NO_GPU = "no NVIDIA GPU on this machine"


def _serves(case: Case) -> tuple[str, Evidence]:
    """The CUDA that programs get: what cuInit's libcuda says (cuda-compat included), else what NVML says."""
    driver = case.snapshot.driver
    if isinstance(driver.init, Known) and isinstance(driver.init.value.driver_cuda, Known):
        answer = driver.init.value.driver_cuda
        return answer.value, shown(answer, "/snapshot/driver/init/value/driver_cuda")
    return value_or(driver.cuda, ""), see(case, lambda s: s.driver.cuda).shown()


def _judge_driver(case: Case, cuda: str, *, ptx: bool = False) -> tuple[Judgement, list[Evidence]]:
    driver = case.snapshot.driver
    release = see(case, lambda s: s.driver.version).need()
    first = driver.libcuda[0] if driver.libcuda else None
    serves, evidence = _serves(case)
    judgement = driver_for_cuda(
        case.matrix,
        cuda,
        release,
        system=driver_system(case),
        ptx=ptx,
        serves=serves,
        compat=value_or(first.version, "") if first and first.compat else "",
        gpu=next((name for name, _, _ in capabilities(case).values()), ""),
    )
    return judgement, [see(case, lambda s: s.driver.version).shown(), evidence]


def _old_driver(driver: str, cuda: str, built: str) -> dict[str, object]:
    """Changes to the healthy sample: a driver of that release and CUDA, and torch built for `built`."""
    init = CudaInit(code=0, name="CUDA_SUCCESS", driver_cuda=known(cuda, EX), library="libcuda.so.1")
    return {
        "driver.version": known(driver, EX),
        "driver.cuda": known(cuda, EX),
        "driver.init": known(init, EX),
        "frameworks.0.built_cuda": known(built, EX),
        "cudnn.0.cudart": known(built, EX),
    }


@rule(
    "CD401",
    title="Driver against the CUDA of the framework",
    severity="error",
    owner="node",
    causes=("driver-too-old",),
    explain="""Each CUDA toolkit needs a least driver. From CUDA 11 on a program also runs on the drivers of older
toolkits of the same major (minor-version compatibility), without the PTX of its toolkit and without new features; on
data-centre GPUs cuda-compat lets it run on older branches still (forward compatibility). A newer driver is always
good: the "CUDA Version" of nvidia-smi is a ceiling, not the toolkit in use, and a toolkit under /usr/local is not
what wheels use.""",
    source=f"{COMPAT_DOC} and NVIDIA's CUDA release notes, table of toolkits and drivers",
    examples=lambda: (
        ("ok", sample()),
        ("ok", sample(_old_driver("535.104.05", "12.2", "12.5"))),
        ("problem", sample(_old_driver("535.104.05", "12.2", "13.0"))),
        ("problem", sample(_old_driver("440.33.01", "10.2", "11.2"))),
        ("unknown", sample({"driver.version": ABSENT})),
        ("skipped", sample(NO_DEVICE)),
    ),
)
def driver_framework(case: Case) -> Iterator[Outcome]:
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
        return
    for pointer, name, framework in frameworks(case):
        cuda = built_cuda(case, framework)
        if not cuda:
            continue
        judgement, evidence = _judge_driver(case, cuda)
        forward = judgement.rule == "driver:forward"
        yield outcome(
            judgement,
            name,
            "cuda-compat does not serve this GPU" if forward else f"The driver is too old for {name} (CUDA {cuda})",
            evidence=[*evidence, shown(framework.built_cuda, f"{pointer}/built_cuda", cuda)],
            fixes=cures(case, framework, "CD401") or [newer_driver(case, needed_driver(case, cuda), "CD401")],
            causes=("compat-libs-unsupported",) if forward else None,
        )


@rule(
    "CD402",
    title="Driver against the CUDA of cuDNN",
    severity="error",
    owner="node",
    causes=("driver-too-old",),
    explain="""cuDNN carries its own CUDA runtime. One built with CUDA 13 does not start on a driver that serves CUDA
12, whatever the program itself was built with: cudnnCreate then answers NOT_INITIALIZED (1, from cuDNN 9 on 1001).""",
    source=f"{COMPAT_DOC} and cudnnGetCudartVersion of the library",
    examples=lambda: (
        ("ok", sample({"frameworks": ()})),
        ("problem", sample({**_old_driver("535.104.05", "12.2", "13.0"), "frameworks": ()})),
        ("skipped", sample()),
    ),
)
def driver_cudnn(case: Case) -> Iterator[Outcome]:
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
        return
    for pointer, copy in _winners(case):
        if not isinstance(copy.cudart, Known):
            continue
        cuda = copy.cudart.value
        same = [n for n, c in _consumers(case, copy) if c and numbers(c)[0] == numbers(cuda)[0]]
        if same:
            yield skip(copy.path, f"judged by CD401 with {same[0]}, of the same CUDA major")
            continue
        judgement, evidence = _judge_driver(case, cuda)
        yield outcome(
            judgement,
            copy.path,
            f"The driver is too old for {copy_name(copy)}, built with CUDA {cuda}",
            evidence=[*evidence, shown(copy.cudart, f"{pointer}/cudart")],
            fixes=[newer_driver(case, needed_driver(case, cuda), "CD402")],
        )


def _winners(case: Case) -> Iterator[tuple[str, CudnnCopy]]:
    """Each copy that some search finds first."""
    won = {value_or(r.real_path, "") for _, r in resolutions(case) if r.wanted.startswith("libcudnn.so")}
    for pointer, copy in copies(case):
        if {copy.real_path, copy.path} & won:
            yield pointer, copy


def _consumers(case: Case, copy: CudnnCopy) -> list[tuple[str, str]]:
    """(framework and release, its CUDA) of the frameworks that would load a copy."""
    found = [x for x in loaded(case) if isinstance(x, Loaded) and x.copy is copy]
    return [(x.name, built_cuda(case, x.framework)) for x in found]


def carried(case: Case, framework: Framework) -> Sequence[str]:
    """The architectures in a wheel, as its files say or else the matrix."""
    row = known_row(case, framework)
    return value_or(framework.compute_capabilities, ()) or (row.capabilities if row else ())


@rule(
    "CD403",
    title="Driver against PTX that must be compiled",
    severity="error",
    owner="node",
    causes=("driver-too-old", "gpu-too-new-for-build"),
    explain="""A wheel without machine code for a GPU runs on it only if it carries PTX, which the driver compiles at
the first run. Minor-version compatibility does not cover that: PTX of a toolkit needs the driver of that toolkit or a
newer one (CUDA_ERROR_UNSUPPORTEDPTX_90_VERSION, 222, otherwise).""",
    source=f"{COMPAT_DOC}minor-version-compatibility.html",
    examples=lambda: (
        ("skipped", sample()),
        ("ok", sample({"gpus.0.compute_capability": known("12.1", EX), "frameworks.0.compute_capabilities": PTX_90})),
        (
            "problem",
            sample(
                {
                    **_old_driver("570.86.10", "12.8", "12.9"),
                    "gpus.0.compute_capability": known("12.0", EX),
                    "frameworks.0.compute_capabilities": PTX_90,
                }
            ),
        ),
    ),
)
def driver_ptx(case: Case) -> Iterator[Outcome]:
    for pointer, name, framework in frameworks(case):
        cuda = built_cuda(case, framework)
        for cc, (_, label, evidence) in capabilities(case).items():
            if not cuda or service(carried(case, framework), cc) != "ptx":
                continue
            judgement, more = _judge_driver(case, cuda, ptx=True)
            yield outcome(
                judgement,
                f"{name} on {label}",
                f"The driver is too old for the PTX of {name}, all that it has for {label}",
                evidence=[*more, evidence, shown(framework.compute_capabilities, f"{pointer}/compute_capabilities")],
                fixes=[newer_driver(case, needed_driver(case, cuda, ptx=True), "CD403")],
            )


@rule(
    "CD404",
    title="GPU against the code in cuDNN",
    severity="error",
    owner="environment",
    causes=("gpu-too-old-for-build", "gpu-too-new-for-build"),
    explain="""Each cuDNN build carries machine code for certain architectures. From 9.11 on nothing below compute
capability 7.5 is served (Maxwell, Pascal, Volta), from 8.8 on nothing below 5.0 (Kepler); Blackwell needs 9.7 or
newer, built for CUDA 12 or 13. The header's CUDNN_MAX_SM does not tell: the cu11 builds of 9.7 to 9.10 name 12.0 and
have no code for it. Without code, calls answer ARCH_MISMATCH (6; from cuDNN 9 on 3007) or EXECUTION_FAILED.""",
    source="fatbin headers of libcudnn_ops in 24 wheels; NVIDIA's cuDNN support matrices (compat_matrix.yaml, cudnn)",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.compute_capability": known("7.0", EX)})),
        (
            "problem",
            sample(
                {
                    "gpus.0.compute_capability": known("12.0", EX),
                    "cudnn.0.version": known("9.3.0", EX),
                    "cudnn.0.cuda_flavour": known(12, EX),
                }
            ),
        ),
        ("unknown", sample({"cudnn.0.version": known("9.99.0", EX)})),
    ),
)
def cudnn_code(case: Case) -> Iterator[Outcome]:
    for pointer, copy in _winners(case):
        if copy.kind == "jit":
            yield skip(copy.path, "the jit build compiles for the GPU at run time")
            continue
        version = need(copy.version, f"{pointer}/version")
        major = build_flavour(case, copy, version)
        for cc, (_, label, evidence) in capabilities(case).items():
            judgement = cudnn_for_gpu(case.matrix, version, cc, flavour=major, machine=case.snapshot.host.machine)
            row = case.matrix.cudnn_row(version, major)
            old = row is not None and numbers(cc) < numbers(row.cc.partition("-")[0])
            yield outcome(
                judgement,
                f"{copy_name(copy)} on {label}",
                f"cuDNN {version} has no machine code for {label}",
                evidence=[shown(copy.version, f"{pointer}/version"), evidence],
                fixes=_other_cudnn(case, copy, cc) if judgement.verdict == "problem" else (),
                causes=("gpu-too-old-for-build",) if old else ("gpu-too-new-for-build",),
            )


def _other_cudnn(case: Case, copy: CudnnCopy, cc: str) -> list[Fix]:
    """A cuDNN wheel with code for every GPU here that the framework still accepts."""
    consumer = next((x for x in loaded(case) if isinstance(x, Loaded) and x.copy is copy), None)
    distribution = f"nvidia-cudnn-cu{flavour(copy) or 12}"
    specifier, exact = requirement(case, consumer.framework, distribution) if consumer else ("", False)
    candidates = fitting_cudnn(
        case.matrix,
        distribution,
        specifier="" if exact else specifier,
        capabilities=tuple(capabilities(case)),
        framework=consumer.framework.name if consumer else "",
        version=consumer.framework.version if consumer else "",
        machine=case.snapshot.host.machine,
    )
    release = next(candidates, "")
    if not release:
        if consumer:
            return other_wheel(case, consumer.framework, cc, "CD404")
        last = case.matrix.gpu(cc)
        text = f"No {distribution} serves this GPU" + (f"; the last cuDNN was {last.cudnn_max}" if last else "")
        return [fix(text, verify=again("CD404"))]
    text = f"Install {distribution} {release}, the newest with code for this GPU"
    if exact and consumer:
        text += f"; {consumer.name} pins another one, so pip will warn"
    return [fix(text, pip(case, "install", f"{distribution}=={release}"), verify=again("CD404"))]


@rule(
    "CD405",
    title="GPU against the code in the framework",
    severity="error",
    owner="environment",
    causes=("gpu-too-old-for-build", "gpu-too-new-for-build"),
    explain="""A framework's wheel carries machine code (sm_80 runs on 8.0 and newer of the same major) and sometimes
PTX (compute_90 is compiled for anything newer at the first run). Without either, kernels fail with "no kernel image
is available for execution on the device", and cuDNN calls after that fail too. PTX alone is slow at the first start
and fails on some GPUs; TensorFlow up to 2.21 serves Blackwell in that way only.""",
    source="build_info of the TensorFlow wheel, architecture string of libtorch_python.so, compat_matrix.yaml",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.compute_capability": known("7.0", EX)})),
        (
            "problem",
            sample({"gpus.0.compute_capability": known("12.0", EX), "frameworks.0.compute_capabilities": PTX_90}),
        ),
        ("unknown", sample({"frameworks.0.compute_capabilities": ABSENT, "frameworks.0.version": "2.99.0"})),
    ),
)
def wheel_code(case: Case) -> Iterator[Outcome]:
    for pointer, name, framework in frameworks(case):
        stated = isinstance(framework.compute_capabilities, Known)
        codes = carried(case, framework)
        if not codes and framework.name not in ("tensorflow", "torch"):
            continue  # the others do not say
        for cc, (_, label, evidence) in capabilities(case).items():
            judgement = wheel_for_gpu(case.matrix, name, codes, cc, None if stated else known_row(case, framework))
            old = bool(codes) and all(numbers(cc) < _number(code) for code in codes)
            yield outcome(
                judgement,
                f"{name} on {label}",
                f"{name} has {'only PTX' if judgement.rule == 'wheel-gpu:ptx' else 'no code'} for {label}",
                evidence=[shown(framework.compute_capabilities, f"{pointer}/compute_capabilities"), evidence],
                fixes=other_wheel(case, framework, cc, "CD405"),
                causes=("gpu-too-old-for-build",) if old else ("gpu-too-new-for-build",),
            )


def _number(code: str) -> tuple[int, ...]:
    from cudnn_doctor.model.versions import capability

    return numbers(capability(code))


def other_wheel(case: Case, framework: Framework, cc: str, code: str) -> list[Fix]:
    if found := cures(case, framework, code):
        return found
    text = f"No build of {framework.name} is known to have code for {cc} and to fit this machine: build it from source"
    return [fix(text, verify=again(code))]
