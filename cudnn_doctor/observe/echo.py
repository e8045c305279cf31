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
from contextlib import suppress

from cudnn_doctor.observe.relay import close_others

_STOPPED, _PROGRAM = 0, 100  # places of the flag "the wrapper has stopped itself" and of the program's PID
_WORDS = 128  # 4 bytes each; the others count signals by their numbers, 1 to 64
_IDLE, _WATCHING = 1.0, 0.1  # seconds between two looks


class Echo:
    """The counting process, as the wrapper sees it."""

    def __init__(self, folder: str) -> None:
        """Forks it; before the program, so that no signal to the group goes by.

        Args:
            folder: temporary files of ours, removed after the program's end when the wrapper is killed; "" for none.
        """
        self._counts = mmap.mmap(-1, 4 * _WORDS)
        self._seen: dict[int, int] = {}
        wrapper = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            try:
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                close_others(set())
                _stand(self._counts, wrapper, folder)
            finally:
                os._exit(0)

    def follow(self, program: int) -> None:
        """Tells it the program's PID."""
        _put(self._counts, _PROGRAM, program)

    def had(self, number: int, wait: float) -> bool:
        """Whether the group got this signal since it was last asked; waits that many seconds for it to arrive."""
        until = time.monotonic() + wait
        while True:
            # What waits there to be counted is there all the same: a busy machine may be slow to let it count.
            count = _get(self._counts, number) + self._waits(number)
            if count > self._seen.get(number, 0):
                self._seen[number] = count
                return True
            if time.monotonic() > until:
                return False
            time.sleep(0.001)

    def _waits(self, number: int) -> bool:
        try:
            with open(f"/proc/{self.pid}/status", "rb") as file:
                pending = file.read(4096).partition(b"\nShdPnd:\t")[2][:16]
        except OSError:
            return False
        return bool(int(pending or b"0", 16) >> (number - 1) & 1)

    def stopping(self, stopped: bool) -> None:
        """Says that the wrapper is about to stop itself, or goes on."""
        self._counts[4 * _STOPPED] = int(stopped)

    def end(self) -> None:
        """Ends the process."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _get(counts: mmap.mmap, number: int) -> int:
    return int.from_bytes(counts[4 * number : 4 * number + 4], "little")


def _put(counts: mmap.mmap, place: int, value: int) -> None:
    counts[4 * place : 4 * place + 4] = value.to_bytes(4, "little")


def _stand(counts: mmap.mmap, wrapper: int, folder: str) -> None:
    every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    while os.getppid() == wrapper:
        stopped = bool(counts[4 * _STOPPED])
        got = signal.sigtimedwait(every, _WATCHING if stopped else _IDLE)
        if got:
            _put(counts, got.si_signo, _get(counts, got.si_signo) + 1)
        elif stopped and state_of(_get(counts, _PROGRAM)) not in ("T", ""):
            os.kill(wrapper, signal.SIGCONT)
    if folder:
        _clear(_get(counts, _PROGRAM), folder)


def state_of(pid: int) -> str:
    """The kernel's letter for a process's state, as `T` for stopped; "" when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return chr(file.read(512).rpartition(b") ")[2][0])
    except (OSError, IndexError):
        return ""


def _clear(child: int, folder: str) -> None:
    with suppress(OSError, AttributeError):  # ended, or a kernel before 5.3
        select.select([os.pidfd_open(child)], [], [])
    for name in os.listdir(folder):
        with suppress(OSError):
            os.unlink(f"{folder}/{name}")
    os.rmdir(folder)
