"""What becomes of the program's descriptors 1 and 2: `isatty`, and what kind of file they are, never change.

A regular file is inherited, and its end is read afterwards. A terminal is replaced by a pty, a pipe by another pipe;
a process of its own (observe/relay.py) carries the bytes on and keeps the first and the last of them. Everything else
(/dev/null, sockets) is inherited and not read.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import stat
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Kind = Literal["closed", "file", "terminal", "pipe", "other"]

HEAD, TAIL = 64 << 10, 256 << 10  # bytes of a stream that are kept
_COUNT = 8  # bytes of the counter in front of them
F_GETPIPE_SZ, F_SETPIPE_SZ = 1032, 1031  # linux/fcntl.h; in Python's fcntl from 3.10 on, but not in every build


class Ring:
    """The first and the last bytes of a stream, in memory that this process and its forks share."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, _COUNT + HEAD + TAIL)

    @property
    def total(self) -> int:
        """Bytes that went by."""
        return int.from_bytes(self._map[:_COUNT], "little")

    def add(self, data: bytes) -> None:
        """Keeps `data`; only one process may call this."""
        total = self.total
        first = data[: max(0, HEAD - total)]
        self._map[_COUNT + total : _COUNT + total + len(first)] = first
        rest = data[len(first) :]
        at = max(0, total + len(first) - HEAD) + max(0, len(rest) - TAIL)
        rest = rest[-TAIL:]
        while rest:
            start = at % TAIL
            piece = rest[: TAIL - start]
            place = _COUNT + HEAD + start
            self._map[place : place + len(piece)] = piece
            at, rest = at + len(piece), rest[len(piece) :]
        self._map[:_COUNT] = (total + len(data)).to_bytes(_COUNT, "little")

    def kept(self) -> tuple[bytes, int, bytes]:
        """The first bytes, how many after them are lost, the last bytes."""
        total = self.total
        head = self._map[_COUNT : _COUNT + min(total, HEAD)]
        behind = max(0, total - HEAD)
        tail = self._map[_COUNT + HEAD :]
        if behind <= TAIL:
            return head, 0, tail[:behind]
        start = behind % TAIL
        return head, behind - TAIL, tail[start:] + tail[:start]


class Stream:
    """One file behind descriptor 1, 2 or both, and what the program gets instead."""

    def __init__(self, fds: list[int], kind: Kind) -> None:
        """Opens the replacement; where there is none to be had (no pty left, no descriptor) the file is inherited.

        Args:
            fds: the program's descriptors that lead to this file.
        """
        self.fds, self.kind = fds, kind
        self.outer = fds[0]  # where the bytes go
        self.source = self.given = -1  # what the relay reads, what the program writes to
        self.ring: Ring | None = None
        self.mode: list[Any] = []  # of the pty, as the program gets it
        self.start = _position(self.outer) if kind == "file" else 0
        try:
            if kind == "terminal":
                self._pty()
            elif kind == "pipe":
                self._pipe()
        except OSError as error:
            self.close_given()
            self.close_source()
            self.failure = os.strerror(error.errno or 0)
        else:
            self.failure = ""
            if self.source >= 0:
                self.ring = Ring()

    def _pty(self) -> None:
        self.source, self.given = os.openpty()
        attributes = termios.tcgetattr(self.outer)
        # The terminal itself does the output processing (newline to CR LF): done twice, bytes would change.
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(self.given, termios.TCSANOW, attributes)
        self.mode = termios.tcgetattr(self.given)  # now: the program may change it before its relay looks
        copy_size(self.outer, self.source)

    def _pipe(self) -> None:
        self.source, self.given = os.pipe()
        try:
            fcntl.fcntl(self.source, F_SETPIPE_SZ, fcntl.fcntl(self.outer, F_GETPIPE_SZ))
        except OSError:  # over this user's pipe-user-pages-soft limit: the default size serves as well
            return

    def close_given(self) -> None:
        if self.given >= 0:
            os.close(self.given)
            self.given = -1

    def close_source(self) -> None:
        if self.source >= 0:
            os.close(self.source)
            self.source = -1

    def kept(self) -> tuple[bytes, int, bytes]:
        """As `Ring.kept`; of a file what was written to it since the start, as far as it can be read back."""
        if self.ring is not None:
            return self.ring.kept()
        return _file_end(self.outer, self.start) if self.kind == "file" else (b"", 0, b"")


def kind_of(fd: int) -> Kind:
    """What a descriptor leads to."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return "closed"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISFIFO(mode):
        return "pipe"
    return "terminal" if os.isatty(fd) else "other"


def open_streams(closed: frozenset[int]) -> list[Stream]:
    """The streams behind 1 and 2: one where both lead to the same terminal, pipe or file, so that the order of what is
    written to them stays.

    Args:
        closed: descriptors that the caller had closed and that lead to /dev/null only in this process.
    """
    first, second = (_identity(fd) if fd not in closed else None for fd in (1, 2))
    if first is not None and first == second:
        return [Stream([1, 2], kind_of(1))]
    return [Stream([fd], kind_of(fd)) for fd, known in ((1, first), (2, second)) if known is not None]


def _identity(fd: int) -> tuple[int, int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_rdev


def _position(fd: int) -> int:
    """Where the program's first byte will be: the end of a file opened for appending, else the file's position."""
    try:
        appending = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        return os.fstat(fd).st_size if appending else os.lseek(fd, 0, os.SEEK_CUR)
    except OSError:
        return 0


def _file_end(fd: int, start: int) -> tuple[bytes, int, bytes]:
    """What the file holds from `start` on. Opened anew: the program's descriptor may be write-only, and its position
    is shared with the program."""
    try:
        with open(f"/proc/self/fd/{fd}", "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            start = start if start <= size else 0  # the program cut it
            file.seek(start)
            head = file.read(min(HEAD, size - start)) or b""
            rest = size - start - len(head)
            file.seek(size - min(rest, TAIL))
            return head, max(0, rest - TAIL), (file.read(min(rest, TAIL)) or b"") if rest else b""
    except OSError:
        return b"", 0, b""


def copy_size(terminal: int, pty: int) -> bool:
    """Gives `pty` the window size of `terminal`; whether it had another one."""
    blank = bytes(8)
    try:
        size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, blank)
        if fcntl.ioctl(pty, termios.TIOCGWINSZ, blank) == size:
            return False
        fcntl.ioctl(pty, termios.TIOCSWINSZ, size)
    except OSError:
        return False
    return True
