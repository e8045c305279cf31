"""The process that carries a program's output on, byte for byte, from the pipe or pty that the program got to the file
that it would have had.

It is a process of its own, in a session of its own, because it may outlive the wrapper: a program whose wrapper is
killed goes on undisturbed, and a grandchild that keeps the pipe open still finds it read.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import termios
from contextlib import suppress

from cudnn_doctor.observe.streams import Ring, copy_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudnn_doctor.observe.streams import Stream

CHUNK = 1 << 16
ENDED, RESIZED = b"e", b"w"  # what the wrapper tells
DRAINED, FINISHED = b"d", b"f"  # what it is told: all that the program wrote is delivered; no writer is left
_HUNG = select.POLLERR | select.POLLHUP | select.POLLNVAL
_PTY_LIMIT = 1 << 18  # bytes after the program's end: a grandchild may write without pause


def start(stream: Stream, child: int) -> tuple[int, int, int]:
    """Forks the relay of one stream.

    Args:
        child: PID of the program, for SIGWINCH.

    Returns:
        its PID, a descriptor to tell it (ENDED, RESIZED), and one to hear from it (DRAINED, FINISHED, or end of file).
    """
    control_r, control_w = os.pipe()
    status_r, status_w = os.pipe()
    pid = os.fork()
    if pid:
        os.close(control_r)
        os.close(status_w)
        return pid, control_w, status_r
    try:
        alone({stream.source, stream.outer, control_r, status_w})
        _Relay(stream, child, control_r, status_w).run()
    finally:
        os._exit(0)


def alone(keep: set[int]) -> None:
    """Makes a fork a process of its own: of its own session, holding no file but `keep` and no folder, deaf to
    signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    os.setsid()
    close_others(keep)


def close_others(keep: set[int]) -> None:
    """Closes every descriptor but `keep`: an inherited pipe held open would keep its reader waiting."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd not in keep:
            try:
                os.close(fd)
            except OSError:  # the listing's own
                continue
    os.chdir("/")


class _Relay:
    def __init__(self, stream: Stream, child: int, control: int, status: int) -> None:
        self._source, self._sink, self._ring = stream.source, stream.outer, stream.ring or Ring()
        self._terminal, self._child = stream.kind == "terminal", child
        self._control, self._status = control, status
        self._left: int | None = None  # bytes to deliver before DRAINED, once the program has ended
        self._mode = stream.mode
        self._poll = select.poll()
        for fd, events in ((self._source, select.POLLIN), (control, select.POLLIN), (self._sink, 0)):
            self._poll.register(fd, events)

    def run(self) -> None:
        """Carries bytes until nobody can write them or nobody reads them."""
        while True:
            ready = dict(self._poll.poll())
            if self._control in ready:
                self._listen()
            if ready.get(self._sink, 0) & _HUNG:
                return  # the reader is gone: from now on the program is told so when it writes
            if self._source in ready and not self._carry():
                self._say(FINISHED)
                return
            self._settle(quiet=self._source not in ready)

    def _listen(self) -> None:
        for word in os.read(self._control, 64) or b"\0":
            said = bytes([word])
            if said == RESIZED and self._terminal:
                self._resize()
            elif said == ENDED:
                self._left = _PTY_LIMIT if self._terminal else _waiting(self._source)
            elif said == b"\0":  # the wrapper is gone
                self._poll.unregister(self._control)
                os.close(self._control)
                self._control = -1

    def _carry(self) -> bool:
        try:
            data = os.read(self._source, CHUNK)
        except OSError:  # EIO: no process holds the other side of the pty any more
            data = b""
        if self._terminal:
            self._mirror()
        if not data:
            return False
        self._ring.add(data)
        if self._left is not None:
            self._left -= len(data)
        return self._write(data)

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while view:
                if not os.get_blocking(self._sink):  # whoever shares the file made it so
                    select.select([], [self._sink], [])
                with suppress(BlockingIOError):
                    view = view[os.write(self._sink, view) :]
        except OSError:
            return False
        return True

    def _settle(self, *, quiet: bool) -> None:
        """Says DRAINED once what was there at the program's end is delivered. A poll of a pty waits for what is still
        on its way inside the kernel (tty_buffer_flush_work), so that nothing to read means nothing left."""
        if self._left is None:
            return
        if self._terminal and not quiet:
            quiet = not any(fd == self._source for fd, _ in self._poll.poll(0))
        if self._left <= 0 or (self._terminal and quiet):
            if self._terminal:
                self._mirror()
            self._say(DRAINED)
            self._left = None

    def _say(self, word: bytes) -> None:
        try:
            os.write(self._status, word)
        except OSError:  # nobody listens any more
            return

    def _resize(self) -> None:
        if copy_size(self._sink, self._source) and self._left is None:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGWINCH)  # the terminal's own may have come before the pty knew

    def _mirror(self) -> None:
        """Does to the terminal what the program did to the pty: its window size is the terminal's, a mode that it set
        (curses does so on stdout) is set there."""
        self._resize()
        try:
            mode = termios.tcgetattr(self._source)
            if mode == self._mode:
                return
            terminal = termios.tcgetattr(self._sink)
            changed = mode[1] ^ self._mode[1]
            wanted = [mode[0], terminal[1] & ~changed | mode[1] & changed, *mode[2:]]
            termios.tcsetattr(self._sink, termios.TCSANOW, wanted)
            self._mode = mode
        except termios.error:  # the terminal is gone
            return


def _waiting(fd: int) -> int:
    """Bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), "little")
