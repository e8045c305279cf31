"""A process that does nothing but stand in the program's process group and count the signals that the group gets.

The wrapper shares the program's process group, or job control would not be the terminal's. A signal that reaches the
wrapper is meant for the wrapper alone, and has to be passed on, or for the whole group, and then the program has it
already; `kill` does not tell which. This process tells: what reaches it too was for all.
It also sets the wrapper going again where only the program was continued, and clears up behind a wrapper that is
killed.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import time

from cudnn_doctor.observe.relay import close_others

_STOPPED = 0  # place of the flag "the wrapper has stopped itself"; signal numbers begin at 1
_IDLE, _WATCHING = 1.0, 0.1  # seconds between two looks


class Echo:
    """The counting process, as the wrapper sees it."""

    def __init__(self, child: int, folder: str) -> None:
        """Forks it.

        Args:
            child: the program.
            folder: temporary files of ours, removed after the program's end when the wrapper is killed; "" for none.
        """
        self._counts = mmap.mmap(-1, 4 * 128)
        self._seen: dict[int, int] = {}
        wrapper = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            try:
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                close_others(set())
                _stand(self._counts, wrapper, child, folder)
            finally:
                os._exit(0)

    def had(self, number: int, wait: float) -> bool:
        """Whether the group got this signal since it was last asked; waits that many seconds for it to arrive."""
        until = time.monotonic() + wait
        while True:
            count = _get(self._counts, number)
            if count != self._seen.get(number, 0):
                self._seen[number] = count
                return True
            if time.monotonic() > until:
                return False
            time.sleep(0.001)

    def stopping(self, stopped: bool) -> None:
        """Says that the wrapper is about to stop itself, or goes on."""
        self._counts[4 * _STOPPED] = int(stopped)

    def end(self) -> None:
        """Ends the process."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _get(counts: mmap.mmap, number: int) -> int:
    return int.from_bytes(counts[4 * number : 4 * number + 4], "little")


def _stand(counts: mmap.mmap, wrapper: int, child: int, folder: str) -> None:
    every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    while os.getppid() == wrapper:
        stopped = bool(counts[4 * _STOPPED])
        got = signal.sigtimedwait(every, _WATCHING if stopped else _IDLE)
        if got:
            count = _get(counts, got.si_signo) + 1
            counts[4 * got.si_signo : 4 * got.si_signo + 4] = count.to_bytes(4, "little")
        elif stopped and state_of(child) not in ("T", ""):
            os.kill(wrapper, signal.SIGCONT)
    if folder:
        _clear(child, folder)


def state_of(pid: int) -> str:
    """The kernel's letter for a process's state, as `T` for stopped; "" when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return chr(file.read(512).rpartition(b") ")[2][0])
    except (OSError, IndexError):
        return ""


def _clear(child: int, folder: str) -> None:
    try:
        pidfd = os.pidfd_open(child)
    except (OSError, AttributeError):  # ended, or a kernel before 5.3
        pidfd = -1
    if pidfd >= 0:
        select.select([pidfd], [], [])
    for name in os.listdir(folder):
        os.unlink(f"{folder}/{name}")
    os.rmdir(folder)
