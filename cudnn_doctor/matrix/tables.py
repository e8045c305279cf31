"""The compatibility matrix: compat_matrix.yaml read, checked and asked.

The wheel carries the file inside the package, a checkout at its top. `load_matrix` lays a user's own file over it.
"""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cudnn_doctor.knowledge.load import HERE, parse_yaml
from cudnn_doctor.matrix.rows import (
    LISTS,
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
    Row,
    TensorFlowRow,
    TorchRow,
    VariantRow,
    WheelsRow,
)
from cudnn_doctor.model.versions import minor, numbers, within

SCHEMA = "cudnn-doctor/compat-matrix/1"
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
        """The row of a framework release: the exact one ("2.15.0+acme"), else the one of its minor. JAX is asked by
        plugin, which `distribution` names; without it the newest plugin that has the release answers."""
        if name == "jax":
            plugins = [r for r in self.jax if version in r.releases and r.plugin in (distribution or r.plugin)]
            return plugins[-1] if plugins else None
        rows: tuple[TensorFlowRow | TorchRow, ...] = self.tensorflow if name == "tensorflow" else ()
        rows = self.torch if name == "torch" else rows
        exact = {r.version: r for r in rows}
        public = version.partition("+")[0]
        return exact.get(version) or exact.get(public) or exact.get(minor(version))

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

    def branch(self, driver: str) -> BranchRow | None:
        return next((r for r in self.branches if r.branch == str(numbers(driver)[0])), None)

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


def matrix_file() -> Path:
    """compat_matrix.yaml inside the package (wheel) or at the top of the checkout.

    Raises:
        MatrixError: when neither is there.
    """
    for place in (HERE.parent, HERE.parent.parent):
        if (place / "compat_matrix.yaml").is_file():
            return place / "compat_matrix.yaml"
    raise MatrixError(f"compat_matrix.yaml is neither in {HERE.parent} nor above it: the installation is incomplete")


@cache
def load_matrix(overlay: Path | None = None) -> Matrix:
    """The matrix, with the rows of `overlay` replacing those of the same key or standing beside the rest.

    Raises:
        MatrixError: for a file that cannot be read, is not of this form, or contradicts itself.
    """
    from cudnn_doctor.matrix.validate import check

    file = matrix_file()
    tables = read(file, unique=False)  # a test holds ours to it
    if missing := [name for name in TABLES if name not in tables]:
        raise MatrixError(f"{file.name}: table {missing[0]} is missing")
    own: set[tuple[str, str]] = set()
    if overlay is not None:
        for name, rows in read(overlay).items():
            merged = {row.key: row for row in tables[name]} | {row.key: row for row in rows}
            tables[name] = tuple(merged.values())
            own |= {(name, row.key) for row in rows}
    matrix = Matrix(file=str(file), overlay=str(overlay or ""), **tables)  # type: ignore[arg-type]
    for table, row, why in check(matrix):
        where = overlay if (table, row) in own else file
        raise MatrixError(f"{where}: {table}, row {row!r}: {why}")
    return matrix


def read(file: Path, *, unique: bool = True) -> dict[str, tuple[Row, ...]]:
    """The tables of one file as typed rows. `unique` refuses a key that is given twice.

    Raises:
        MatrixError: naming the file, the table and the row.
    """
    import yaml

    try:
        content = parse_yaml(file.read_bytes(), unique=unique)
    except OSError as e:
        raise MatrixError(f"{file}: cannot be read: {e.strerror}") from e
    except yaml.MarkedYAMLError as e:
        line = f"line {e.problem_mark.line + 1}" if e.problem_mark else ""
        raise MatrixError(f"{file}: not YAML: {', '.join(filter(None, (line, e.context, e.problem)))}") from e
    except yaml.YAMLError as e:
        raise MatrixError(f"{file}: not YAML: {' '.join(str(e).split())}") from e
    if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
        raise MatrixError(f'{file}: not a compatibility matrix: its first line must be "schema: {SCHEMA}"')
    return {name: _table(file, name, table) for name, table in content.items()}


def _table(file: Path, name: object, table: Any) -> tuple[Row, ...]:
    if name not in TABLES:
        raise MatrixError(f"{file}: there is no table {name!r}; the tables are {', '.join(TABLES)}")
    wanted = {"source", "checked_on", "rows"}
    if not isinstance(table, dict) or not wanted <= table.keys() or not isinstance(table["rows"], list):
        raise MatrixError(f"{file}: table {name} needs source, checked_on and a list of rows")
    if extra := table.keys() - wanted - {"confidence"}:
        raise MatrixError(f"{file}: table {name} has no field {min(map(str, extra))!r}")
    kind = TABLES[str(name)]
    common = {k: table[k] for k in ("source", "checked_on", "confidence") if k in table}
    split_cuda = kind is CudnnRow  # there `cuda` is a list
    rows: dict[str, Row] = {}
    for i, raw in enumerate(table["rows"], 1):
        if not isinstance(raw, dict):
            raise MatrixError(f"{file}: {name}, row {i}: not a mapping: {raw!r}")
        fields = common | raw
        for key, value in fields.items():
            if isinstance(value, str) and (key in LISTS or (split_cuda and key == "cuda")):
                fields[key] = (value,) if key == "source" else value.split()
        try:
            row = msgspec.convert(fields, kind)
        except msgspec.ValidationError as e:
            shown = ", ".join(f"{k}: {v}" for k, v in list(raw.items())[:3])
            raise MatrixError(f"{file}: {name}, row {i} ({shown}): {e}") from e
        if row.key in rows:
            raise MatrixError(f"{file}: {name}, row {i} ({row.key!r}): the same row was given before")
        rows[row.key] = row
    return tuple(rows.values())
