"""Reads the dynamic linker's cache, /etc/ld.so.cache, without starting `ldconfig -p`.

The two layouts are glibc's (elf/cache.c, sysdeps/generic/dl-cache.h): the old one with magic "ld.so-1.7.0", alone or
followed by the new one with magic "glibc-ld.so.cache1.1", which since glibc 2.32 stands alone. As in ld.so, a cache
that cannot be read or makes no sense counts as no cache. musl has none.
"""

from __future__ import annotations

import os
import struct
from functools import lru_cache
from pathlib import Path

_OLD_MAGIC = b"ld.so-1.7.0"
_OLD_HEADER = 16  # magic, one byte of padding, count
_OLD_ENTRY = struct.Struct("=iII")  # flags, offset of the soname, offset of the path
_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_NEW_HEADER = 48  # magic, count, length of strings, flags, extension offset, unused
_NEW_ENTRY = struct.Struct("=iIIIQ")  # flags, soname, path, OS version, hardware capabilities
_COUNT = struct.Struct("=I")

# FLAG_ELF_LIBC6 with the architecture's flag: what the dynamic linker of that machine accepts from the cache.
_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03, "ppc64le": 0x0503, "s390x": 0x0403, "i686": 0x0003, "i386": 0x0003}


def read_ld_cache(root: Path = Path("/")) -> tuple[tuple[str, str], ...]:
    """(soname, path) pairs for this machine's architecture, in the cache's own order: of one soname the first wins.

    Args:
        root: where the file system begins, so that an image or a test folder can be read. Paths are given as written.
    """
    try:
        data = (root / "etc/ld.so.cache").read_bytes()
    except OSError:
        return ()
    return parse_ld_cache(data, _machine())


@lru_cache(maxsize=2)  # several probes read the same cache; keyed by its content
def parse_ld_cache(data: bytes, machine: str) -> tuple[tuple[str, str], ...]:
    """The pairs in the bytes of a cache; those of other architectures than `machine` ("x86_64") are left out. Of a
    machine that the table does not know, all are given."""
    wanted = _FLAGS.get(machine)
    try:
        entries = _entries(data)
    except (struct.error, ValueError, IndexError):
        return ()
    return tuple((name, path) for flags, name, path in entries if wanted is None or flags == wanted)


def _machine() -> str:
    return os.uname().machine if hasattr(os, "uname") else ""


def _entries(data: bytes) -> list[tuple[int, str, str]]:
    if data.startswith(_NEW_MAGIC):
        return _new_entries(data)
    if not data.startswith(_OLD_MAGIC):
        return []
    (count,) = _COUNT.unpack_from(data, len(_OLD_MAGIC) + 1)
    strings = _OLD_HEADER + count * _OLD_ENTRY.size
    new = strings + -strings % 8  # the new layout begins at the next multiple of 8
    if data.startswith(_NEW_MAGIC, new):
        return _new_entries(data[new:])
    rows = _OLD_ENTRY.iter_unpack(data[_OLD_HEADER:strings])
    return [(flags, _text(data, strings + key), _text(data, strings + value)) for flags, key, value in rows]


def _new_entries(data: bytes) -> list[tuple[int, str, str]]:
    (count,) = _COUNT.unpack_from(data, len(_NEW_MAGIC))
    end = _NEW_HEADER + count * _NEW_ENTRY.size
    if end > len(data):
        raise ValueError("the cache is cut short")
    rows = _NEW_ENTRY.iter_unpack(data[_NEW_HEADER:end])
    return [(flags, _text(data, key), _text(data, value)) for flags, key, value, _, _ in rows]


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode("utf-8", "surrogateescape")
