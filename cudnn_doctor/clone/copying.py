"""Copies an environment: by reflinks where the disk knows them, else by hard links, else file by file.

A hard link shares its file with the original. That is safe for what installers and Python do, since they put a new file
in a name's place (pip unlinks before it writes, uv renames, so does Python with .pyc files), and `integrity` holds the
original against what it was. What programs edit in place (text, small data) is copied: only code, libraries and files
of 1 MiB or more are linked.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from cudnn_doctor.model.base import Base
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.package_trial import Clone

Method = Literal["hard links", "reflinks", "copies"]
MARK = ".cudnn-doctor-try"  # in a clone: the PID of its maker, "PID START"
_PREFIX = "cudnn-doctor-try-"
_CODE = (".py", ".pyc", ".pyi", ".so", ".h", ".hpp", ".cuh")
_LARGE = 1 << 20  # bytes from which a file is linked whatever its name
_FICLONE = 0x40049409
_RESERVE = 256 << 20  # bytes to leave free


class Size(Base, frozen=True, kw_only=True):
    """What an environment holds."""

    files: int
    bytes: int
    copied: int  # bytes of the files that are not linked


class Place(Base, frozen=True, kw_only=True):
    """Where the copy will be, and how it will be made."""

    folder: str
    method: Method
    size: Size
    free: int


def plan(prefix: Path) -> Place:
    """Looks for a place on the same disk, where links are possible: the temporary folder, else beside the environment.

    Raises:
        UsageError: there is no room for the copy.
    """
    size = _size(prefix)
    device = os.stat(prefix).st_dev
    folders = [Path(tempfile.gettempdir()), prefix.resolve().parent]
    usable = [f for f in folders if os.access(f, os.W_OK | os.X_OK)]
    same = [f for f in usable if os.stat(f).st_dev == device]
    if not usable:
        raise UsageError(f"try: neither {folders[0]} nor {folders[1]} can be written to: TMPDIR names another folder.")
    folder = (same or usable)[0]
    method: Method = "copies"
    if same:
        method = "reflinks" if _reflinks(prefix, folder) else "hard links" if _hard_links(prefix, folder) else "copies"
    free = shutil.disk_usage(folder).free
    needed = size.copied if method == "hard links" else 0 if method == "reflinks" else size.bytes
    if needed + _RESERVE > free:
        raise UsageError(
            f"try: a copy of {prefix} by {method} takes {needed >> 20} MiB, and {folder} has {free >> 20} MiB free: "
            "TMPDIR names another folder."
        )
    return Place(folder=str(folder), method=method, size=size, free=free)


def make(prefix: Path, place: Place) -> tuple[Path, Clone]:
    """The copy, marked as ours, with the paths in it rewritten. Leftovers of killed calls are removed first."""
    remove_leftovers(Path(place.folder))
    start = time.monotonic()
    clone = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place.folder))
    (clone / MARK).write_text(f"{os.getpid()} {_started(os.getpid())}\n")
    env = clone / "env"
    try:
        _tree(prefix, env, place.method)
        _own_paths(prefix, env)
    except BaseException:
        remove(clone)
        raise
    made = Clone(
        source=str(prefix),
        place=str(env),
        method=place.method,
        files=place.size.files,
        bytes=place.size.bytes,
        free=place.free,
        seconds=round(time.monotonic() - start, 2),
    )
    return clone, made


def remove(clone: Path) -> None:
    """Takes a copy away; never follows a link. A folder without write permission is opened for it first."""
    for folder, _, _ in os.walk(clone):
        with suppress(OSError):
            if not os.access(folder, os.W_OK | os.X_OK):
                os.chmod(folder, stat.S_IRWXU)
    shutil.rmtree(clone, ignore_errors=True)


def remove_leftovers(folder: Path) -> int:
    """Removes copies whose makers are gone (killed with SIGKILL); how many."""
    count = 0
    for clone in folder.glob(f"{_PREFIX}*"):
        try:
            pid, started = (clone / MARK).read_text().split()
            mine = os.stat(clone).st_uid == os.getuid()
        except (OSError, ValueError):
            continue
        if mine and _started(int(pid)) != started:
            remove(clone)
            count += 1
    return count


def _started(pid: int) -> str:
    """When a process began, in clock ticks after boot: with the PID it names a process for ever. "" when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def files_of(prefix: Path) -> Iterator[os.DirEntry[str]]:
    """Every file and link below a folder; links are not followed."""
    with os.scandir(prefix) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from files_of(Path(entry.path))
            else:
                yield entry


def _size(prefix: Path) -> Size:
    files = total = copied = 0
    for entry in files_of(prefix):
        size = entry.stat(follow_symlinks=False).st_size
        files, total = files + 1, total + size
        copied += 0 if _is_linked(entry.name, size) else size
    return Size(files=files, bytes=total, copied=copied)


def _is_linked(name: str, size: int) -> bool:
    return name.endswith(_CODE) or ".so." in name or size >= _LARGE


def _tree(source: Path, target: Path, method: Method) -> None:
    def copy(file: str, to: str) -> str:
        if method == "hard links" and _is_linked(os.path.basename(file), os.stat(file).st_size):
            os.link(file, to)
        elif method != "reflinks" or not _reflink(file, to):
            shutil.copy2(file, to)
        return to

    shutil.copytree(source, target, symlinks=True, copy_function=copy)


def _own_paths(prefix: Path, env: Path) -> None:
    """Puts the copy's path in place of the original's where an environment holds its own: bin/ and .pth files."""
    old, new = os.fsencode(str(prefix)), os.fsencode(str(env))
    texts = [p for p in (env / "bin").iterdir() if p.is_file() and not p.is_symlink()] if (env / "bin").is_dir() else []
    texts += [p for lib in ("lib", "lib64") for p in (env / lib).glob("python*/site-packages/*.pth") if p.is_file()]
    for path in texts:
        with suppress(OSError):
            data = path.read_bytes() if path.stat().st_size < 1 << 20 else b""
            if old in data and b"\0" not in data[:4096]:
                mode = path.stat().st_mode
                path.unlink()  # it may be a link into the original
                path.write_bytes(data.replace(old, new))
                path.chmod(stat.S_IMODE(mode))
    for path in (p for p in (env / "bin").iterdir() if p.is_symlink()) if (env / "bin").is_dir() else ():
        target = os.readlink(path)
        if target.startswith(f"{prefix}/"):
            path.unlink()
            path.symlink_to(target.replace(str(prefix), str(env), 1))


def _reflinks(prefix: Path, folder: Path) -> bool:
    """Whether this disk shares blocks between files (btrfs, XFS), tried with one."""
    return _tried(prefix, folder, _reflink)


def _hard_links(prefix: Path, folder: Path) -> bool:
    def link(file: str, to: str) -> bool:
        try:
            os.link(file, to)
        except OSError:
            return False
        return True

    return _tried(prefix, folder, link)


def _tried(prefix: Path, folder: Path, way: Callable[[str, str], bool]) -> bool:
    sample = next((e.path for e in files_of(prefix) if e.is_file(follow_symlinks=False)), "")
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder) as test:
        return bool(sample) and way(sample, os.path.join(test, "file"))


def _reflink(file: str, to: str) -> bool:
    """FICLONE of ioctl_ficlone(2); False where the disk has no such thing."""
    try:
        import fcntl

        with open(file, "rb") as source, open(to, "wb") as target:
            fcntl.ioctl(target, _FICLONE, source.fileno())
        shutil.copystat(file, to)
    except OSError as e:
        with suppress(OSError):
            os.unlink(to)
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return False
    return True
