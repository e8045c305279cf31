"""One process seen from outside, by /proc alone: nothing is stopped and nothing is traced."""

from __future__ import annotations

import os
import re
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NamedTuple

    class Stat(NamedTuple):
        """The fields of /proc/PID/stat that matter here."""

        name: str
        state: str
        parent: int
        ticks: int  # processor time, user and system, in clock ticks
        threads: int
        started: int  # clock ticks after boot; with the PID it names a process for ever
else:
    from collections import namedtuple

    Stat = namedtuple("Stat", "name state parent ticks threads started")

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
MAX_THREADS = 64  # whose children are looked for; a program with more forks from its first ones
_LIBRARIES = re.compile(
    rb"/(?:lib(?:cudnn|cuda|cublas|cudart|cufft|curand|cusolver|cusparse|nccl|nvrtc|nvJitLink|nvidia-ml|nvinfer|torch|"
    rb"tensorflow|jax|xla)[^/]*\.so[^/]*|xla_cuda_plugin\.so|_pywrap_tensorflow_internal\.so)( \(deleted\))?$"
)
_MAPS_LIMIT = 1 << 23  # bytes
_DEVICE = re.compile(r"/dev/nvidia(\d+)$")
_ANY_DEVICE = re.compile(r"/dev/(nvidia|dxg)")


def stat_of(pid: int, proc: str = "/proc") -> Stat | None:
    """What the kernel counts of a process; None when it is gone or is not to be seen."""
    try:
        with open(f"{proc}/{pid}/stat", "rb") as file:
            head, _, rest = file.read(1024).rpartition(b") ")
    except OSError:
        return None
    fields = rest.split()
    if len(fields) < 20:
        return None
    name = head.partition(b" (")[2].decode("utf-8", "replace")
    return Stat(name, fields[0].decode(), int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[17]),
                int(fields[19]))  # fmt: skip


def children_of(pid: int, proc: str = "/proc") -> Iterator[int]:
    """The children of a process that live now; none on a kernel without CONFIG_PROC_CHILDREN."""
    try:
        threads = os.listdir(f"{proc}/{pid}/task")
    except OSError:
        return
    for thread in threads[:MAX_THREADS]:
        with suppress(OSError), open(f"{proc}/{pid}/task/{thread}/children", "rb") as file:
            yield from (int(child) for child in file.read(1 << 16).split())


def libraries_of(pid: int, proc: str = "/proc") -> tuple[str, ...]:
    """Paths of the CUDA libraries and frameworks that a process has mapped, as it sees them, in the order of their
    addresses; " (deleted)" behind one whose file is gone or was replaced.

    Raises:
        OSError: the process is gone, or this user may not read it.
    """
    with open(f"{proc}/{pid}/maps", "rb") as file:
        maps = file.read(_MAPS_LIMIT)
    found: dict[str, None] = {}
    for line in maps.splitlines():
        at = line.find(b"/")
        if at > 0 and _LIBRARIES.search(line, at):
            found[line[at:].decode("utf-8", "replace")] = None
    return tuple(found)


def gpu_files_of(pid: int, proc: str = "/proc") -> tuple[int, ...] | None:
    """Minor numbers of the GPUs whose device files a process holds open; None when it holds none of the driver's.

    Raises:
        OSError: the process is gone, or this user may not look.
    """
    found: set[int] = set()
    driver = False
    for fd in os.listdir(f"{proc}/{pid}/fd"):
        try:
            target = os.readlink(f"{proc}/{pid}/fd/{fd}")
        except OSError:  # closed meanwhile
            continue
        if _ANY_DEVICE.match(target):
            driver = True
            if device := _DEVICE.match(target):
                found.add(int(device[1]))
    return tuple(sorted(found)) if driver else None


def peak_resident(pid: int, proc: str = "/proc") -> int:
    """The most memory in bytes that a process ever had resident; 0 when it cannot be read."""
    try:
        with open(f"{proc}/{pid}/status", "rb") as file:
            match = re.search(rb"^VmHWM:\s+(\d+) kB", file.read(1 << 13), re.MULTILINE)
    except OSError:
        return 0
    return int(match[1]) << 10 if match else 0


def limits_of(pid: int, proc: str = "/proc") -> dict[str, str]:
    """The soft limits of a process that are not "unlimited", by the kernel's names."""
    try:
        with open(f"{proc}/{pid}/limits", encoding="ascii") as file:
            lines = file.read(1 << 13).splitlines()[1:]
    except (OSError, UnicodeDecodeError):
        return {}
    found = {}
    for line in lines:
        match = re.match(r"(Max .+?)  +(\S+)  +(\S+)  *(\S*)", line)
        if match and match[2] != "unlimited":
            found[match[1]] = f"{match[2]} {match[4]}".strip()
    return found
