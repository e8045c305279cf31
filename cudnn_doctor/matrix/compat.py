"""What fits with what, as pure functions of plain values and the matrix.

Each gives a `Judgement`: the verdict, the rule that led to it, one sentence, and where the fact comes from. A version
newer than every row is `unknown`, never a problem. Versions are dotted strings, compute capabilities "9.0", capability
codes "sm_80" (machine code) and "compute_90" (machine code and PTX, which newer GPUs compile at load time).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from cudnn_doctor.matrix.compat_driver import driver_for_cuda, driver_for_gpu
from cudnn_doctor.matrix.judgement import Judgement, JudgementVerdict, judged, undecided
from cudnn_doctor.matrix.requires import declared_range, satisfies
from cudnn_doctor.model.report import Severity
from cudnn_doctor.model.versions import below, capability, in_ranges, minor, numbers, padded, within

if TYPE_CHECKING:
    from cudnn_doctor.matrix.rows import CautionRow, FrameworkRow
    from cudnn_doctor.matrix.tables import Matrix

__all__ = [
    "LABELS",
    "Judgement",
    "Service",
    "built_cudnn",
    "cautions",
    "cudnn_for_cuda",
    "cudnn_for_gpu",
    "declared_range",
    "driver_for_cuda",
    "driver_for_gpu",
    "expected_files",
    "files_judgement",
    "loader_rule",
    "official_table",
    "same_flavour",
    "satisfies",
    "service",
    "wheel_for_gpu",
]

Service = Literal["native", "ptx", "none"]
LABELS = {
    "tensorflow": "TensorFlow",
    "torch": "PyTorch",
    "jax": "JAX",
    "mxnet": "MXNet",
    "onnxruntime": "ONNX Runtime",
    "ctranslate2": "CTranslate2",
    "paddle": "PaddlePaddle",
    "cupy": "CuPy",
}


# ---------------------------------------------------------------- framework against the cuDNN that it loads


def built_cudnn(matrix: Matrix, framework: str, version: str, stated: str = "", *, distribution: str = "") -> str:
    """The cuDNN that a wheel was compiled with, at best as major.minor: what the wheel states, refined by the matrix
    where it states the major alone; "" when nobody knows."""
    if stated and len(numbers(stated)) > 1:
        return stated
    row = matrix.framework(framework, version, distribution=distribution)
    known = row.built_cudnn if row else ""
    if stated and known and numbers(known)[0] != numbers(stated)[0]:
        return stated
    return known or stated


def loader_rule(matrix: Matrix, framework: str, version: str, built: str, loaded: str) -> Judgement:
    """Whether a framework release compiled with cuDNN `built` accepts `loaded` when it creates its first handle.

    `built` may be a major alone or "" (unknown). The rule's name is "loader:major", "loader:minor", "loader:exact".
    """
    row = matrix.loader_row(framework, version)
    what = f"{LABELS.get(framework, framework)} {version}"
    if row is None:
        return undecided("loader", f"how {what} compares cuDNN versions is not known here", matrix)
    if not built:
        return undecided("loader", f"the cuDNN that {what} was compiled with is not known", matrix, row.cited)
    have, want = numbers(loaded), numbers(built)
    listed = matrix.framework(framework, version)
    by_matrix = listed is not None and numbers(built)[:2] == numbers(listed.built_cudnn or "0")[:2]
    sure = listed.built_confidence if listed and by_matrix and listed.built_confidence != "A" else None
    need = f"{want[0]}.{want[1]}" if len(want) > 1 else str(want[0])

    def refuse(rule: str, text: str) -> Judgement:
        if matrix.is_newer(framework, version):
            newest = matrix.newest(framework)
            return undecided(rule, f"{text}, by the rule known up to release {newest}", matrix, row.cited)
        return judged("problem", rule, text, row, sure=sure)

    if have[0] != want[0]:
        text = f"{what} was compiled with cuDNN {need} and does not accept major {have[0]} ({loaded})"
        return refuse("loader:major", text)
    if row.rule == "same-major":
        return judged("ok", "loader:major", f"{what} binds cuDNN by its major alone: {loaded} has it", row)
    if len(want) < 2:
        text = f"same major {want[0]}; the minor that {what} was compiled with is not known, loaded is {loaded}"
        return undecided("loader:minor", text, matrix, row.cited)
    if row.rule == "same-minor" or want[0] < 7:
        if have[1] == want[1]:
            return judged("ok", "loader:exact", f"{what} demands cuDNN {need} exactly: {loaded} is of that minor", row)
        text = f"{what} demands cuDNN {need} exactly (no newer minor either), loaded is {loaded}"
        return refuse("loader:exact", text)
    if have[1] < want[1]:
        text = f"{what} was compiled with cuDNN {need} and needs that minor or a newer one, loaded is {loaded}"
        return refuse("loader:minor", text)
    return judged("ok", "loader:minor", f"{what}, compiled with cuDNN {need}, accepts {loaded}", row, sure=sure)


def cautions(
    matrix: Matrix,
    framework: str,
    version: str,
    *,
    cudnn: str = "",
    cublas: str = "",
    capabilities: Collection[str] = (),
    gpus: int = 1,
    built: str = "",
) -> tuple[Judgement, ...]:
    """Combinations that are wrong although the loader rule accepts them. `capabilities`: those of all visible GPUs that
    are known; `gpus`: how many there are. A row whose facts are not given does not apply."""
    return tuple(
        judged("problem", f"caution:{row.id}", row.text, row, severity=row.severity)
        for row in matrix.cautions
        if row.framework == framework
        and within(version, row.first, row.last)
        and gpus >= row.gpus_min
        and _caution_applies(row, cudnn, cublas, capabilities, built)
    )


def _caution_applies(row: CautionRow, cudnn: str, cublas: str, capabilities: Collection[str], built: str) -> bool:
    for value, least, limit in ((cudnn, row.cudnn_min, row.cudnn_below), (cublas, row.cublas_min, row.cublas_below)):
        if (least or limit) and not value:
            return False
        if (least and below(value, least)) or (limit and not below(value, limit)):
            return False
    if row.id == "jax-9.10.0" and built and padded(built, 3) == padded(cudnn, 3):
        return False
    if row.cc_min or row.cc_below:
        return any(
            not (row.cc_min and below(cc, row.cc_min)) and (not row.cc_below or below(cc, row.cc_below))
            for cc in capabilities
        )
    return True


def official_table(
    matrix: Matrix, version: str, *, cuda: str = "", cudnn: str = "", system: str = "linux"
) -> Judgement:
    """TensorFlow's tested build against what is there. Information: another combination is no fault by itself."""
    from cudnn_doctor.matrix.rows import TensorFlowRow

    row = matrix.framework("tensorflow", version)
    if not isinstance(row, TensorFlowRow):
        return undecided("table", f"TensorFlow {version} has no row in the official table", matrix)
    windows = system == "windows"
    tested = (row.windows_cuda, row.windows_cudnn) if windows else (row.cuda, row.cudnn)
    if not tested[0]:
        why = "has no GPU build for native Windows" if windows else "has no row in the official table yet"
        return judged("unknown", "table", f"TensorFlow {row.version} {why}", row)
    said = f"TensorFlow {row.version} was tested with CUDA {tested[0]} and cuDNN {tested[1]}"
    differs = [
        f"{label} {have}"
        for label, have, want in (("CUDA", cuda, tested[0]), ("cuDNN", cudnn, tested[1]))
        if have and numbers(have)[: len(numbers(want))] != numbers(want)
    ]
    if differs:
        return judged("problem", "table", f"{said}; here is {' and '.join(differs)}", row, severity="note")
    return judged("ok", "table", said, row)


