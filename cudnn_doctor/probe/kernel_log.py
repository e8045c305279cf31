"""The last Xids, NVIDIA's kernel driver's error reports, from the kernel's ring buffer or a log file.

The ring buffer is read with syslog(2) SYSLOG_ACTION_READ_ALL, not /dev/kmsg: the permission is the same, but it is one
call that gives the newest part, where /dev/kmsg gives a record a call and the oldest first. It holds this boot alone.
Log files count only where the ring buffer may not be read; what they hold of earlier boots is left out.
Format: https://docs.nvidia.com/deploy/xid-errors/ (read 2026-11-30).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import Xid
from cudnn_doctor.probe.root_files import LINUX_ONLY, ROOT, absent, at, clean, on_linux, read

_LAST = 20
_BYTES = 1 << 20  # of the ring buffer, or of the end of a file
_TEXT = 400
_READ_ALL = 3  # SYSLOG_ACTION_READ_ALL
_FILES = ("/var/log/kern.log", "/var/log/messages", "/var/log/syslog")
_XID = r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+)(?:, ?(.*))?"
_RING = r"<(\d+)>(?:\[ *(\d+\.\d+)\])?"  # priority, seconds since boot unless printk.time=0
_BOOT = "Linux version "


def probe_xids(root: Path = ROOT, ring: Callable[[int], bytes] | None = None) -> Known[tuple[Xid, ...]] | Absent:
    """The last Xids of this boot, oldest first; none is an empty tuple.

    Args:
        ring: stands in for the kernel's ring buffer: gives the last so many bytes, or raises OSError.
    """
    if not on_linux():
        return LINUX_ONLY
    try:
        log = (ring or read_ring)(_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return _from_files(root, absent(error))
    return known(tuple(_ring_xids(log, _boot_time(root)))[-_LAST:], "kernel ring buffer, syslog(2)")


def read_ring(size: int) -> bytes:
    """The last `size` bytes of the kernel's ring buffer.

    Raises:
        OSError: this user may not read it, or there is none.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "klogctl"):
        raise OSError("this libc has no klogctl")
    buffer = ctypes.create_string_buffer(size)
    length = libc.klogctl(_READ_ALL, buffer, size)
    if length < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "kernel ring buffer")
    return ctypes.string_at(buffer, length)


def _boot_time(root: Path) -> int | None:
    """Seconds since the epoch, btime of /proc/stat."""
    try:
        match = re.search(r"^btime (\d+)$", read(root, "/proc/stat"), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None


def _ring_xids(log: str, boot: int | None) -> Iterator[Xid]:
    for line in log.splitlines():
        match = re.search(_XID, line)
        head = re.match(_RING, line)
        # Priorities from 8 on are of other facilities: lines that a program wrote into /dev/kmsg.
        if match and head and int(head[1]) < 8:
            yield _xid(match, _moment(head[2], boot))


def _moment(seconds: str | None, boot: int | None) -> str:
    if seconds is None:
        return ""
    if boot is None:
        return f"{seconds} s after boot"
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(boot + float(seconds)))


def _from_files(root: Path, ring: Absent) -> Known[tuple[Xid, ...]] | Absent:
    reasons = [ring]
    for path in _FILES:
        try:
            log = _tail(at(root, path))
        except OSError as error:
            error.filename = path
            reasons.append(absent(error))
            continue
        return known(tuple(_file_xids(log))[-_LAST:], path)
    refused = [r for r in reasons if r.reason == "no-permission"] or reasons
    return Absent(reason=refused[0].reason, detail="; ".join(r.detail for r in refused))


def _tail(place: str) -> str:
    with open(place, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _BYTES))
        return file.read(_BYTES).decode("utf-8", "replace")


def _file_xids(log: str) -> Iterator[Xid]:
    """Lines of syslog daemons: "Nov 30 12:00:00 host kernel: [ 12.3] NVRM: ..." or an ISO time in front."""
    lines = [line for line in log.splitlines() if " kernel: " in line]
    boots = [n for n, line in enumerate(lines) if _BOOT in line]
    for line in lines[boots[-1] if boots else 0 :]:
        match = re.search(_XID, line)
        if match:
            words = line.split()
            yield _xid(match, words[0] if words[0][:1].isdigit() else " ".join(words[:3]))


def _xid(match: re.Match[str], time: str) -> Xid:
    return Xid(time=clean(time), pci=match[1], code=int(match[2]), text=(match[3] or "").strip()[:_TEXT])
