"""ld.so.cache in its three layouts, and the real one against `ldconfig -p`."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from cudnn_doctor.probe.ldcache import parse_ld_cache, read_ld_cache

X86, I386 = 0x0303, 0x0003
ENTRIES = [
    (X86, "libcudnn.so.9", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"),
    (I386, "libcudnn.so.9", "/usr/lib/i386-linux-gnu/libcudnn.so.9"),
    (X86, "libcudnn.so.9", "/opt/cudnn/lib/libcudnn.so.9"),
    (X86, "libé.so.1", "/opt/é/libé.so.1"),
]
EXPECTED = (
    ("libcudnn.so.9", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"),
    ("libcudnn.so.9", "/opt/cudnn/lib/libcudnn.so.9"),
    ("libé.so.1", "/opt/é/libé.so.1"),
)


def strings(entries: Sequence[tuple[int, str, str]]) -> tuple[bytes, list[tuple[int, int]]]:
    data, offsets = b"", []
    for _, name, path in entries:
        offsets.append((len(data), len(data) + len(name.encode()) + 1))
        data += name.encode() + b"\0" + path.encode() + b"\0"
    return data, offsets


def cache_file(entries: Sequence[tuple[int, str, str]]) -> bytes:
    """A cache in the new layout."""
    data, offsets = strings(entries)
    base = 48 + 24 * len(entries)
    rows = b"".join(
        struct.pack("=iIIIQ", flags, base + key, base + value, 0, 0)
        for (flags, _, _), (key, value) in zip(entries, offsets, strict=True)
    )
    return b"glibc-ld.so.cache1.1" + struct.pack("=II5I", len(entries), len(data), 2, 0, 0, 0, 0) + rows + data


def new_layout() -> bytes:
    return cache_file(ENTRIES)


def old_layout() -> bytes:
    data, offsets = strings(ENTRIES)
    rows = b"".join(
        struct.pack("=iII", flags, key, value) for (flags, _, _), (key, value) in zip(ENTRIES, offsets, strict=True)
    )
    return b"ld.so-1.7.0\0" + struct.pack("=I", len(ENTRIES)) + rows + data


def both_layouts() -> bytes:
    """The old header with no entries of its own, then the new cache at the next multiple of 8."""
    return b"ld.so-1.7.0\0" + struct.pack("=I", 1) + struct.pack("=iII", X86, 0, 0) + b"\0" * 4 + new_layout()


@pytest.mark.parametrize("data", [new_layout(), old_layout(), both_layouts()], ids=["new", "old", "old and new"])
def test_layouts(data: bytes) -> None:
    assert parse_ld_cache(data, "x86_64") == EXPECTED


def test_of_an_unknown_machine_all_entries_are_given() -> None:
    assert len(parse_ld_cache(new_layout(), "sparc")) == 4


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", new_layout()[:60], new_layout()[:-30], b"glibc-ld.so.cache1.1\xff\xff\xff\x7f"]
)
def test_a_damaged_cache_is_no_cache(data: bytes) -> None:
    assert parse_ld_cache(data, "x86_64") == ()


def test_below_a_root_and_without_a_cache(tmp_path: Path) -> None:
    assert read_ld_cache(tmp_path) == ()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.cache").write_bytes(new_layout())
    assert ("libcudnn.so.9", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9") in read_ld_cache(tmp_path)


LDCONFIG = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")


@pytest.mark.skipif(LDCONFIG is None or not Path("/etc/ld.so.cache").exists(), reason="no ldconfig or no cache here")
def test_the_real_cache_as_ldconfig_prints_it() -> None:
    printed = subprocess.run([str(LDCONFIG), "-p"], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^\t(\S+) \(libc6,(?:x86-64|AArch64)[^)]*\) => (.+)$", printed, re.MULTILINE)
    assert rows
    assert read_ld_cache() == tuple(rows)
