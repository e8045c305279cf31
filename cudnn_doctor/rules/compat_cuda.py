"""CD416: GPUs against the CUDA in use, where no file tells which code a framework carries."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.matrix.compat import service
from cudnn_doctor.matrix.compat_cuda import cuda_for_gpu
from cudnn_doctor.model.base import known
from cudnn_doctor.rules.base import Case, Outcome, rule, shown, skip
from cudnn_doctor.rules.compat_facts import built_cuda, capabilities, outcome
from cudnn_doctor.rules.compat_gpu import carried, other_wheel
from cudnn_doctor.rules.facts import frameworks
from cudnn_doctor.rules.sample import ABSENT, EX, sample


def _unread(cuda: str, cc: str) -> dict[str, object]:
    """Changes to the healthy sample: a framework of that CUDA whose code nobody knows, and a GPU."""
    return {
        "frameworks.0.name": "mxnet",
        "frameworks.0.version": "1.5.0",
        "frameworks.0.built_cuda": known(cuda, EX),
        "frameworks.0.compute_capabilities": ABSENT,
        "gpus.0.compute_capability": known(cc, EX),
    }


@rule(
    "CD416",
    title="GPU against the CUDA of the framework",
    severity="error",
    owner="environment",
    causes=("gpu-too-new-for-build", "gpu-too-old-for-build"),
    explain="""A CUDA release knows the GPUs of its time: CUDA 10 has no code for Ampere (8.0 and newer), CUDA 12 none
for Kepler. What is built with a CUDA that does not know the GPU has no machine code for it, and its cuBLAS and cuDNN
have none either. Where the architectures in a framework's files are known, CD405 judges by them; this rule speaks
where they are not.""",
    source="ptxas --help of the PyPI nvidia-cuda-nvcc wheels 11.7 to 13.5; "
    "https://docs.nvidia.com/cuda/ampere-compatibility-guide/ (compat_matrix.yaml, gpus)",
    examples=lambda: (
        ("ok", sample(_unread("11.2", "8.6"))),
        ("problem", sample(_unread("10.1", "8.6"))),
        ("problem", sample(_unread("12.0", "3.7"))),
        ("unknown", sample(_unread("12.0", "99.0"))),
        ("skipped", sample()),
    ),
)
def gpu_cuda(case: Case) -> Iterator[Outcome]:
    for pointer, name, framework in frameworks(case):
        cuda = built_cuda(case, framework)
        if not cuda:
            continue
        codes = carried(case, framework)
        for cc, (_, label, evidence) in capabilities(case).items():
            judgement = cuda_for_gpu(case.matrix, cuda, cc)
            seen = [shown(framework.built_cuda, f"{pointer}/built_cuda", cuda), evidence]
            if codes:
                by = "has code" if service(codes, cc) == "native" else "has no machine code"
                why = f"judged by CD405: {name} {by} for it"
                yield skip(f"{name} on {label}", why, basis=judgement.rule, evidence=seen)
                continue
            dropped = judgement.rule == "cuda-gpu:dropped"
            yield outcome(
                judgement,
                f"{name} on {label}",
                f"{name} is built with CUDA {cuda}, which {'no longer serves' if dropped else 'is older than'} {label}",
                evidence=seen,
                fixes=other_wheel(case, framework, cc, "CD416"),
                causes=("gpu-too-old-for-build",) if dropped else ("gpu-too-new-for-build",),
            )