# ---------------------------------------------------------------- GPU against code


def service(capabilities: Iterable[str], cc: str) -> Service:
    """How a binary serves a GPU: machine code of the same major and an equal or lower minor ("native"), PTX of an equal
    or lower capability compiled at load time ("ptx"), or not at all."""
    here = numbers(cc)
    best: Service = "none"
    for code in capabilities:
        there = numbers(capability(code))
        if code.endswith("a") and there != here:
            continue
        if there[0] == here[0] and there <= here:
            return "native"
        if code.startswith("compute_") and there < here and not code.endswith(("a", "f")):
            best = "ptx"
    return best


def wheel_for_gpu(
    matrix: Matrix, what: str, capabilities: Sequence[str], cc: str, row: FrameworkRow | None = None
) -> Judgement:
    """Whether a framework wheel has code for a GPU. `row` is the one that the capabilities come from; without it they
    were read from the wheel."""
    if not capabilities:
        return undecided("wheel-gpu", f"the architectures in {what} are not known", matrix)
    carried = " ".join(capabilities)
    verdict: JudgementVerdict = "problem"
    severity: Severity = "error"
    served = service(capabilities, cc)
    if served == "native":
        verdict, rule, text = "ok", "wheel-gpu", f"{what} has code for compute capability {cc} ({carried})"
    elif served == "ptx":
        severity, rule = "warning", "wheel-gpu:ptx"
        text = (
            f"{what} has only PTX for compute capability {cc} ({carried}): the driver compiles it at the first run, "
            "which takes minutes, needs a driver of the toolkit's own branch, and is reported to fail on some GPUs"
        )
    else:
        rule, text = "wheel-gpu:none", f"{what} has no code for compute capability {cc}: it carries {carried}"
    if row is None:
        return Judgement(verdict=verdict, rule=rule, text=text, source="the wheel", checked_on="", severity=severity)
    return judged(verdict, rule, text, row, severity=severity, sure=row.capabilities_confidence)


