"""What can be installed: each release of TensorFlow, PyTorch and JAX as the builds that exist for a system and machine.

A build is one choice of pip: a distribution on PyPI, a CUDA variant on PyTorch's own index, a CUDA plugin of JAX. The
Pythons are those of its wheels' file names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from cudnn_doctor.matrix.rows import FrameworkRow, JaxRow, PythonsRow, Row, TensorFlowRow, TorchRow, VariantRow
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.model.versions import numbers, within

Wheels = Literal["linux", "windows"]  # the system that a wheel is for; WSL takes those for Linux
INDEX = "https://download.pytorch.org/whl/"


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """One build of one release for one system and machine."""

    framework: str
    release: str
    variant: str = ""  # "cu126", "cuda12"; "" = the one on PyPI
    requirement: str  # "tensorflow[and-cuda]==2.21.0"
    index: str = ""  # where it is not on PyPI
    row: FrameworkRow  # what states its versions
    wheels: Row  # what states its Pythons
    pythons: str  # "3.9-3.12"; "" = no wheel for this system and machine
    system: Wheels = "linux"
    machine: str = "x86_64"
    gpu: bool = True  # whether it has GPU code
    cuda: str = ""
    built_cudnn: str = ""
    capabilities: tuple[str, ...] = ()
    cudnn_pin: str = ""  # the cuDNN that pip installs with it
    pre: bool = False

    @property
    def brings_cuda(self) -> bool:
        """Whether pip installs CUDA and cuDNN with it."""
        return self.framework != "tensorflow" or "[" in self.requirement

    @property
    def minor(self) -> tuple[int, ...]:
        return numbers(self.release)[:2]


class Catalog:
    """All builds for a system and machine. Made once for many questions."""

    def __init__(self, matrix: Matrix, system: Wheels = "linux", machine: str = "x86_64") -> None:
        self.matrix = matrix
        self.system: Wheels = system
        self.machine = machine
        self._tags = {(row.distribution, release): row for row in matrix.pythons for release in row.releases}
        self._builds: dict[str, tuple[Build, ...]] = {}
        self._newest: dict[str, tuple[Build, ...]] = {}

    def builds(self, framework: str) -> tuple[Build, ...]:
        """Those of a framework, newest release first; of a release the default of pip first."""
        if framework not in self._builds:
            makers = {"tensorflow": self._tensorflow, "torch": self._torch, "jax": self._jax}
            found = makers[framework]() if framework in makers else iter(())
            self._builds[framework] = tuple(sorted(found, key=lambda b: _order(b.release), reverse=True))
        return self._builds[framework]

    def newest_patches(self, framework: str) -> tuple[Build, ...]:
        """Of each minor the newest release that is no pre-release, in the order of `builds`."""
        if framework not in self._newest:
            newest: dict[tuple[int, ...], str] = {}
            for build in self.builds(framework):
                if not build.pre and build.pythons:
                    newest.setdefault(build.minor, build.release)
            found = tuple(b for b in self.builds(framework) if newest.get(b.minor) == b.release)
            self._newest[framework] = found
        return self._newest[framework]

    def of_release(self, framework: str, release: str) -> tuple[Build, ...]:
        """The builds of one release, the default of pip first."""
        return tuple(b for b in self.builds(framework) if b.release == release)

    def _pythons(self, distribution: str, release: str, row: Row) -> tuple[str, Row]:
        tags: PythonsRow | None = self._tags.get((distribution, release))
        if tags is None:
            return "", row
        return (tags.windows if self.system == "windows" else getattr(tags, self._column)), tags

    @property
    def _column(self) -> str:
        return "aarch64" if self.machine == "aarch64" else "linux"

    def _tensorflow(self) -> Iterator[Build]:
        for row in self.matrix.tensorflow:
            for release in row.releases:
                yield self._tensorflow_build(row, release)

    def _tensorflow_build(self, row: TensorFlowRow, release: str) -> Build:
        judged = {d: self.matrix.build(d, release, self.system, self.machine) for d in ("tensorflow", "tensorflow-gpu")}
        name = next((d for d, b in judged.items() if b and b.gpu), "")
        extra = "[and-cuda]" if name and row.cudnn_pin and self.system == "linux" else ""
        pythons, tags = self._pythons((name or "tensorflow") + extra, release, row)
        windows = self.system == "windows"
        return Build(
            framework="tensorflow",
            release=release,
            requirement=f"{name or 'tensorflow'}{extra}=={release}",
            row=row,
            wheels=tags if name else next((b for b in judged.values() if b), row),
            pythons=pythons,
            system=self.system,
            machine=self.machine,
            gpu=bool(name),
            cuda=row.wheel_cuda or (row.windows_cuda if windows else row.cuda),
            built_cudnn=row.built_cudnn or (row.windows_cudnn if windows else row.cudnn),
            capabilities=row.capabilities,
            cudnn_pin=row.cudnn_pin if extra else "",
            pre=row.pre,
        )

    def _torch(self) -> Iterator[Build]:
        for row in self.matrix.torch:
            for release in row.releases:
                pypi = self._torch_pypi(row, release)
                if self.system == "linux":
                    yield pypi
                variants = [v for v in self.matrix.torch_variants if self._offers(v, release)]
                variants.sort(key=lambda v: (v.cuda != row.cuda, [-n for n in numbers(v.cuda)]))
                yield from (self._torch_variant(row, release, v, pypi) for v in variants)

    def _offers(self, variant: VariantRow, release: str) -> bool:
        return self.machine in variant.machines and within(release, variant.first, variant.last)

    def _torch_pypi(self, row: TorchRow, release: str) -> Build:
        pythons, tags = self._pythons("torch", release, row)
        arm = self.machine == "aarch64"
        return Build(
            framework="torch",
            release=release,
            requirement=f"torch=={release}",
            row=row,
            wheels=tags,
            pythons=pythons,
            system=self.system,
            machine=self.machine,
            gpu=self.machine in (row.machines or ("x86_64",)),
            cuda=row.cuda,
            built_cudnn=row.built_cudnn,
            capabilities=row.aarch64_capabilities if arm else row.capabilities,
            cudnn_pin=row.cudnn_pin,
        )

    def _torch_variant(self, row: TorchRow, release: str, variant: VariantRow, pypi: Build) -> Build:
        wheel = msgspec.structs.replace(
            row,
            cuda=variant.cuda,
            capabilities=variant.capabilities,
            capabilities_confidence=variant.confidence,
            built_cudnn=variant.cudnn,
            cudnn_pin="",
            cuda_pin="",
            source=variant.source,
            checked_on=variant.checked_on,
            confidence=variant.confidence,
            note=variant.note,
        )
        return msgspec.structs.replace(
            pypi,
            variant=variant.variant,
            requirement=f"torch=={release}+{variant.variant}",
            index=INDEX + variant.variant,
            row=wheel,
            gpu=True,
            cuda=variant.cuda,
            built_cudnn=variant.cudnn,
            capabilities=variant.capabilities,
            cudnn_pin="",
        )

    def _jax(self) -> Iterator[Build]:
        for row in reversed(self.matrix.jax):  # cuda13 first: JAX's own advice
            for release in row.releases:
                yield self._jax_build(row, release)

    def _jax_build(self, row: JaxRow, release: str) -> Build:
        pythons, tags = self._pythons(f"jax-{row.plugin}-plugin", release, row)
        return Build(
            framework="jax",
            release=release,
            variant=row.plugin,
            requirement=f"jax[{row.plugin}]=={release}",
            row=row,
            wheels=tags,
            pythons=pythons,
            system=self.system,
            machine=self.machine,
            gpu=self.system == "linux",
            cuda=row.cuda,
            built_cudnn=row.built_cudnn,
            capabilities=row.capabilities,
            cudnn_pin=row.cudnn_pin,
        )


def _order(release: str) -> tuple[tuple[int, ...], bool, str]:
    """Releases in order: 2.15.0 < 2.15.0.post1 < 2.15.1, a candidate before its release."""
    return numbers(release), "rc" not in release, release
