"""CUDA against GPU, and the CUDA that a cuDNN was made for against the one in use: pure functions, as in `compat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudnn_doctor.matrix.judgement import Judgement, judged, undecided
from cudnn_doctor.model.versions import below, minor, numbers

if TYPE_CHECKING:
    from cudnn_doctor.matrix.tables import Matrix

# Machine code of an older capability that programs of the time carried and that runs on the newer one:
# docs.nvidia.com/cuda/ampere-compatibility-guide and ada-compatibility-guide, read 2026-12-01.
_SERVED_BY = {"8.6": "8.0", "8.9": "8.6"}
ONE_BUILD_A_MAJOR = "8.1"  # from this cuDNN on one build serves all minors of a CUDA major


def cuda_for_gpu(matrix: Matrix, cuda: str, cc: str) -> Judgement:
    """Whether a CUDA release knows a GPU at all. A CUDA that does is no proof that a program carries code for it.

    Rules: "cuda-gpu", "cuda-gpu:older" (the CUDA is older than the GPU), "cuda-gpu:dropped".
    """
    gpu = matrix.gpu(cc)
    if gpu is None:
        return undecided("cuda-gpu", f"compute capability {cc} is not in the matrix", matrix)
    row = matrix.gpu(_SERVED_BY.get(cc, cc)) or gpu
    what = f"{gpu.arch} ({cc})"
    if below(cuda, row.cuda_min):
        text = f"CUDA {cuda} is older than {what}, which CUDA serves from {row.cuda_min} on"
        return judged("problem", "cuda-gpu:older", text, row)
    if gpu.cuda_max and not below(cuda, gpu.cuda_max) and minor(cuda) != minor(gpu.cuda_max):
        text = f"CUDA {cuda} dropped {what}; the last release with code for it is {gpu.cuda_max}"
        return judged("problem", "cuda-gpu:dropped", text, gpu)
    return judged("ok", "cuda-gpu", f"CUDA {cuda} knows {what}", gpu)


def same_build(matrix: Matrix, what: str, cuda: str, cudnn: str, made_for: str) -> Judgement | None:
    """Whether a cuDNN of the days of one build for each CUDA minor (up to 8.0) is the build for the CUDA in use. None
    where the question does not arise: a newer cuDNN, another major (`compat.same_flavour` judges it), or a major alone.

    Rule: "flavour:minor".
    """
    row = matrix.cudnn_row(cudnn)
    alone = "." not in cuda or "." not in made_for
    if row is None or alone or not below(cudnn, ONE_BUILD_A_MAJOR) or numbers(cuda)[0] != numbers(made_for)[0]:
        return None
    if minor(cuda) == minor(made_for):
        return None
    text = (
        f"{what} uses CUDA {minor(cuda)}, its cuDNN {cudnn} is the build for CUDA {minor(made_for)}: up to 8.0 there "
        "was one for each minor release of CUDA"
    )
    return judged("problem", "flavour:minor", text, row)
