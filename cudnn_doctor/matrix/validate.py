"""What a compatibility matrix must satisfy. Each check yields (table, row, what is wrong and with what it clashes)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from cudnn_doctor.matrix.rows import TABLES, FrameworkRow, JaxRow, TensorFlowRow, TorchRow
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.model.versions import capability, cuda_version, minor, numbers

Fault = tuple[str, str, str]


def check(matrix: Matrix) -> Iterator[Fault]:
    """All contradictions, most basic first."""
    for one in CHECKS:
        yield from one(matrix)


VERSION_FIELDS = frozenset(
    {
        *("version", "first", "last", "releases", "versions", "yanked", "major", "branch", "base", "last_branch"),
        *("cuda", "cuda_min", "cuda_max", "windows_cuda", "wheel_cuda", "linux", "windows"),
        *("cudnn", "cudnn_min", "cudnn_max", "cudnn_below", "windows_cudnn", "wheel_cudnn", "built_cudnn"),
        *("cublas_min", "cublas_below", "cc", "cc_min", "cc_below", "driver_min", "windows_driver_min"),
        *("sass", "sass_aarch64", "ptx"),
    }
)


def _version_fields(matrix: Matrix) -> Iterator[Fault]:
    for table, kind in TABLES.items():
        fields = [f for f in kind.__struct_fields__ if f in VERSION_FIELDS]
        spans = "last" in kind.__struct_fields__
        for row in matrix.table(table):
            for field in fields:
                value = getattr(row, field)
                for v in value if isinstance(value, tuple) else (value,):
                    if v and not v[0].isdigit():
                        yield table, row.key, f"{field} {v!r} is not a version number"
            first, last = (row.first, row.last) if spans else ("", "")  # type: ignore[attr-defined]
            if last and numbers(last) < numbers(first)[: len(numbers(last))]:
                yield table, row.key, f"last {last} comes before first {first}"


def _framework_rows(matrix: Matrix) -> Iterator[Fault]:
    tables: tuple[tuple[str, tuple[FrameworkRow, ...]], ...] = (
        ("tensorflow", matrix.tensorflow),
        ("torch", matrix.torch),
        ("jax", matrix.jax),
    )
    seen: set[str] = set()  # one look at each code: most rows repeat them
    for table, rows in tables:
        for row in rows:
            for code in set(row.capabilities) - seen:
                seen.add(code)
                if not re.fullmatch(r"(?:sm|compute)_\d{2,3}[af]?", code):
                    yield table, row.key, f"capability {code!r} is not of the form sm_90 or compute_90"
                elif matrix.gpu(capability(code)) is None:
                    yield table, row.key, f"capability {code} has no row in gpus"
            for cuda in {row.cuda, getattr(row, "wheel_cuda", "")} - {""}:
                if matrix.cuda_row(cuda) is None and numbers(cuda) >= (9,):
                    yield table, row.key, f"CUDA {cuda} has no row in cuda"
            if isinstance(row, (TensorFlowRow, TorchRow)):
                for release in row.releases:
                    if minor(release) != minor(row.version):
                        yield table, row.key, f"release {release} is not one of {row.version}"
            yield from _pin(matrix, table, row)


def _pin(matrix: Matrix, table: str, row: FrameworkRow) -> Iterator[Fault]:
    """The cuDNN that a wheel requires must exist, be of the wheel's CUDA major and satisfy its loader."""
    if not row.cudnn_pin:
        return
    parsed = re.fullmatch(r"(nvidia-cudnn-cu(\d+))((?:(?:==|>=|<|<=|!=|~=)[\d.]+,?)+)", row.cudnn_pin)
    wheels = matrix.wheels(parsed[1]) if parsed else None
    if parsed is None or wheels is None:
        yield table, row.key, f"cudnn_pin {row.cudnn_pin!r} names no distribution of cudnn_wheels"
        return
    majors = {str(numbers(v)[0]) for v in (row.cuda, getattr(row, "wheel_cuda", "")) if v}
    if isinstance(row, JaxRow):
        majors = {row.plugin.removeprefix("cuda")}
    if majors and parsed[2] not in majors:
        yield table, row.key, f"cudnn_pin is for CUDA {parsed[2]}, the wheel for CUDA {' and '.join(sorted(majors))}"
    for operator, version in re.findall(r"(==|>=)([\d.]+)", parsed[3]):
        if operator == "==" and version not in wheels.versions:
            yield table, row.key, f"cudnn_pin {row.cudnn_pin}: no such release in cudnn_wheels"
        elif operator == "==" and version in wheels.yanked:
            yield table, row.key, f"cudnn_pin {row.cudnn_pin}: that release is yanked in cudnn_wheels"
        if row.built_cudnn and numbers(version)[0] != numbers(row.built_cudnn)[0]:
            yield table, row.key, f"cudnn_pin {row.cudnn_pin} is of another major than built_cudnn {row.built_cudnn}"
        elif row.built_cudnn and numbers(version)[:2] < numbers(row.built_cudnn)[:2] and not isinstance(row, JaxRow):
            yield table, row.key, f"cudnn_pin {row.cudnn_pin} allows a cuDNN older than built_cudnn {row.built_cudnn}"


