"""What to ask for instead: a cuDNN wheel, a framework release, a driver branch that satisfies everything known."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from cudnn_doctor.matrix.compat import cautions, cudnn_for_gpu, driver_for_cuda, driver_for_gpu, service
from cudnn_doctor.matrix.requires import satisfies
from cudnn_doctor.model.versions import in_python_range, numbers, within

if TYPE_CHECKING:
    from cudnn_doctor.matrix.rows import TensorFlowRow, TorchRow, WheelsRow
    from cudnn_doctor.matrix.tables import Matrix


def fitting_cudnn(
    matrix: Matrix,
    distribution: str,
    *,
    specifier: str = "",
    capabilities: Collection[str] = (),
    framework: str = "",
    version: str = "",
    machine: str = "x86_64",
) -> Iterator[str]:
    """The releases of a cuDNN distribution, newest first, that are not yanked, fit `specifier`, have machine code for
    every GPU in `capabilities`, and that no caution on the framework release names."""
    wheels = matrix.wheels(distribution)
    if wheels is None:
        return
    for v in reversed(_offered(wheels)):
        if not satisfies(v, specifier):
            continue
        served = (cudnn_for_gpu(matrix, v, cc, flavour=wheels.cuda_major, machine=machine) for cc in capabilities)
        refused = cautions(matrix, framework, version, cudnn=v, capabilities=capabilities) if framework else ()
        if all(j.verdict == "ok" for j in served) and not any(j.severity == "error" for j in refused):
            yield v


def _offered(wheels: WheelsRow) -> list[str]:
    """What pip would take: not yanked; the .post1 uploads repeat a release for aarch64."""
    return [v for v in wheels.versions if v not in wheels.yanked and not v.endswith(".post1")]


def pin(matrix: Matrix, distribution: str, release: str) -> str:
    """The requirement that makes pip choose `release`: none when it is the newest ("" then), "nvidia-cudnn-cu12<9.11"
    when it is the newest of its minor, else "==" itself."""
    wheels = matrix.wheels(distribution)
    if wheels is None:
        return ""
    usable = _offered(wheels)
    if release == usable[-1]:
        return ""
    major, minor = numbers(release)[:2]
    same_minor = [v for v in usable if numbers(v)[:2] == (major, minor)]
    if release == same_minor[-1]:
        return f"{distribution}<{major}.{minor + 1}"
    return f"{distribution}=={release}"


def fitting_release(matrix: Matrix, framework: str, cc: str, *, than: str = "") -> str:
    """A release of TensorFlow or PyTorch whose wheel on PyPI has machine code for the GPU: the nearest to `than`, or
    the newest; "" when none is known."""
    rows: tuple[TensorFlowRow | TorchRow, ...] = matrix.tensorflow if framework == "tensorflow" else ()
    rows = matrix.torch if framework == "torch" else rows
    fitting = [r for r in rows if r.releases and service(r.capabilities, cc) == "native"]
    if not fitting:
        return ""
    older = [r for r in fitting if than and numbers(r.version)[:2] <= numbers(than)[:2]]
    newer = [r for r in fitting if r not in older]
    best = older[-1] if older else newer[0] if than else newer[-1]
    return best.releases[-1]


def variant(matrix: Matrix, version: str, cc: str) -> tuple[str, ...]:
    """What pip is to install for a build of that PyTorch release that has code for the GPU; () for none."""
    for row in matrix.torch_variants:
        if within(version, row.first, row.last) and service(row.capabilities, cc) == "native":
            return torch_build(version, row.variant)
    return ()


def torch_build(version: str, build: str) -> tuple[str, ...]:
    """A PyTorch release for one CUDA ("cu126"), on PyTorch's own index. The build is part of the version: to pip
    "torch==2.11.0" is satisfied by every build that is there already (PEP 440, local versions)."""
    return f"torch=={version}+{build}", "--index-url", f"https://download.pytorch.org/whl/{build}"


def driver_branch(matrix: Matrix, cuda: str, capabilities: Collection[str] = (), *, ended: bool = False) -> str:
    """A driver branch that serves programs of that CUDA and every GPU: the oldest maintained one that serves the CUDA
    itself, or (`ended`) the newest of all that serves it at least by minor-version compatibility; "" for none."""
    if not ended:
        for row in matrix.branches:
            lives = row.kind in ("production", "long-term")
            if lives and numbers(row.cuda) >= numbers(cuda)[:2] and _knows(matrix, row.branch, capabilities):
                return row.branch
        return ""
    for row in reversed(matrix.branches):
        last = f"{row.branch}.999"  # some release of it
        if driver_for_cuda(matrix, cuda, last).verdict == "ok" and _knows(matrix, last, capabilities):
            return row.branch
    return ""


def _knows(matrix: Matrix, driver: str, capabilities: Collection[str]) -> bool:
    return all(driver_for_gpu(matrix, cc, driver).verdict != "problem" for cc in capabilities)


def release_for_driver(matrix: Matrix, framework: str, driver: str, *, system: str = "linux", python: str = "") -> str:
    """The newest release of TensorFlow or PyTorch whose CUDA a driver serves and that has a wheel for that Python; ""
    for none."""
    rows: tuple[TensorFlowRow | TorchRow, ...] = matrix.tensorflow if framework == "tensorflow" else ()
    rows = matrix.torch if framework == "torch" else rows
    for row in reversed(rows):
        if not row.cuda or (python and row.python and not in_python_range(python, row.python)):
            continue
        if driver_for_cuda(matrix, row.cuda, driver, system=system).verdict == "ok":
            return row.releases[-1]
    return ""
