"""Recordings: snapshots and reports read from files, and the examples that ship with the tool."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cudnn_doctor.model.base import decode
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.report import Examination, Report, SnapshotFile, tool

LARGEST = 64 << 20  # bytes of a recording; a real one has 0.2 MB


def load(name: str) -> Examination:
    """A snapshot or report file, or `example:NAME`, one of the recordings that ship with the tool.

    Raises:
        UsageError: not there, not readable, not JSON of ours, or of a later schema.
    """
    path = _example(name.removeprefix("example:")) if name.startswith("example:") else Path(name)
    try:
        with open(0 if name == "-" else path, "rb", closefd=name != "-") as f:
            data = f.read(LARGEST + 1)
    except OSError as e:
        raise UsageError(f"cannot read {name!r}: {e.strerror}. It takes a file of `cudnn-doctor snapshot`.") from e
    if len(data) > LARGEST:
        raise UsageError(f"{name} has more than {LARGEST >> 20} MiB: no snapshot or report of cudnn-doctor.")
    if data.startswith(b"PK\3\4"):
        raise UsageError(f"{name} is an archive: unpack report.json (of `report -o FILE.zip`) and give that one.")
    kinds: dict[str, type[Report] | type[SnapshotFile]] = {
        "cudnn-doctor/report/1": Report,
        "cudnn-doctor/snapshot/1": SnapshotFile,
    }
    try:
        data = utf8(data)
        schema = decode(data, _Head).schema
        if schema not in kinds:
            raise UsageError(f"{name} has schema {schema!r}; this version reads {', '.join(kinds)}.")
        document = decode(data, kinds[schema])
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise UsageError(f"{name} is not a snapshot or report of cudnn-doctor: {e}.") from e
    return Examination(snapshot=document.snapshot, scenarios=document.scenarios, trials=document.trials, replayed=name)


def utf8(data: bytes) -> bytes:
    """Without the mark that editors of Windows put in front; the `>` of its PowerShell writes UTF-16."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


class _Head(msgspec.Struct):
    schema: str


def examples() -> tuple[str, ...]:
    """Names of the recordings that ship with the tool."""
    return tuple(sorted(p.stem for p in (Path(__file__).parent / "examples").glob("*.json")))


def _example(name: str) -> Path:
    if name not in examples():
        raise UsageError(f"no example {name!r}; there are {', '.join(examples()) or 'none here'}.")
    return Path(__file__).parent / "examples" / f"{name}.json"


def snapshot_file(examined: Examination) -> SnapshotFile:
    """The document of `cudnn-doctor snapshot`."""
    return SnapshotFile(tool=tool(), snapshot=examined.snapshot, scenarios=examined.scenarios, trials=examined.trials)