def _tensorflow(matrix: Matrix) -> Iterator[Fault]:
    for row in matrix.tensorflow:
        if row.wheel_cuda and row.cuda and cuda_version(row.wheel_cuda) != row.cuda:
            yield "tensorflow", row.key, f"wheel_cuda {row.wheel_cuda} is not the tested cuda {row.cuda}"
        if row.wheel_cudnn and row.cudnn and row.wheel_cudnn != str(numbers(row.cudnn)[0]):
            yield "tensorflow", row.key, f"wheel_cudnn {row.wheel_cudnn} is not the major of cudnn {row.cudnn}"
        if row.built_cudnn and row.cudnn and numbers(row.built_cudnn)[0] != numbers(row.cudnn)[0]:
            yield "tensorflow", row.key, f"built_cudnn {row.built_cudnn} is of another major than cudnn {row.cudnn}"
        for part in (row.python + " " + row.windows_python).split():
            if not re.fullmatch(r"\d\.\d+(-\d\.\d+)?", part):
                yield "tensorflow", row.key, f"python {part!r} is not of the form 3.9-3.12"


def _drivers(matrix: Matrix) -> Iterator[Fault]:
    before = None
    for row in matrix.cuda:
        if before and (numbers(row.cuda) <= numbers(before.cuda) or numbers(row.linux) <= numbers(before.linux)):
            yield "cuda", row.key, f"driver {row.linux} is not above that of CUDA {before.cuda}, {before.linux}"
        before = row
        branch = matrix.branch(row.linux)
        if branch is None:
            yield "cuda", row.key, f"driver {row.linux} is of a branch that branches does not have"
        elif branch.cuda != row.cuda:
            yield "cuda", row.key, f"driver branch {branch.branch} serves CUDA {branch.cuda} by branches"
    for forward in matrix.forward_compat:
        paired = next((b for b in matrix.branches if b.cuda == forward.cuda), None)
        for base in forward.base:
            if matrix.branch(base) is None:
                yield "forward_compat", forward.key, f"base {base} is not in branches"
            elif paired and int(base) >= int(paired.branch):
                yield "forward_compat", forward.key, f"base {base} serves CUDA {forward.cuda} without compat"
    for compat in matrix.minor_compat:
        if not any(numbers(r.cuda)[0] == int(compat.major) for r in matrix.cuda):
            yield "minor_compat", compat.key, f"CUDA {compat.major} has no row in cuda"


def _gpus(matrix: Matrix) -> Iterator[Fault]:
    for row in matrix.gpus:
        for low, high in ((row.cuda_min, row.cuda_max), (row.cudnn_min, row.cudnn_max)):
            if low and high and numbers(low) > numbers(high):
                yield "gpus", row.key, f"minimum {low} is above maximum {high}"
        if row.last_branch and matrix.branch(row.last_branch) is None:
            yield "gpus", row.key, f"last_branch {row.last_branch} is not in branches"
    for name in matrix.gpu_names:
        if matrix.gpu(name.cc) is None:
            yield "gpu_names", name.key, f"compute capability {name.cc} has no row in gpus"
    # Compiling costs milliseconds; the shipped patterns are compiled when they are asked, and by the tests.
    for table in ("gpu_names", "gpu_classes") if matrix.overlay else ():
        for pattern in matrix.table(table):
            try:
                re.compile(pattern.regex, re.IGNORECASE)  # type: ignore[attr-defined]
            except re.error as e:  # noqa: PERF203 - a bad pattern names itself
                yield table, pattern.key, f"not a regular expression: {e}"


def _cudnn(matrix: Matrix) -> Iterator[Fault]:
    for table in ("cudnn", "cudnn_files"):
        spans: dict[str, tuple[str, str, str]] = {}
        for row in matrix.table(table):
            kind = getattr(row, "flavour", None) if table == "cudnn" else getattr(row, "kind", None)
            first, last = row.first, row.last  # type: ignore[attr-defined]
            before = spans.get(str(kind))
            if before and numbers(first) <= numbers(before[1]) + (10**6,) * (4 - len(numbers(before[1]))):
                yield table, row.key, f"{first} to {last} overlaps row {before[2]!r}, {before[0]} to {before[1]}"
            spans[str(kind)] = (first, last, row.key)
    for build in matrix.cudnn:
        if not re.fullmatch(r"\d+\.\d-\d+\.\d", build.cc):
            yield "cudnn", build.key, f"cc {build.cc!r} is not of the form 7.5-12.1"
        codes = [int(c) for c in build.sass]
        if codes != sorted(set(codes)):
            yield "cudnn", build.key, f"sass {' '.join(build.sass)} is not ascending"
        for part in build.cuda:
            if build.flavour and str(numbers(part)[0]) != build.flavour:
                yield "cudnn", build.key, f"CUDA {part} is not of the flavour cu{build.flavour}"
    for wheels in matrix.cudnn_wheels:
        if missing := set(wheels.yanked) - set(wheels.versions):
            yield "cudnn_wheels", wheels.key, f"yanked {min(missing)} is not among versions"
        if list(wheels.versions) != sorted(wheels.versions, key=lambda v: (numbers(v), len(v))):
            yield "cudnn_wheels", wheels.key, "versions are not ascending"
        newest = wheels.versions[-1]
        row_kind = wheels.cuda_major if wheels.kind == "full" else None
        if row_kind and matrix.cudnn_row(newest, row_kind) is None:
            yield "cudnn_wheels", wheels.key, f"the newest, {newest}, has no row in cudnn for CUDA {row_kind}"
        if matrix.files(newest, wheels.kind) is None:
            yield "cudnn_wheels", wheels.key, f"the newest, {newest}, has no row in cudnn_files"


CHECKS: tuple[Callable[[Matrix], Iterator[Fault]], ...] = (
    _version_fields,
    _framework_rows,
    _tensorflow,
    _drivers,
    _gpus,
    _cudnn,
)
