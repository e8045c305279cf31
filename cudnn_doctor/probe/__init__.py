"""Reading the machine. Probes say what is there, never what it means, and none imports a framework or loads CUDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from cudnn_doctor.model.base import Absent, Base, Fact, blank
from cudnn_doctor.model.facts import (
    Cuda,
    CudnnCopy,
    Driver,
    Framework,
    Host,
    Overwrite,
    Package,
    ProbeFailure,
    Resolution,
    Snapshot,
    TargetEnv,
)

T = TypeVar("T")


class Libraries(Base, frozen=True, kw_only=True):
    """What live work needs to know: read first, so that children can start while the rest is read."""

    frameworks: tuple[Framework, ...]
    cudnn: tuple[CudnnCopy, ...]
    resolutions: tuple[Resolution, ...]
    cuda: Cuda


class _Guard:
    """Runs probes; one that raises becomes a `ProbeFailure` and leaves its fallback."""

    def __init__(self) -> None:
        self.failures: list[ProbeFailure] = []

    def __call__(self, probe: str, read: Callable[[], T], fallback: Callable[[Absent], T]) -> T:
        try:
            return read()
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
            self.failures.append(ProbeFailure(probe=probe, error=error))
            return fallback(Absent(reason="error", detail=f"probe {probe} failed: {error}"))


def collect(
    patient: TargetEnv,
    environ: Mapping[str, str],
    *,
    root: Path = Path("/"),
    timeout: float = 10.0,
    on_libraries: Callable[[Libraries], None] = lambda _: None,
) -> Snapshot:
    """All facts but those of the live children. What a probe raises is in `Snapshot.failures`.

    NVML is asked in a child of its own, `timeout` seconds at most. `on_libraries` is called while that child works.
    """
    from cudnn_doctor.probe.nvml_session import NvmlSession, probe_gpus

    guard = _Guard()
    with NvmlSession(root, environ, timeout_s=timeout) as nvml:
        libraries, packages, overwrites = _libraries(guard, patient, environ, root)
        on_libraries(libraries)

        from cudnn_doctor.probe import driver, host, kernel_log

        return Snapshot(
            taken_at=_now(),
            patient=patient,
            host=guard("host", lambda: host.probe_host(root, environ), lambda a: blank(Host, a)),
            driver=guard("driver", lambda: driver.probe_driver(root, environ, nvml), lambda a: blank(Driver, a)),
            gpus=guard("gpus", lambda: probe_gpus(nvml), lambda a: a),
            cudnn=libraries.cudnn,
            resolutions=libraries.resolutions,
            cuda=libraries.cuda,
            packages=packages,
            overwrites=overwrites,
            frameworks=libraries.frameworks,
            xids=guard("kernel log", lambda: kernel_log.probe_xids(root), lambda a: a),
            failures=tuple(guard.failures),
        )


def read_libraries(patient: TargetEnv, environ: Mapping[str, str], *, root: Path = Path("/")) -> Libraries:
    """The part of `collect` that live commands need."""
    return _libraries(_Guard(), patient, environ, root)[0]


def _libraries(
    guard: _Guard, patient: TargetEnv, environ: Mapping[str, str], root: Path
) -> tuple[Libraries, Fact[tuple[Package, ...]], tuple[Overwrite, ...]]:
    from cudnn_doctor.probe import cuda_libs, cudnn_copies, frameworks, loader
    from cudnn_doctor.probe import packages as package_probe

    packages = guard("packages", lambda: package_probe.probe_packages(patient), lambda a: a)
    overwrites = guard("overwrites", lambda: package_probe.probe_overwrites(patient, packages), lambda _: ())
    found = guard("frameworks", lambda: frameworks.probe_frameworks(patient, packages), lambda _: ())
    copies = guard(
        "cuDNN copies", lambda: cudnn_copies.find_cudnn(patient, environ, root, packages, found), lambda _: ()
    )

    def resolve() -> tuple[Resolution, ...]:
        return guard("loader", lambda: loader.resolutions(patient, found, copies, environ, root), lambda _: ())

    resolutions = resolve()
    if more := cudnn_copies.unlisted(copies, resolutions):
        copies = guard(
            "cuDNN copies",
            lambda: cudnn_copies.find_cudnn(patient, environ, root, packages, found, more),
            lambda _: copies,
        )
        resolutions = resolve()
    cuda = guard(
        "CUDA libraries", lambda: cuda_libs.probe_cuda(patient, environ, root, packages), lambda a: blank(Cuda, a)
    )
    return Libraries(frameworks=found, cudnn=copies, resolutions=resolutions, cuda=cuda), packages, overwrites


def _now() -> str:
    from datetime import datetime, timezone

    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
