"""The rows of compat_matrix.yaml. Versions are dotted strings, "" where nothing is known; that file has more to say."""

from __future__ import annotations

from datetime import date
from typing import Literal

import msgspec

from cudnn_doctor.model.report import Severity

Confidence = Literal["A", "B", "C"]
System = Literal["linux", "windows"]
LoaderRule = Literal["same-minor", "newer-minor", "same-major"]
GpuClass = Literal["data-center", "workstation", "consumer", "jetson"]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every row has: where it comes from, when a person last looked, how sure it is."""

    source: tuple[str, ...]
    checked_on: date
    confidence: Confidence = "A"
    note: str = ""

    @property
    def key(self) -> str:
        """What names the row in its table; an overlay replaces the row of the same key."""
        raise NotImplementedError

    @property
    def cited(self) -> str:
        """The sources in one line."""
        return "; ".join(self.source)


class FrameworkRow(Row, frozen=True, kw_only=True):
    """A minor release (or an exact one, "2.15.0+acme") of a framework, as its GPU wheel for Linux is."""

    releases: tuple[str, ...] = ()
    python: str = ""
    cuda: str = ""
    built_cudnn: str = ""  # what the wheel was compiled with; the loader rule compares with it
    built_confidence: Confidence = "A"
    capabilities: tuple[str, ...] = ()  # "sm_80": machine code; "compute_90": machine code and PTX
    capabilities_confidence: Confidence = "A"
    aarch64_capabilities: tuple[str, ...] = ()  # of its wheel for aarch64, where that has GPU code
    cudnn_pin: str = ""  # "nvidia-cudnn-cu12>=9.3.0.75,<10.0"
    cuda_pin: str = ""
    constraint: tuple[str, ...] = ()  # what pip must be told besides, so that the release imports: "numpy<2"


class TensorFlowRow(FrameworkRow, frozen=True, kw_only=True):
    """`python`, `cuda`, `cudnn` are the official tested build for Linux."""

    version: str
    cudnn: str = ""
    windows_python: str = ""
    windows_cuda: str = ""
    windows_cudnn: str = ""
    wheel_cuda: str = ""  # what build_info says
    wheel_cudnn: str = ""  # a major
    pre: bool = False  # a pre-release

    @property
    def key(self) -> str:
        return self.version


class TorchRow(FrameworkRow, frozen=True, kw_only=True):
    version: str
    machines: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.version


class JaxRow(FrameworkRow, frozen=True, kw_only=True):
    """A span of releases of JAX with one of its CUDA plugins."""

    plugin: Literal["cuda12", "cuda13"]
    serves: str = ""  # the least compute capability, by JAX's documentation

    @property
    def key(self) -> str:
        return f"{self.plugin} {self.releases[0]}"


class BuildRow(Row, frozen=True, kw_only=True):
    """Whether a TensorFlow distribution is a GPU build."""

    distribution: str
    first: str
    last: str
    systems: tuple[System, ...]
    machine: str = ""  # "" = all
    gpu: bool

    @property
    def key(self) -> str:
        return f"{self.distribution} {self.first} {'+'.join(self.systems)}"


class VariantRow(Row, frozen=True, kw_only=True):
    """A PyTorch build that its own index offers beside the one on PyPI. For x86-64 also on Windows."""

    variant: str
    first: str
    last: str
    cuda: str
    capabilities: tuple[str, ...]
    cudnn: str = ""  # that it requires or bundles
    machines: tuple[str, ...] = ("x86_64",)

    @property
    def key(self) -> str:
        return f"{self.variant} {self.first} {'+'.join(self.machines)}"


class PythonsRow(Row, frozen=True, kw_only=True):
    """The Pythons for which releases have a wheel, "2.7 3.3-3.6"; "" = none. For tensorflow[and-cuda]: that pip can
    also resolve."""

    distribution: str
    releases: tuple[str, ...]
    linux: str = ""  # x86-64
    aarch64: str = ""
    windows: str = ""

    @property
    def key(self) -> str:
        return f"{self.distribution} {self.releases[0]}"


class LoaderRow(Row, frozen=True, kw_only=True):
    framework: str
    first: str
    last: str = ""
    rule: LoaderRule

    @property
    def key(self) -> str:
        return f"{self.framework} {self.first}"


class CautionRow(Row, frozen=True, kw_only=True):
    """A combination that is wrong although the loader rule accepts it. Bounds that are "" do not bind."""

    id: str
    framework: str
    first: str
    last: str = ""
    cudnn_min: str = ""
    cudnn_below: str = ""
    cublas_min: str = ""
    cublas_below: str = ""
    cc_min: str = ""
    cc_below: str = ""
    gpus_min: int = 1
    severity: Severity
    text: str

    @property
    def key(self) -> str:
        return self.id


class CudaRow(Row, frozen=True, kw_only=True):
    """A CUDA minor and the driver of its first release."""

    cuda: str
    linux: str
    windows: str = ""  # "" from 13.0 on: NVIDIA names none

    @property
    def key(self) -> str:
        return self.cuda


class MinorCompatRow(Row, frozen=True, kw_only=True):
    major: str
    linux: str
    windows: str

    @property
    def key(self) -> str:
        return self.major


class BranchRow(Row, frozen=True, kw_only=True):
    """A driver branch: the highest CUDA that it serves, its kind and the month in which it ends."""

    branch: str
    cuda: str
    kind: Literal["ended", "production", "long-term", "new-feature", "jetpack"]
    eol: str = ""

    @property
    def key(self) -> str:
        return self.branch


class ForwardRow(Row, frozen=True, kw_only=True):
    """Kernel driver branches over which cuda-compat of this CUDA minor works."""

    cuda: str
    base: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.cuda


class GpuRow(Row, frozen=True, kw_only=True):
    cc: str
    arch: str
    cuda_min: str
    cuda_max: str = ""
    cudnn_min: str = ""
    cudnn_max: str = ""
    driver_min: str = ""
    windows_driver_min: str = ""
    last_branch: str = ""
    products: str = ""

    @property
    def key(self) -> str:
        return self.cc


class GpuNameRow(Row, frozen=True, kw_only=True):
    cc: str
    regex: str

    @property
    def key(self) -> str:
        return f"{self.cc} {self.regex}"


class GpuClassRow(Row, frozen=True, kw_only=True, rename={"kind": "class"}):
    kind: GpuClass
    regex: str

    @property
    def key(self) -> str:
        return self.kind


class CudnnRow(Row, frozen=True, kw_only=True):
    """A span of cuDNN releases for one CUDA major ("" = archives, one for each CUDA)."""

    flavour: str = ""
    first: str
    last: str
    cuda: tuple[str, ...]  # "12.0-12.9"
    cc: str  # "7.5-12.1"
    sass: tuple[str, ...] = ()  # "90"
    sass_aarch64: tuple[str, ...] = ()  # more of it in the aarch64 wheel
    ptx: str = ""

    @property
    def key(self) -> str:
        return f"cu{self.flavour or '*'} {self.first}"

    @property
    def span(self) -> str:
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


class FilesRow(Row, frozen=True, kw_only=True):
    """Sub-libraries of a span of releases, without prefix and suffix: "engines_precompiled"."""

    kind: Literal["full", "jit"]
    first: str
    last: str
    names: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.kind} {self.first}"


class WheelsRow(Row, frozen=True, kw_only=True):
    """The releases of a cuDNN distribution on PyPI."""

    distribution: str
    cuda_major: str
    kind: Literal["full", "jit"] = "full"
    versions: tuple[str, ...]
    yanked: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.distribution


# Table name -> row type, in the order of the file.
TABLES: dict[str, type[Row]] = {
    "tensorflow": TensorFlowRow,
    "tensorflow_builds": BuildRow,
    "torch": TorchRow,
    "torch_variants": VariantRow,
    "jax": JaxRow,
    "pythons": PythonsRow,
    "loader": LoaderRow,
    "cautions": CautionRow,
    "cuda": CudaRow,
    "minor_compat": MinorCompatRow,
    "branches": BranchRow,
    "forward_compat": ForwardRow,
    "gpus": GpuRow,
    "gpu_names": GpuNameRow,
    "gpu_classes": GpuClassRow,
    "cudnn": CudnnRow,
    "cudnn_files": FilesRow,
    "cudnn_wheels": WheelsRow,
}
LISTS = frozenset(  # fields that may be written as one string with spaces
    {
        "source",
        "systems",
        "releases",
        "capabilities",
        "aarch64_capabilities",
        "constraint",
        "machines",
        "base",
        "sass",
        "sass_aarch64",
        "names",
        "versions",
        "yanked",
    }
)
