"""Runs a command with its standard streams in a file, a pipe or a terminal, under a shell with job control, and lets a
test do things to it."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Place = Literal["file", "pipe", "pty"]
SHELL = str(Path(__file__).with_name("shell.py"))
LONG = 30.0  # seconds after which a test has failed


class Outcome(NamedTuple):
    """What the caller of a command sees."""

    statuses: tuple[int, ...]  # as waitpid gives them, stops included; no core-dump bit
    output: bytes


class Job:
    """A running command."""

    def __init__(self, command: Sequence[str], place: Place, folder: Path) -> None:
        self.output = b""
        self.statuses: list[int] = []
        self.terminal = self._stdin = -1
        status, status_w = os.pipe()
        orders, self._orders = os.pipe()
        self._status = os.fdopen(status, "rb", buffering=0)
        if place == "pty":
            self.terminal, slave = os.openpty()
            given = (slave, slave, slave)
        else:
            stdin, self._stdin = os.pipe()
            read, write = os.pipe() if place == "pipe" else _file(folder)
            given = (stdin, write, write)
        self._back = self.terminal if place == "pty" else read
        self._regular = place == "file"
        self._process = subprocess.Popen(
            [sys.executable, "-IS", SHELL, str(status_w), str(orders), *command],
            stdin=given[0], stdout=given[1], stderr=given[2], pass_fds=(status_w, orders), start_new_session=True,
        )  # fmt: skip
        for fd in {*given, status_w, orders}:
            os.close(fd)
        self.group = int(self._line())

    def _line(self) -> bytes:
        line = b""
        end = time.monotonic() + LONG
        while not line.endswith(b"\n"):
            self._more(0.02)
            if select.select([self._status], [], [], 0)[0]:
                byte = self._status.read(1)
                assert byte, self.output
                line += byte
            assert time.monotonic() < end, self.output[-500:]
        return line

    def _more(self, wait: float) -> bool:
        """Reads what is there; whether there was something."""
        if not self._regular and not select.select([self._back], [], [], wait)[0]:
            return False
        try:
            data = os.read(self._back, 1 << 16)
        except OSError:  # no process holds the terminal's other side
            return False
        self.output += data
        if self._regular and not data:
            time.sleep(wait)
        return bool(data)

    def until(self, text: bytes) -> None:
        """Reads until `text` has come."""
        end = time.monotonic() + LONG
        while text not in self.output:
            self._more(0.02)
            assert time.monotonic() < end, self.output[-500:]

    def press(self, key: bytes, number: int) -> None:
        """A key of the terminal; where there is none, its signal to the group."""
        if self.terminal >= 0:
            os.write(self.terminal, key)
        else:
            os.killpg(self.group, number)

    def resize(self, rows: int, columns: int) -> None:
        """Gives the terminal another size; where there is none, the group gets the signal alone."""
        if self.terminal >= 0:
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        else:
            os.killpg(self.group, signal.SIGWINCH)

    def type(self, text: bytes) -> None:
        """Standard input, and its end."""
        if self.terminal >= 0:
            os.write(self.terminal, text + b"\x04")
        else:
            os.write(self._stdin, text)
            os.close(self._stdin)
            self._stdin = -1

    def stopped(self) -> None:
        """Waits until the shell says that the job has stopped."""
        self.statuses.append(int(self._line()))

    def go_on(self) -> None:
        """`fg`."""
        os.write(self._orders, b"fg\n")

    def end(self) -> Outcome:
        """Waits for the end, then takes the output that is there; an orphan's is not waited for."""
        self.statuses.append(int(self._line()) & ~0x80)
        self._process.wait(LONG)
        while self._more(0.0):
            pass
        outcome = Outcome(tuple(self.statuses), self.output)
        for fd in {self._back, self._stdin, self._orders} - {-1}:
            os.close(fd)
        self._status.close()
        return outcome


def _file(folder: Path) -> tuple[int, int]:
    path = folder / f"out{time.monotonic_ns()}"
    write = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    return os.open(path, os.O_RDONLY), write


def outcome(command: Sequence[str], place: Place, folder: Path, act: Callable[[Job], None]) -> Outcome:
    """Runs a command, does `act` to it, and says what its caller saw."""
    job = Job(command, place, folder)
    act(job)
    return job.end()
