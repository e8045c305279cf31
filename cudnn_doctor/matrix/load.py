"""compat_matrix.yaml read and checked.

The wheel carries the file inside the package, a checkout at its top. `load_matrix` lays a user's own file over it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from cudnn_doctor.knowledge.load import HERE, parse_yaml
from cudnn_doctor.matrix.rows import LISTS, TABLES, CudnnRow, Row
from cudnn_doctor.matrix.stored import stored
from cudnn_doctor.matrix.tables import Matrix, MatrixError

SCHEMA = "cudnn-doctor/compat-matrix/1"


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
    file = matrix_file()
    if overlay is None and (made := stored(file)):
        return made
    return read_matrix(file, overlay)


def read_matrix(file: Path, overlay: Path | None = None) -> Matrix:
    """As `load_matrix`, from the YAML in any case."""
    tables = read(file, unique=False)  # a test holds ours to it
    if missing := [name for name in TABLES if name not in tables]:
        raise MatrixError(f"{file.name}: table {missing[0]} is missing")
    own: set[tuple[str, str]] = set()
    if overlay is not None:
        for name, rows in read(overlay).items():
            merged = {row.key: row for row in tables[name]} | {row.key: row for row in rows}
            tables[name] = tuple(merged.values())
            own |= {(name, row.key) for row in rows}
    from cudnn_doctor.matrix.validate import check

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
