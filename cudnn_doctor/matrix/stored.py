"""The checked matrix in one JSON file, so that a question needs no YAML reader.

matrix/compiled.json is made when the package is built (.ci/build_hook.py) and never committed. It tells of which YAML
and row types it was made; where those have changed since, or where there is no such file, the YAML itself is read.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import msgspec

from cudnn_doctor.matrix import rows
from cudnn_doctor.matrix.tables import Matrix

FILE = Path(__file__).with_name("compiled.json")


class Stored(msgspec.Struct, frozen=True):
    made_of: int
    matrix: Matrix


def stored(file: Path) -> Matrix | None:
    """The matrix of that file, as it was checked when the package was built; None where that is not of today."""
    try:
        found = msgspec.json.decode(FILE.read_bytes(), type=Stored)
        made_of = checksum(file)
    except (OSError, msgspec.DecodeError):
        return None
    return msgspec.structs.replace(found.matrix, file=str(file)) if found.made_of == made_of else None


def write(file: Path, matrix: Matrix) -> None:
    """Makes compiled.json; for the build of the package."""
    FILE.write_bytes(msgspec.json.encode(Stored(checksum(file), matrix)))


def checksum(file: Path) -> int:
    """Of the YAML, and of the types that its rows become."""
    return crc32(Path(rows.__file__).read_bytes(), crc32(file.read_bytes()))
