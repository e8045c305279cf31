"""What the kernel logged about certain processes: a segmentation fault with the library that it happened in, a process
killed for memory. Only root may read the log on most machines; nothing is said then."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from cudnn_doctor.probe.kernel_log import read_ring

_SIZE = 1 << 16  # bytes from the end of the log
_MOST = 8
# "python3[1234]: segfault at 0 ip ... in libfoo.so[7f..+1000]", "traps: python3[1234] general protection fault ...",
# "Out of memory: Killed process 1234 (python3) ...", "Memory cgroup out of memory: Killed process 1234 ..."
_ABOUT = re.compile(
    r"\[(\d+)\]:? (?:segfault at|general protection|trap |invalid opcode|bus error)|Killed process (\d+)"
)


def kernel_lines(pids: Collection[int], ring: Callable[[int], bytes] = read_ring) -> tuple[str, ...]:
    """The last lines about these processes, without priority and time.

    Args:
        ring: gives the last so many bytes of the log, or raises OSError.
    """
    try:
        text = ring(_SIZE).decode("utf-8", "replace")
    except OSError:
        return ()
    found = []
    for line in text.splitlines():
        match = _ABOUT.search(line)
        if match and int(match[1] or match[2]) in pids:
            found.append(re.sub(r"^<\d+>(?:\[ *\d+\.\d+\] ?)?", "", line))
    return tuple(found[-_MOST:])
