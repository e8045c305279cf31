"""Copies of the driver's own libraries on the dynamic loader's path, in its order.

For libraries that nobody links with an RPATH of their own: libcuda.so.1 and libnvidia-ml.so.1 come with the driver and
are opened by soname. The order is ld.so(8): LD_LIBRARY_PATH, /etc/ld.so.cache, the default folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from cudnn_doctor.model.base import Absent, Base, Known, known
from cudnn_doctor.probe.root_files import at, clean

_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21}  # e_machine of elf.h


class Found(Base, frozen=True, kw_only=True):
    """A file that the loader would meet, and where its search was. Paths are the machine's own."""

    path: str
    real_path: str
    found_by: str
    defect: str = ""  # why the loader could not map it


def find_on_path(soname: str, root: Path, environ: Mapping[str, str]) -> tuple[Found, ...]:
    """Every copy for this architecture, one entry a real file, the one that a plain dlopen opens first.

    A file of another architecture is passed over, as the loader does; one that is no ELF file at all (an empty leftover
    of a container's bind mount) stops the loader, so it is listed with its defect.
    """
    found: dict[str, Found] = {}
    for path, found_by in _candidates(soname, root, environ):
        copy = examine(path, found_by, root)
        if copy is not None:
            found.setdefault(copy.real_path, copy)
    return tuple(found.values())


def examine(path: str, found_by: str, root: Path) -> Found | None:
    """The file at `path`, or None where there is none for this architecture."""
    place = at(root, path)
    try:
        with open(place, "rb") as file:
            header = file.read(20)
        defect = (
            "" if header[:4] == b"\x7fELF" and len(header) == 20 else f"no ELF file: {os.path.getsize(place)} bytes"
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        header, defect = b"", f"not readable: {error.strerror}"
    if not defect and not _fits(header):
        return None
    return Found(path=clean(path), real_path=clean(_real_path(place, root)), found_by=found_by, defect=defect)


def release_of(path: str) -> Known[str] | Absent:
    """Driver release in a library's file name, "580.159.04" of libcuda.so.580.159.04."""
    match = re.search(r"\.so\.(\d{3,}(?:\.\d+)+)$", path)
    if match is None:
        return Absent(reason="not-found", detail=f"the file name carries no driver release: {os.path.basename(path)}")
    return known(match[1], f"file name {path}")


def _candidates(soname: str, root: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    search = environ.get("LD_LIBRARY_PATH", "")
    for folder in re.split("[:;]", search) if search else ():  # an empty entry is the working directory
        if "$" not in folder:  # $ORIGIN is the consumer's own folder
            yield os.path.join(os.path.abspath(folder), soname), "LD_LIBRARY_PATH"
    yield from ((path, "ld.so.cache") for path in _cached(soname, root))
    multiarch = f"{_machine()}-linux-gnu"
    for folder in (f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"):
        yield f"{folder}/{soname}", "default folder"


def _cached(soname: str, root: Path) -> list[str]:
    try:
        with open(at(root, "/etc/ld.so.cache"), "rb") as file:
            if soname.encode() not in file.read():  # a box without NVIDIA: spares decoding a thousand names
                return []
    except OSError:
        return []
    from cudnn_doctor.probe.ldcache import read_ld_cache

    return [path for name, path in read_ld_cache(root) if name == soname]


def _machine() -> str:
    return os.uname().machine if hasattr(os, "uname") else ""


def _fits(header: bytes) -> bool:
    wanted = _MACHINES.get(_machine())
    order: Literal["little", "big"] = "little" if header[5] == 1 else "big"
    return wanted is None or (header[4] == 2 and int.from_bytes(header[18:20], order) == wanted)


def _real_path(place: str, root: Path) -> str:
    """Symlinks followed; links that leave the root are kept as they are."""
    real, base = os.path.realpath(place), os.path.realpath(root)
    return "/" + os.path.relpath(real, base) if real.startswith(base.rstrip("/") + "/") else real
