"""That the original is as it was: RECORD files by hash, every file by identity, size and time, and the files of the
distributions that the trial changes against the sha256 that their RECORD lists.

A write into a shared file changes its size or its time; the number of links and the time of the last change of metadata
change by linking alone and do not count.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from cudnn_doctor.clone.copying import files_of
from cudnn_doctor.model.base import Base

_Stamp = tuple[int, int, int, int]


class State(Base, frozen=True, kw_only=True):
    """An environment at one moment."""

    records: dict[str, str]  # path of a RECORD -> sha256
    stamps: dict[str, _Stamp]  # path -> inode, size, time of the last write in ns, mode
    hashes: dict[str, str]  # path -> sha256, of the files of the named distributions


def state_of(prefix: Path, distributions: Sequence[str] = ()) -> State:
    """Reads an environment; `distributions` are those whose files are hashed one by one."""
    stamps: dict[str, _Stamp] = {}
    records: dict[str, str] = {}
    for entry in files_of(prefix):
        if f"{os.sep}__pycache__{os.sep}" in entry.path:
            continue  # Python itself writes there when the user runs it meanwhile
        status = entry.stat(follow_symlinks=False)
        stamps[entry.path] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode)
        if entry.name == "RECORD":
            records[entry.path] = _hash(entry.path)
    return State(records=records, stamps=stamps, hashes=_hashes(records, distributions))


def differences(before: State, after: State) -> list[str]:
    """Paths that are not as they were."""
    changed = [p for p in before.stamps.keys() | after.stamps.keys() if before.stamps.get(p) != after.stamps.get(p)]
    changed += [p for p in before.records if before.records[p] != after.records.get(p)]
    changed += [p for p in before.hashes if before.hashes[p] != after.hashes.get(p)]
    return sorted(set(changed))


def in_words(before: State, after: State) -> str:
    """ "identical: ..." or what differs."""
    changed = differences(before, after)
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        return f"CHANGED while this ran: {', '.join(changed[:3])}{more}"
    return (
        f"identical: {len(before.records)} RECORD files and {len(before.hashes)} files by sha256, "
        f"all {len(before.stamps)} files by inode, size and time"
    )


def _hashes(records: dict[str, str], distributions: Sequence[str]) -> dict[str, str]:
    from cudnn_doctor.probe.packages import normalised

    found = {}
    for record in records:
        info = os.path.dirname(record)
        if normalised(os.path.basename(info).partition("-")[0]) not in distributions:
            continue
        site = os.path.dirname(info)
        for line in Path(record).read_text(encoding="utf-8", errors="replace").splitlines():
            path = os.path.join(site, line.rsplit(",", 2)[0].strip('"'))
            if os.path.isfile(path) and "__pycache__" not in path:
                found[path] = _hash(path)
    return found


def _hash(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
