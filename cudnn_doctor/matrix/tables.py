"""The compatibility matrix as tables to look up."""

from __future__ import annotations

import re
from datetime import date
from typing import TypeVar

import msgspec

from cudnn_doctor.matrix.rows import (
    TABLES,
    BranchRow,
    BuildRow,
    CautionRow,
    CudaRow,
    CudnnRow,
    FilesRow,
    ForwardRow,
    FrameworkRow,
    GpuClass,
    GpuClassRow,
    GpuNameRow,
    GpuRow,
    JaxRow,
    LoaderRow,
    MinorCompatRow,
    PythonsRow,
    Row,
    TensorFlowRow,
    TorchRow,
    VariantRow,
    WheelsRow,
)
from cudnn_doctor.model.versions import minor, numbers, within

OLD_AFTER_DAYS = 180

R = TypeVar("R", bound=Row)


class MatrixError(ValueError):
    """A matrix file that cannot be used. The text names the file, the table and the row, and what it clashes with."""


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All tables. A lookup that finds nothing gives None: older, newer or unknown is for the caller to judge."""

    file: str
    overlay: str = ""
    tensorflow: tuple[TensorFlowRow, ...]
    tensorflow_builds: tuple[BuildRow, ...]
    torch: tuple[TorchRow, ...]
    torch_variants: tuple[VariantRow, ...]
    jax: tuple[JaxRow, ...]
    pythons: tuple[PythonsRow, ...]
    loader: tuple[LoaderRow, ...]
    cautions: tuple[CautionRow, ...]
    cuda: tuple[CudaRow, ...]
    minor_compat: tuple[MinorCompatRow, ...]
    branches: tuple[BranchRow, ...]
    forward_compat: tuple[ForwardRow, ...]
    gpus: tuple[GpuRow, ...]
    gpu_names: tuple[GpuNameRow, ...]
    gpu_classes: tuple[GpuClassRow, ...]
    cudnn: tuple[CudnnRow, ...]
    cudnn_files: tuple[FilesRow, ...]
    cudnn_wheels: tuple[WheelsRow, ...]

    def table(self, name: str) -> tuple[Row, ...]:
        rows: tuple[Row, ...] = getattr(self, name)
        return rows

    @property
    def oldest(self) -> date:
        """The oldest date among all rows."""
        return min(row.checked_on for name in TABLES for row in self.table(name))

    @property
    def checked_on(self) -> str:
        """The oldest date among all rows, "2026-11-30"."""
        return self.oldest.isoformat()

    def age_note(self, today: date) -> str | None:
        """A remark when the data is older than 180 days."""
        days = (today - self.oldest).days
        if days <= OLD_AFTER_DAYS:
            return None
        return (
            f"The compatibility data was last checked on {self.checked_on}, {days} days ago: newer "
            "releases are not in it. Update cudnn-doctor, or lay your own rows over it with --matrix FILE."
        )

    # ------------------------------------------------------------ frameworks

    def framework(self, name: str, version: str, *, distribution: str = "") -> FrameworkRow | None:
        """The row of a framework release: the exact one ("2.15.0+acme"), the one that lists it, else the one of its
        minor. JAX is asked by plugin, which `distribution` names; without it the newest plugin that has the release
        answers."""
        if name == "jax":
            plugins = [r for r in self.jax if version in r.releases and r.plugin in (distribution or r.plugin)]
            return plugins[-1] if plugins else None
        rows: tuple[TensorFlowRow | TorchRow, ...] = self.tensorflow if name == "tensorflow" else ()
        rows = self.torch if name == "torch" else rows
        exact = {r.version: r for r in rows}
        public = version.partition("+")[0]
        listed = next((r for r in rows if public in r.releases), None)
        return exact.get(version) or listed or exact.get(public) or exact.get(minor(version))

    def newest(self, name: str) -> str:
        """The newest release of a framework in the matrix; "" for a framework without a table."""
        if name == "jax":
            releases = [v for r in self.jax for v in r.releases]
        elif name == "torch":
            releases = [v for r in self.torch for v in r.releases]
        elif name == "tensorflow":
            releases = [v for r in self.tensorflow for v in r.releases]
        else:
            return ""
        return max(releases, key=numbers)

    def is_newer(self, name: str, version: str) -> bool:
        """Whether a framework release is of a newer minor than every row."""
        newest = self.newest(name)
        return bool(newest) and numbers(version)[:2] > numbers(newest)[:2]

    def loader_row(self, framework: str, version: str) -> LoaderRow | None:
        return next((r for r in self.loader if r.framework == framework and within(version, r.first, r.last)), None)

    def build(self, distribution: str, version: str, system: str, machine: str) -> BuildRow | None:
        """Whether that TensorFlow distribution is a GPU build."""
        for r in self.tensorflow_builds:
            same = r.distribution == distribution and system in r.systems and r.machine in ("", machine)
            if same and within(version, r.first, r.last):
                return r
        return None

    # ------------------------------------------------------------ CUDA, drivers, GPUs

    def cuda_row(self, cuda: str) -> CudaRow | None:
        return next((r for r in self.cuda if r.cuda == minor(cuda)), None)

    def minor_compat_row(self, cuda: str) -> MinorCompatRow | None:
        return next((r for r in self.minor_compat if r.major == str(numbers(cuda)[0])), None)

    def branch(self, driver: str, system: str = "linux") -> BranchRow | None:
        """The branch of a release. Linux numbers begin with it; on Windows a branch goes on through the numbers after
        it (551.61 is of R550, 581.29 of R580)."""
        number = numbers(driver)[0]
        if system != "windows":
            return next((r for r in self.branches if r.branch == str(number)), None)
        first, last = int(self.branches[0].branch), int(self.branches[-1].branch)
        if not first <= number < last + 5:
            return None
        return max(
            (r for r in self.branches if int(r.branch) <= number and r.kind != "jetpack"), key=lambda r: int(r.branch)
        )

    def forward(self, cuda: str) -> ForwardRow | None:
        return next((r for r in self.forward_compat if r.cuda == minor(cuda)), None)

    def gpu(self, cc: str) -> GpuRow | None:
        return next((r for r in self.gpus if r.cc == cc), None)

    def gpu_by_name(self, name: str) -> GpuRow | None:
        """The compute capability that the name stands for; first match wins."""
        found = next((r for r in self.gpu_names if self._names(r, name)), None)
        return self.gpu(found.cc) if found else None

    def gpu_class(self, name: str) -> GpuClass | None:
        found = next((r for r in self.gpu_classes if self._names(r, name)), None)
        return found.kind if found else None

    def _names(self, row: GpuNameRow | GpuClassRow, name: str) -> bool:
        try:
            return re.search(row.regex, name, re.IGNORECASE) is not None
        except re.error as e:
            raise MatrixError(f"{self.file}: row {row.key!r}: not a regular expression: {e}") from e

    # ------------------------------------------------------------ cuDNN

    def cudnn_row(self, version: str, flavour: int | str | None = None) -> CudnnRow | None:
        """The build of that release for a CUDA major; without one, the row for the newest CUDA."""
        rows = [r for r in self.cudnn if within(version, r.first, r.last)]
        if flavour is not None:
            rows = [r for r in rows if r.flavour in ("", str(flavour))]
        return max(rows, key=lambda r: int(r.flavour or 0), default=None)

    def newest_cudnn(self) -> str:
        return max((v for w in self.cudnn_wheels for v in w.versions), key=numbers)

    def files(self, version: str, kind: str) -> FilesRow | None:
        return next((r for r in self.cudnn_files if r.kind == kind and within(version, r.first, r.last)), None)

    def wheels(self, distribution: str) -> WheelsRow | None:
        return next((r for r in self.cudnn_wheels if r.distribution == distribution), None)
