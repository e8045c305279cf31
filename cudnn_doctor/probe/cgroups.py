"""The memory limit that cgroups put on this process: its own group's and its ancestors', v1 and v2."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from cudnn_doctor.model.base import Absent, Base, Known, known
from cudnn_doctor.probe.root_files import ROOT, at, linux_fact, read

UNLIMITED = -1
_NO_LIMIT = 1 << 62  # v1 writes LONG_MAX rounded down to a page where there is no limit


class _Hierarchy(Base, frozen=True, kw_only=True):
    mount: str  # where it is mounted
    root: str  # which of its groups is at the mount
    file: str  # the file of a group that is wanted
    group: str  # this process's group


def probe_memory_limit(root: Path = ROOT) -> Known[int] | Absent:
    """The smallest limit in bytes, -1 where there is none; the source is the file that sets it."""
    return linux_fact(lambda: _limit(root))


def _limit(root: Path) -> Known[int] | Absent:
    paths = list(group_files(root, v2="memory.max", v1="memory.limit_in_bytes"))
    # Not every group has the file: the root group of v2 has none.
    limits = [(_parse(read(root, path)), path) for path in paths if os.path.exists(at(root, path))]
    if not limits:
        return Absent(reason="not-found", detail="no memory controller is mounted for the group of this process")
    limit, path = min(limits, key=lambda pair: pair[0])
    return known(UNLIMITED if limit >= _NO_LIMIT else limit, path)


def group_files(root: Path, *, v2: str, v1: str) -> Iterator[str]:
    """Paths of a file of the memory controller, in this process's group and in its ancestors up to the mount.

    Args:
        v2, v1: its name in either version of cgroups.

    Raises:
        OSError: /proc/self/cgroup or mountinfo cannot be read.
    """
    for hierarchy in _hierarchies(root, v2, v1):
        yield from _files(hierarchy)


def _parse(text: str) -> int:
    word = text.strip()
    return _NO_LIMIT if word == "max" else int(word)


def _hierarchies(root: Path, v2: str, v1: str) -> Iterator[_Hierarchy]:
    """The memory hierarchies: proc(5) mountinfo for the mounts, /proc/self/cgroup for this process's group."""
    groups: dict[str, str] = {}  # controller ("" is v2) -> group
    for line in read(root, "/proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), group))
    for line in read(root, "/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        fields = before.split(" ")
        if kind == "cgroup2" and "" in groups:
            yield _Hierarchy(mount=fields[4], root=fields[3], file=v2, group=groups[""])
        elif kind == "cgroup" and "memory" in options.split(",") and "memory" in groups:
            yield _Hierarchy(mount=fields[4], root=fields[3], file=v1, group=groups["memory"])


def _files(hierarchy: _Hierarchy) -> Iterator[str]:
    """The limit files from this process's group up to the mount."""
    group = PurePosixPath(os.path.normpath(hierarchy.group))  # "/../.." of a group outside the namespace: its root
    if group.is_relative_to(hierarchy.root):
        group = PurePosixPath("/") / group.relative_to(hierarchy.root)
    for folder in (group, *group.parents):
        yield f"{hierarchy.mount}{str(folder).rstrip('/')}/{hierarchy.file}"
