"""What to ask for instead: a cuDNN wheel, a framework release, a driver branch that satisfies everything known."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from cudnn_doctor.matrix.compat import cautions, cudnn_for_gpu, driver_for_cuda, driver_for_gpu
from cudnn_doctor.matrix.requires import satisfies
from cudnn_doctor.model.versions import numbers

if TYPE_CHECKING:
    from cudnn_doctor.matrix.rows import WheelsRow
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
