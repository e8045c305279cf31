"""The program and its descendants over time, and how those ended that somebody else waited for."""

from __future__ import annotations

import os
import select
import signal
import time

from cudnn_doctor.model.run_recording import ProcessSeen
from cudnn_doctor.observe import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 256  # processes that are followed; a build or a data loader may have thousands
READ = 32  # of them whose maps are read at every look
# linux/pidfd.h: _IOWR(0xFF, 11, struct pidfd_info) in its first form, 64 bytes; the exit status from Linux 6.15 on
_GET_INFO = 3 << 30 | 64 << 16 | 0xFF << 8 | 11
_INFO_EXIT = 1 << 3
_EXIT_CODE_AT = 60


class _Known:
    __slots__ = ("ended", "first", "gpu", "libraries", "peak", "pidfd", "stat", "status")

    def __init__(self, stat: process.Stat, first: float, pidfd: int) -> None:
        self.stat, self.first, self.pidfd = stat, first, pidfd
        self.ended: float | None = None
        self.status: int | None = None  # as waitpid gives it
        self.libraries: dict[str, None] = {}
        self.gpu = False
        self.peak = 0


class Tree:
    """Follows one program. Close it."""

    def __init__(self, root: int, started: float) -> None:
        """Args:
        root: PID of the program, a child of this process.
        started: `time.monotonic` of its start.
        """
        self._started, self._root = started, root
        self._known: dict[int, _Known] = {}
        self.missed = False  # more processes than are followed
        self._add(root)

    def look(self) -> None:
        """Finds new descendants and notes what the living have mapped and who has ended."""
        read = 0
        for pid in list(self._alive()):
            for child in process.children_of(pid):
                self._add(child)
        for pid in list(self._alive()):
            known = self._known[pid]
            if self._has_ended(pid, known):
                self._end(known)
            elif read < READ:
                read += 1
                self._read(pid, known)

    def processor_seconds(self) -> float:
        """Processor time of the living, for a stall."""
        stats = (process.stat_of(pid) for pid in self._alive())
        return sum(stat.ticks for stat in stats if stat) / process.TICKS

    def gpu_pids(self) -> list[int]:
        """The living that hold the GPU driver's files, the program itself where none does."""
        return [pid for pid in self._alive() if self._known[pid].gpu] or [self._root]

    def holds(self, pid: int) -> bool:
        """Whether a PID is, or was, one of the program's."""
        return pid in self._known

    def seen(self) -> tuple[ProcessSeen, ...]:
        """All of them, by their start."""
        for known in self._known.values():
            if known.ended is None and known.pidfd >= 0 and _readable(known.pidfd):
                self._end(known)
        return tuple(_seen(pid, known) for pid, known in self._known.items())

    def close(self) -> None:
        for known in self._known.values():
            if known.pidfd >= 0:
                os.close(known.pidfd)
                known.pidfd = -1

    def _alive(self) -> Iterator[int]:
        return (pid for pid, known in self._known.items() if known.ended is None)

    def _add(self, pid: int) -> None:
        stat = process.stat_of(pid)
        if stat is None or (pid in self._known and self._known[pid].stat.started == stat.started):
            return
        if len(self._known) >= MOST:
            self.missed = True
            return
        try:
            pidfd = os.pidfd_open(pid)
        except (OSError, AttributeError):  # ended meanwhile, or a kernel before 5.3
            pidfd = -1
        self._known[pid] = _Known(stat, time.monotonic() - self._started, pidfd)

    def _has_ended(self, pid: int, known: _Known) -> bool:
        if known.pidfd >= 0:
            return _readable(known.pidfd)
        stat = process.stat_of(pid)
        return stat is None or stat.started != known.stat.started or stat.state == "Z"

    def _end(self, known: _Known) -> None:
        known.ended = time.monotonic() - self._started
        known.status = exit_status(known.pidfd) if known.pidfd >= 0 else None

    def _read(self, pid: int, known: _Known) -> None:
        try:
            known.libraries |= dict.fromkeys(process.libraries_of(pid))
            known.gpu = known.gpu or process.gpu_files_of(pid) is not None
        except OSError:  # it ended, or became another user's
            return
        known.peak = max(known.peak, process.peak_resident(pid))
        now = process.stat_of(pid)
        if now and now.started == known.stat.started:
            known.stat = now  # its name changes with exec


def exit_status(pidfd: int) -> int | None:
    """How a process ended, as `waitpid` would have given it, whoever waited for it; None where the kernel is mute."""
    import fcntl

    info = bytearray(64)
    info[:8] = _INFO_EXIT.to_bytes(8, "little")
    try:
        fcntl.ioctl(pidfd, _GET_INFO, info)
    except OSError:
        return None
    if not int.from_bytes(info[:8], "little") & _INFO_EXIT:
        return None
    return int.from_bytes(info[_EXIT_CODE_AT : _EXIT_CODE_AT + 4], "little", signed=True)


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _seen(pid: int, known: _Known) -> ProcessSeen:
    status = known.status
    return ProcessSeen(
        pid=pid,
        parent=known.stat.parent,
        name=known.stat.name,
        started=round(known.first, 3),
        ended=None if known.ended is None else round(known.ended, 3),
        exit_code=os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
        signal=signal_name(os.WTERMSIG(status)) if status is not None and os.WIFSIGNALED(status) else "",
        libraries=tuple(known.libraries),
        gpu_files=known.gpu,
        peak_resident=known.peak,
    )


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
