"""Driver against CUDA and GPU: the toolkit's own driver, minor-version compatibility, PTX, cuda-compat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudnn_doctor.matrix.judgement import Judgement, judged, undecided
from cudnn_doctor.model.versions import at_least, minor, numbers

if TYPE_CHECKING:
    from cudnn_doctor.matrix.rows import CudaRow
    from cudnn_doctor.matrix.tables import Matrix


def driver_for_cuda(
    matrix: Matrix,
    cuda: str,
    driver: str,
    *,
    system: str = "linux",
    ptx: bool = False,
    serves: str = "",
    compat: str = "",
    gpu: str = "",
) -> Judgement:
    """Whether a driver release serves programs built with a CUDA toolkit.

    `ptx`: the program has only PTX for the GPU, which minor-version compatibility does not cover. `serves`: the CUDA
    that the driver itself reports ("13.0"), the best evidence there is. `compat`: release of the cuda-compat libcuda in
    use. `gpu`: a GPU name, to know whether cuda-compat may be used at all. WSL counts as `windows`: the driver is that
    of Windows. Rules: "driver:own", "driver:minor-version", "driver:forward", "driver:ptx", "driver:too-old".
    """
    row = matrix.cuda_row(cuda)
    cuda = minor(cuda)
    if serves and numbers(serves)[:2] >= numbers(cuda):
        text = f"driver {driver} serves CUDA up to {serves}, so {cuda} too"
        return judged("ok", "driver:own", text, row or matrix.cuda[-1], sure="A")
    if row is None:
        newest = matrix.cuda[-1].cuda
        if numbers(cuda) > numbers(newest):
            return undecided("driver", f"CUDA {cuda} is newer than the matrix (CUDA {newest})", matrix)
        if at_least(driver, matrix.cuda[0].linux):
            text = f"driver {driver} is newer than any that CUDA {cuda} needs"
            return judged("ok", "driver:own", text, matrix.cuda[0])
        return undecided("driver", f"the driver that CUDA {cuda} needs is not in the matrix", matrix)
    own = row.windows if system == "windows" else row.linux
    enough = at_least(driver, own) if own else False
    if enough is not False:
        text = f"CUDA {cuda} came with driver {own}"
        if enough is None:
            return judged("unknown", "driver:own", f"{text}: give the full release of {driver}", row)
        return judged("ok", "driver:own", f"{text}; {driver} is not older", row)
    if compat and (forward := _with_compat(matrix, row, driver, compat, gpu)):
        return forward
    span = matrix.minor_compat_row(cuda)
    if span is None:
        text = f"driver {driver} is too old for CUDA {cuda}, which needs {own}: CUDA 10 and older know no exception"
        return judged("problem", "driver:too-old", text, row)
    least = span.windows if system == "windows" else span.linux
    enough = at_least(driver, least)
    if enough is None:
        text = f"CUDA {span.major}.x needs driver {least}: give the full release of {driver}"
        return judged("unknown", "driver:minor-version", text, span)
    if not enough:
        needed = f"at least {least} (any CUDA {span.major}.x)" + (f", best {own}" if own not in ("", least) else "")
        text = f"driver {driver} is too old for CUDA {cuda}: {needed}{_forward_hint(matrix, cuda, driver, system, gpu)}"
        return judged("problem", "driver:too-old", text, span)
    if ptx and own:
        text = (
            f"driver {driver} is older than CUDA {cuda}'s own ({own}), and the program has only PTX for this GPU: "
            "minor-version compatibility does not cover PTX"
        )
        return judged("problem", "driver:ptx", text, span)
    text = f"driver {driver} serves all of CUDA {span.major}.x by minor-version compatibility (from {least})"
    if own:
        text += f"; CUDA {cuda} came with {own}: no PTX of that toolkit, no features newer than the driver"
    return judged("ok", "driver:minor-version", text, span)


def _with_compat(matrix: Matrix, row: CudaRow, driver: str, compat: str, gpu: str) -> Judgement | None:
    """The verdict when a cuda-compat libcuda is in use; None when it is too old to help with this CUDA."""
    if not at_least(compat, row.linux):
        return None
    branch = matrix.branch(compat)
    forward = matrix.forward(branch.cuda) if branch else None
    kind = matrix.gpu_class(gpu) if gpu else None
    if kind in ("consumer", "workstation"):
        text = f"cuda-compat {compat} is in use, but {gpu} is not a data-centre GPU: cuInit answers 804"
        return judged("problem", "driver:forward", text, forward or matrix.forward_compat[-1])
    if forward is None:
        return undecided("driver:forward", f"cuda-compat {compat} is not in the matrix", matrix)
    if str(numbers(driver)[0]) not in forward.base:
        text = f"cuda-compat {compat} is in use over driver {driver}; NVIDIA supports it over {' '.join(forward.base)}"
        return judged("unknown", "driver:forward", text, forward)
    if kind is None:
        text = f"cuda-compat {compat} lifts driver {driver} to CUDA {row.cuda} on data-centre GPUs; is this one?"
        return judged("unknown", "driver:forward", text, forward)
    return judged("ok", "driver:forward", f"cuda-compat {compat} lifts driver {driver} to CUDA {row.cuda}", forward)


def _forward_hint(matrix: Matrix, cuda: str, driver: str, system: str, gpu: str) -> str:
    forward = matrix.forward(cuda)
    if system != "linux" or forward is None or str(numbers(driver)[0]) not in forward.base:
        return ""
    if gpu and matrix.gpu_class(gpu) in ("consumer", "workstation"):
        return ""
    return f"; cuda-compat-{cuda.replace('.', '-')} would do on a data-centre GPU"


def driver_for_gpu(matrix: Matrix, cc: str, driver: str, *, system: str = "linux") -> Judgement:
    """Whether a driver release knows a GPU: not before its first, not after its last branch."""
    gpu = matrix.gpu(cc)
    if gpu is None:
        return undecided("driver-gpu", f"compute capability {cc} is not in the matrix", matrix)
    what = f"{gpu.arch} ({cc})"
    branch = matrix.branch(driver, system)
    number = int(branch.branch) if branch else numbers(driver)[0]
    if gpu.last_branch and number > int(gpu.last_branch):
        text = f"{what} is served by drivers up to branch {gpu.last_branch}, not by {driver}"
        return judged("problem", "driver-gpu:dropped", text, gpu)
    least = gpu.windows_driver_min if system == "windows" else gpu.driver_min
    enough = at_least(driver, least) if least else True
    if enough is None:
        return judged("unknown", "driver-gpu", f"{what} needs driver {least}: give the full release of {driver}", gpu)
    if not enough:
        return judged("problem", "driver-gpu:unknown", f"{what} needs driver {least}, {driver} does not know it", gpu)
    return judged("ok", "driver-gpu", f"driver {driver} serves {what}", gpu)
