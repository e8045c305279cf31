"""Files that leave the program: whole or not at all, readable by their owner alone, never over a file that is there
unless the user says so."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

MODE = 0o600


def write(path: Path, content: str | bytes, *, force: bool = False) -> None:
    """Writes `content` (text as UTF-8) to `path` in one step.

    Raises:
        OSError: with a message for the user: the file is there and `force` is not given, the folder is missing or may
            not be written, the disk is full. Nothing is left behind then.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    refuse(path, force=force)
    with _explained(path):
        if _is_stream(path):
            with path.open("ab") as out:
                out.write(data)
        else:
            _replace(path, data, force=force)


def refuse(path: Path, *, force: bool = False) -> None:
    """Raises what `write` would, as far as that can be told before there is anything to write.

    Raises:
        OSError: as `write`.
    """
    with _explained(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not force and os.path.lexists(path) and not _is_stream(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _is_stream(path: Path) -> bool:
    """A device, a named pipe, what the shell opened: there is nothing to replace."""
    if path.exists() and not path.is_file():
        return True
    return str(path) in ("/dev/stdout", "/dev/stderr") or str(path.parent) in ("/dev/fd", "/proc/self/fd")


def _replace(path: Path, data: bytes, *, force: bool) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), MODE)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        if force:
            part.replace(path)
        else:
            _link(part, path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _link(part: Path, path: Path) -> None:
    """Gives the finished file its name, failing when somebody else took it meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links (FAT, some network shares)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
        part.replace(path)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as e:
        raise FileExistsError(f"{path} is there already and was kept; --force replaces it.") from e
    except IsADirectoryError as e:
        raise IsADirectoryError(f"{path} is a folder; name a file in it.") from e
    except OSError as e:
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}; nothing was written.") from e
        what = e.strerror or str(e)
        raise OSError(f"{path} could not be written: {what}. Nothing is left of it; -o takes another place.") from e