def cudnn_for_gpu(
    matrix: Matrix, version: str, cc: str, *, flavour: int | str | None = None, machine: str = "x86_64"
) -> Judgement:
    """Whether a cuDNN build has code for a GPU, by what its libraries really carry where that was read."""
    row = matrix.cudnn_row(version, flavour)
    what = f"cuDNN {version}" + (f" for CUDA {flavour}" if flavour else "")
    if row is None:
        return undecided("cudnn-gpu", f"{what} is not in the matrix: whether it serves {cc} is not known", matrix)
    gpu = matrix.gpu(cc)
    if gpu is None and numbers(cc) > max(numbers(g.cc) for g in matrix.gpus):
        return undecided("cudnn-gpu", f"compute capability {cc} is newer than the matrix", matrix, row.cited)
    first, _, last = row.cc.partition("-")
    if not row.sass:
        if numbers(first) <= numbers(cc) and (numbers(cc) <= numbers(last) or numbers(cc)[0] == numbers(last)[0]):
            return judged("ok", "cudnn-gpu", f"{what} serves compute capabilities {row.cc}, {cc} among them", row)
        if row.note.startswith("3.0") and cc == "3.0":
            return judged("unknown", "cudnn-gpu", f"{what} serves 3.0 only in its CUDA 10 builds", row)
        return judged("problem", "cudnn-gpu:none", f"{what} serves compute capabilities {row.cc}, not {cc}", row)
    codes = row.sass + (row.sass_aarch64 if machine == "aarch64" else ())
    listed = [f"sm_{c}" for c in codes] + ([f"compute_{row.ptx}"] if row.ptx else [])
    served = service(listed, cc)
    if served == "native":
        return judged("ok", "cudnn-gpu", f"{what} has code for compute capability {cc}", row)
    hint = ""
    if gpu and gpu.cudnn_min and below(version, gpu.cudnn_min):
        hint = f"; cuDNN serves it from {gpu.cudnn_min} on"
    elif gpu and gpu.cudnn_max and not within(version, "0", gpu.cudnn_max):
        hint = f"; the last cuDNN for it is {gpu.cudnn_max}"
    if served == "ptx":
        text = f"{what} has no machine code for compute capability {cc}, only PTX of {capability(row.ptx)}{hint}"
        return judged("problem", "cudnn-gpu:ptx", text, row, severity="warning")
    carried = " ".join(f"sm_{c}" for c in codes)
    text = f"{what} has no code for compute capability {cc} (it carries {carried}){hint}"
    return judged("problem", "cudnn-gpu:none", text, row)


