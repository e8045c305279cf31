"""Starts a program as if nobody stood between it and its caller, and waits for the process, never for the end of its
output.

The program is a child in the same session and process group, with the same standard input, so that the terminal's
signals and its job control reach it as before. What it writes goes through relays (observe/streams.py). Signals that
come to the wrapper alone are passed on (observe/echo.py).
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from contextlib import suppress

from cudnn_doctor.observe import relay
from cudnn_doctor.observe.echo import Echo, state_of
from cudnn_doctor.observe.streams import Ring, open_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NOT_FOUND, NOT_RUN = 127, 126  # exit codes of a shell, `env` and `nohup`
_GRACE = 0.02  # seconds within which a signal to the group reaches all of its members
_STALLED = 2.0  # seconds without a byte taken by the reader, after which the relay alone goes on with it
_FROM_KERNEL = 0x80  # si_code SI_KERNEL of the terminal's signals, which the whole group gets
_OURS = {signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_NEVER = {signal.SIGKILL, signal.SIGSTOP}
_RESET = [signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores them in itself


class Ended:
    """How the program ended."""

    __slots__ = ("code", "core", "seconds", "signal", "signals", "stops")

    def __init__(self, code: int, number: int, core: bool, seconds: float, signals: list[tuple[float, int, int, bool]],
                 stops: int) -> None:  # fmt: skip
        self.code = code  # exit code; 128 + the signal's number when one ended it
        self.signal = number  # 0: none
        self.core = core
        self.seconds = seconds
        self.signals = signals  # that came to the wrapper: time, number, sender's PID, whether the group got it
        self.stops = stops


class Program:
    """The running program."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], *, closed: frozenset[int] = frozenset(),
                 folder: str = "") -> None:  # fmt: skip
        """Starts it.

        Args:
            closed: descriptors of 0, 1, 2 that the caller had closed.
            folder: our temporary files, to be removed if this process is killed.

        Raises:
            OSError: it could not be started; nothing is left.
        """
        self.streams = open_streams(closed)
        self.started = time.monotonic()
        self._signals: list[tuple[float, int, int, bool]] = []
        self._stops = 0
        signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        self._echo = Echo(folder)
        try:
            self.pid = self._spawn(command, environ, closed)
        except OSError:
            self._echo.end()
            for stream in self.streams:
                stream.close_source()
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            raise
        finally:
            for stream in self.streams:
                stream.close_given()
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel would forget how it ended
        self._relays = {s: relay.start(s, self.pid) for s in self.streams if s.ring is not None}
        for stream in self._relays:
            stream.close_source()
        self._echo.follow(self.pid)

    def _spawn(self, command: Sequence[str], environ: Mapping[str, str], closed: frozenset[int]) -> int:
        actions: list[tuple[int, ...]] = []
        for stream in self.streams:
            if stream.ring is not None:
                actions += [(os.POSIX_SPAWN_DUP2, stream.given, fd) for fd in stream.fds]
        actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in closed]
        try:
            return _posix_spawn(command[0], command, environ, actions, self._mask)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without "#!": execvp of a shell, of env and of nohup gives it to sh.
            return _posix_spawn("/bin/sh", ["sh", *command], environ, actions, self._mask)

    def wait(self, tick: Callable[[float], float] | None = None) -> Ended:
        """Waits for the process to end and for what it wrote to be delivered. Signals stay blocked afterwards: one to
        the whole group may reach the program first, and this process when it has only its exit status left to give.

        Args:
            tick: called now and then with the seconds since the start; answers after how many it wants to be called
                again. Not called any more once the program has ended.
        """
        due = tick(0.0) if tick else 3600.0
        while True:
            got = signal.sigtimedwait(signal.valid_signals() - _NEVER, max(0.0, due))
            if got is None:
                due = tick(time.monotonic() - self.started) if tick else 3600.0
                continue
            if got.si_signo != signal.SIGCHLD:
                self._signalled(got)
                continue
            ended = self._changed()
            if ended is not None:
                self._deliver()
                self._echo.end()
                return ended

    # -- signals

    def _signalled(self, got: signal.struct_siginfo) -> None:
        number = got.si_signo
        if number == signal.SIGWINCH:
            self._tell(relay.RESIZED)
        if number in _OURS and number not in (signal.SIGTSTP, signal.SIGCONT):
            return
        group = got.si_code == _FROM_KERNEL or self._echo.had(number, _GRACE)
        if group and got.si_code == _FROM_KERNEL:
            self._echo.had(number, _GRACE)  # counted as seen
        self._signals.append((time.monotonic() - self.started, number, got.si_pid, group))
        if not group and (number != signal.SIGCONT or state_of(self.pid) == "T"):
            self._send(number)

    def _send(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:  # it is ending; SIGCHLD comes next
            return

    def _changed(self) -> Ended | None:
        """What became of the program, and of whoever was reparented to us as PID 1."""
        if os.getpid() == 1:
            self._reap_others()
        how = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WSTOPPED | os.WNOHANG)
        if how is None:
            return None
        if how.si_code == os.CLD_STOPPED:
            self._stop(how.si_status)
            return None
        number = 0 if how.si_code == os.CLD_EXITED else how.si_status
        seconds = time.monotonic() - self.started
        code = 128 + number if number else how.si_status
        return Ended(code, number, how.si_code == os.CLD_DUMPED, seconds, self._signals, self._stops)

    def _reap_others(self) -> None:
        known = {self.pid, self._echo.pid, *(pid for pid, _, _ in self._relays.values())}
        with suppress(ChildProcessError):
            while True:
                how = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if how is None or how.si_pid in known:
                    return
                os.waitid(os.P_PID, how.si_pid, os.WEXITED | os.WNOHANG)

    def _stop(self, number: int) -> None:
        """The program was stopped: so is this process, for the shell that waits for it, and by the same signal."""
        self._stops += 1
        self._echo.stopping(True)
        os.kill(
            os.getpid(), number
        )  # first this, while it is blocked: the terminal's own may be pending, and one stop is enough
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number} - _NEVER)
        signal.pthread_sigmask(signal.SIG_BLOCK, {number} - _NEVER)
        self._echo.stopping(False)

    # -- the end

    def _tell(self, word: bytes) -> None:
        for _, control, _ in self._relays.values():
            with suppress(OSError):  # the relay may have ended
                os.write(control, word)

    def _deliver(self) -> None:
        """Waits until the relays have delivered what the program wrote: not for ever, a reader may have stopped
        reading; the relay goes on then."""
        self._tell(relay.ENDED)
        for stream, (pid, control, status) in self._relays.items():
            ring, before = stream.ring or Ring(), -1
            while before != ring.total and not select.select([status], [], [], _STALLED)[0]:
                before = ring.total
            if select.select([status], [], [], 0)[0] and os.read(status, 1) != relay.DRAINED:
                os.waitid(os.P_PID, pid, os.WEXITED)
            os.close(status)
            os.close(control)


def _posix_spawn(path: str, command: Sequence[str], environ: Mapping[str, str], actions: list[tuple[int, ...]],
                 mask: set[int | signal.Signals]) -> int:  # fmt: skip
    defaults = [s for s in _RESET if signal.getsignal(s) == signal.SIG_IGN]
    return os.posix_spawnp(
        path, list(command), environ, file_actions=actions, setsigmask=list(mask), setsigdef=defaults
    )


def end_like(ended: Ended) -> int:
    """Ends this process by the signal that ended the program, without a core file of its own; where that is not to be
    had (PID 1) the answer is the exit code that a shell would name."""
    if ended.signal:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if ended.signal not in _NEVER:
            signal.signal(ended.signal, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {ended.signal})
        os.kill(os.getpid(), ended.signal)
    return ended.code
