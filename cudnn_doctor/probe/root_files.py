"""Reading small files below an injectable root, with every failure turned into an `Absent`.

Probes take `root` so that an image or a test folder can be read as if it were a machine. Sources name the path as that
machine sees it ("/proc/version"), never with the root before it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cudnn_doctor.model.base import Absent, AbsentReason, Known

T = TypeVar("T")

ROOT = Path("/")
LINUX_ONLY = Absent(reason="not-supported", detail="read from /proc, /sys and /dev: Linux only")

_REASONS: dict[int | None, AbsentReason] = {
    errno.ENOENT: "not-found",
    errno.ENOTDIR: "not-found",
    errno.EACCES: "no-permission",
    errno.EPERM: "no-permission",
}


def on_linux() -> bool:
    return sys.platform.startswith("linux")


def at(root: Path, path: str) -> str:
    """Where the machine's absolute `path` lies below `root`."""
    return os.path.join(root, path.lstrip("/"))


def clean(text: str) -> str:
    """Text that JSON can carry: what was no UTF-8 on disk or in the environment becomes U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read(root: Path, path: str, limit: int = 1 << 18) -> str:
    """At most `limit` bytes from the start of a file, as clean text.

    Raises:
        OSError: as `open` and `read` do, with the machine's own path in it.
    """
    try:
        with open(at(root, path), "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError as error:
        error.filename = path
        raise


def entries(root: Path, path: str) -> list[str]:
    """Names in a folder, sorted.

    Raises:
        OSError: as `os.listdir` does, with the machine's own path in it.
    """
    try:
        return sorted(os.listdir(at(root, path)))
    except OSError as error:
        error.filename = path
        raise


def absent(error: Exception) -> Absent:
    """The reason that an exception stands for."""
    if isinstance(error, OSError):
        where = f"{clean(str(error.filename))}: " if error.filename else ""
        return Absent(reason=_REASONS.get(error.errno, "error"), detail=f"{where}{error.strerror or error}")
    return Absent(reason="error", detail=clean(f"{type(error).__name__}: {error}"))


def guard(answer: Callable[[], Known[T] | Absent]) -> Known[T] | Absent:
    """The answer, or what its exception means: no fact raises out of a probe."""
    try:
        return answer()
    except Exception as error:
        return absent(error)


def linux_fact(answer: Callable[[], Known[T] | Absent]) -> Known[T] | Absent:
    """As `guard`, for what only Linux can tell."""
    return guard(answer) if on_linux() else LINUX_ONLY