def cudnn_for_cuda(matrix: Matrix, version: str, cuda: str, *, flavour: int | str | None = None) -> Judgement:
    """Whether a cuDNN build works with a CUDA toolkit. The major must agree; within it cuDNN 8.1 and newer are built to
    work with every minor of the range, and with later ones by minor-version compatibility."""
    row = matrix.cudnn_row(version, flavour if flavour is not None else numbers(cuda)[0])
    if row is None:
        row = matrix.cudnn_row(version)
        if row is None:
            return undecided("cudnn-cuda", f"cuDNN {version} is not in the matrix", matrix)
        text = f"there is no cuDNN {version} for CUDA {numbers(cuda)[0]}; the nearest build is for CUDA {row.flavour}"
        if numbers(cuda)[0] > max(numbers(r.cuda)[0] for r in matrix.cuda):
            return undecided("cudnn-cuda", text, matrix, row.cited)
        return judged("problem", "cudnn-cuda", text, row)
    ranges = ", ".join(row.cuda)
    if in_ranges(cuda, row.cuda):
        return judged("ok", "cudnn-cuda", f"cuDNN {version} is listed for CUDA {ranges}", row)
    majors = {numbers(part)[0] for part in row.cuda}
    if numbers(cuda)[0] not in majors:
        text = f"cuDNN {version} of that build is for CUDA {ranges}, not for CUDA {cuda}"
        return judged("problem", "cudnn-cuda", text, row)
    if row.flavour:
        text = f"cuDNN {version} is listed for CUDA {ranges}; CUDA {minor(cuda)} works by minor-version compatibility"
        return judged("ok", "cudnn-cuda", text, row)
    return judged("problem", "cudnn-cuda", f"cuDNN {version} was built for CUDA {ranges}, not for {cuda}", row)


def same_flavour(matrix: Matrix, what: str, cuda: str, cudnn: str, flavour: int) -> Judgement:
    """Whether the CUDA major of the cuDNN that a framework loads is the framework's own. `cudnn` is "" for a version
    that is not known."""
    row = (matrix.cudnn_row(cudnn, flavour) if cudnn else None) or matrix.cudnn[-1]
    named = f"cuDNN {cudnn}".rstrip()
    mine = numbers(cuda)[0]
    if mine == flavour:
        return judged("ok", "flavour", f"{what} and {named} are both built for CUDA {mine}", row)
    text = (
        f"{what} is built for CUDA {mine}, the {named} that it loads for CUDA {flavour}: two CUDA runtimes and "
        "two cuBLAS in one process, and cuDNN looks for its own"
    )
    takes_either = cudnn != "" and numbers(cudnn)[0] >= 9  # 8 aborts the process without its own cuBLAS
    severity: Severity = "warning" if takes_either else "error"
    return judged("problem", "flavour", text, row, severity=severity)


def expected_files(matrix: Matrix, version: str, kind: str = "full", system: str = "linux") -> tuple[str, ...] | None:
    """The sub-libraries that a cuDNN of that version and kind must have beside its main library, by file name
    ("libcudnn_ops.so.9"); None for a version that the matrix does not know."""
    row = matrix.files(version, kind)
    if row is None:
        return None
    major = numbers(version)[0]
    pattern = "cudnn_{}64_{}.dll" if system == "windows" else "libcudnn_{}.so.{}"
    return tuple(pattern.format(name, major) for name in row.names)


def files_judgement(
    matrix: Matrix, version: str, kind: str, present: Collection[str], system: str = "linux"
) -> Judgement:
    """The expected sub-libraries against the file names that are there."""
    expected = expected_files(matrix, version, kind, system)
    row = matrix.files(version, kind)
    if expected is None or row is None:
        return undecided("files", f"which sub-libraries cuDNN {version} ({kind}) must have is not known here", matrix)
    missing = [name for name in expected if name not in present]
    if missing:
        return judged("problem", "files", f"cuDNN {version} ({kind}) lacks {', '.join(missing)}", row)
    return judged("ok", "files", f"cuDNN {version} ({kind}) has all its {len(expected)} sub-libraries", row)
