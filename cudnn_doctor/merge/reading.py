"""Opens what is to be merged and gives one report after the other: files, folders, zip, tar, JSON lines, a labelled
stream. The only place of this room that touches files.

Nothing here trusts the input: a report has at most `LARGEST` bytes, a stream is split as it comes, an archive is read
member by member up to that size, and whatever is no report is told by name while the rest goes on.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from cudnn_doctor.merge.collecting import Arrival
from cudnn_doctor.merge.streams import LARGEST, documents, is_one
from cudnn_doctor.model.errors import UsageError

REPORTS = (".json", ".jsonl", ".ndjson")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
MOST_FILES = 200_000
COMMON = ("report", "snapshot", "check", "box")  # names that say nothing of the node: its folder's name counts
MIB = 1 << 20


def arrivals(sources: Iterable[str]) -> Iterator[Arrival]:
    """What the files, folders and `-` hold.

    Raises:
        UsageError: a source that was named is not there.
    """
    for source in sources:
        if source == "-":
            if sys.stdin is None:
                raise UsageError("standard input is closed; give files or a folder instead of -.")
            yield from documents(sys.stdin.buffer, "stdin")
            continue
        path = Path(source)
        try:
            folder = path.is_dir()
            if not folder and not path.exists():
                raise UsageError(f"{source} is not there; merge takes files, folders and - for stdin.")
        except (OSError, ValueError) as e:
            raise UsageError(f"{source[:200]!r} cannot be read: {e}.") from e
        yield from _folder(path) if folder else _file(path, _name(path))


def _folder(path: Path) -> Iterator[Arrival]:
    count = 0
    for root, folders, files in os.walk(path):  # links to folders are not followed: no way round in a circle
        folders.sort()
        for name in sorted(files):
            if not name.lower().endswith((*REPORTS, *ARCHIVES)) or name.startswith("."):
                continue
            count += 1
            if count > MOST_FILES:
                raise UsageError(f"{path} holds more than {MOST_FILES} files; give a smaller folder.")
            file = Path(root, name)
            yield from _file(file, _name(file))


def _name(path: Path) -> str:
    """A node's name by its file: `n17.json`, or `n17/report.json`."""
    stem = _stem(path.name)
    return stem if stem not in COMMON else path.resolve().parent.name


def _stem(name: str) -> str:
    for ending in sorted((*REPORTS, *ARCHIVES), key=len, reverse=True):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
            break
    for said in (".report", ".snapshot", ".check"):
        name = name.removesuffix(said)
    return name


def _file(path: Path, node: str) -> Iterator[Arrival]:
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST and not path.name.lower().endswith(ARCHIVES):
                yield from _documents(file.read(), str(path), node)
            elif stat.S_ISREG(about.st_mode) or stat.S_ISFIFO(about.st_mode):
                yield from _contents(file, path, node)
            else:
                yield Arrival(node, str(path), state="unreadable", reason="it is no file")
    except OSError as e:
        yield Arrival(node, str(path), state="unreadable", reason=f"it cannot be read: {e.strerror or e}")


def _contents(file: IO[bytes], path: Path, node: str) -> Iterator[Arrival]:
    name = path.name.lower()
    if name.endswith(".zip"):
        yield from _zip(file, str(path), node)
    elif name.endswith(ARCHIVES):
        yield from _tar(file, str(path))
    else:
        yield from documents(file, str(path), node)


def _documents(data: bytes, source: str, node: str) -> Iterator[Arrival]:
    if is_one(data):
        yield Arrival(node, source, data)
    else:
        yield from documents(BytesIO(data), source, node)


def _zip(file: IO[bytes], source: str, node: str) -> Iterator[Arrival]:
    import zipfile

    try:
        archive = zipfile.ZipFile(file)
        members = {m.filename: m for m in archive.infolist() if not m.is_dir()}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as e:
        yield Arrival(node, source, state="unreadable", reason=f"a zip that cannot be read: {e}")
        return
    if "MANIFEST.json" in members and "report.json" in members:  # of `cudnn-doctor report -o FILE.zip`: one node
        members = {"report.json": members["report.json"]}
    for name, member in list(members.items())[:MOST_FILES]:
        if name.lower().endswith(REPORTS):
            inside = f"{source}:{name}"
            with_node = node if name == "report.json" else _member_name(name)
            yield from _member(lambda m=member: archive.open(m), member.file_size, inside, with_node)


def _tar(file: IO[bytes], source: str) -> Iterator[Arrival]:
    import tarfile

    try:
        with tarfile.open(fileobj=file, mode="r|*") as archive:  # as a stream: nothing is unpacked, no way back
            for count, member in enumerate(archive):
                if count >= MOST_FILES:
                    raise UsageError(f"{source} holds more than {MOST_FILES} files; give a smaller archive.")
                if member.isfile() and member.name.lower().endswith(REPORTS):
                    inside = f"{source}:{member.name}"
                    node = _member_name(member.name)
                    yield from _member(lambda m=member: archive.extractfile(m), member.size, inside, node)
    except (tarfile.TarError, OSError, EOFError, ValueError) as e:
        yield Arrival(_stem(Path(source).name), source, state="unreadable", reason=f"a tar that cannot be read on: {e}")


def _member_name(name: str) -> str:
    parts = re.split(r"[/\\]", name)
    stem = _stem(parts[-1])
    return parts[-2] if stem in COMMON and len(parts) > 1 else stem


def _member(opened: Any, size: int, source: str, node: str) -> Iterator[Arrival]:
    if size > LARGEST:
        yield Arrival(
            node, source, state="unreadable", reason=f"it has {size // MIB} MiB; no report has {LARGEST // MIB}"
        )
        return
    try:
        with opened() as file:
            data = file.read(LARGEST + 1)
    except Exception as e:  # damaged, encrypted, an unknown method: zipfile and tarfile raise many kinds
        yield Arrival(node, source, state="unreadable", reason=f"it cannot be unpacked: {str(e)[:200]}")
        return
    yield from _documents(data, source, node)
