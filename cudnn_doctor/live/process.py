"""One child process: a session of its own without core dumps, stdin null, output captured and capped, results on a
pipe of its own (live/wire.py, live/story.py), its whole process group killed at the end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cudnn_doctor.live import account, open_files
from cudnn_doctor.live.become import NOT_BECOME
from cudnn_doctor.live.output import Capped, split_traceback
from cudnn_doctor.live.transcript import Job, JobOutcome, Transcript, not_started
from cudnn_doctor.live.wire import LOST_CHANNEL
from cudnn_doctor.model.live import Termination

if TYPE_CHECKING:
    import selectors
    import subprocess

GRACE = 1.0  # seconds for the kernel to take down a killed child
CHILD = str(Path(__file__).with_name("child.py"))
PACKAGES = str(Path(__file__).parents[2])  # last: where `python -m` has found this package, it may be nowhere else


class Child:
    """One running child. All its descriptors are read from the selector loop of `run_jobs`."""

    def __init__(self, job: Job, until: float, *, hold: bool = False) -> None:
        """Starts the process. With `hold` its command channel stays open for `tell`."""
        self.job, self.until, self.linger, self._hold = job, until, False, hold
        self.pidfd: int | None = None
        self._selector: selectors.BaseSelector | None = None
        self._started = time.monotonic()
        self._output = Capped()
        self._story = Transcript(job)
        self._dead = False
        self._open: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = ""
        try:
            self._spawn()
        except (OSError, ValueError) as e:
            self._failure = f"{type(e).__name__}: {e}"
            self._close_all()

    # -- start

    def _spawn(self) -> None:
        import subprocess

        become = None if self.job.trusted else account.current()
        env = {**account.environment_for(become, os.environ), **self.job.set_env}
        for name in self.job.unset_env:
            env.pop(name, None)
        kept = {"NOFILE": open_files.given()} if open_files.raised() else {}
        limits = [f"{name}={value}" for name, value in {**kept, **self.job.limits}.items()]
        commands_r, self._commands_fd = os.pipe()
        self._results_fd, results_w = os.pipe()
        self._output_fd, output_w = os.pipe()
        self._open.update((self._commands_fd, self._results_fd, self._output_fd))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", CHILD, str(commands_r), str(results_w), *limits],
                stdin=subprocess.DEVNULL,
                stdout=output_w,
                stderr=output_w,
                env=env,
                pass_fds=(commands_r, results_w),
                start_new_session=True,
                cwd="/" if become else None,
            )
        finally:
            for fd in (commands_r, results_w, output_w):
                os.close(fd)
        first = {"path": [*(p for p in sys.path if p), PACKAGES], "become": become, "bodies": _modules(self.job)}
        messages = (first, *self.job.tasks)
        self._commands = b"".join(msgspec.json.encode(m) + b"\n" for m in messages)
        for fd in self._open:
            os.set_blocking(fd, False)
        with contextlib.suppress(OSError, AttributeError):  # an older kernel or a sandbox: run_jobs looks every 10 ms
            self.pidfd = os.pidfd_open(self._process.pid)
            self._open.add(self.pidfd)
        self._write()

    def tell(self, message: object, job: Job | None = None) -> None:
        """What a child that was started with `hold` waits for, and the last it is told. `job` is its job made whole:
        with the tasks that it has and, after them, more."""
        more = job.tasks[len(self.job.tasks) :] if job else ()
        self.job = job or self.job
        self._story.add(more)
        self._hold = False
        if self._process is not None:
            self._commands += b"".join(msgspec.json.encode(m) + b"\n" for m in (message, *more))
            self._write()

    def listen(self, selector: selectors.BaseSelector) -> None:
        """From now on `selector` reads what the child says."""
        import selectors

        self._selector = selector
        if self._process is None:
            return
        for fd, event, react in (
            (self.pidfd, selectors.EVENT_READ, self._exited),
            (self._commands_fd, selectors.EVENT_WRITE, self._write),
            (self._results_fd, selectors.EVENT_READ, self._read_results),
            (self._output_fd, selectors.EVENT_READ, self._read_output),
        ):
            if fd is not None and fd in self._open:
                selector.register(fd, event, react)

    def _write(self) -> None:
        try:
            self._commands = self._commands[os.write(self._commands_fd, self._commands) :]
        except BlockingIOError:
            return
        except OSError:
            self._commands = b""  # the child is gone; its fate says so
        if not self._commands and not self._hold:
            self._close(self._commands_fd)
            self._commands_fd = -1  # the number may be given to another file

    # -- listen

    def _read(self, fd: int) -> bytes:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return b""
        if not data:
            self._close(fd)
        return data

    def _read_output(self) -> None:
        self._output.feed(self._read(self._output_fd))

    def _read_results(self) -> None:
        self._story.feed(self._read(self._results_fd))

    # -- end

    def _exited(self) -> None:
        self._dead = True

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self._process is None or self._dead

    def outcome(self) -> JobOutcome | None:
        """The outcome once the process is gone or its time is up, else None."""
        if self._process is None:
            return not_started(self.job, self._failure)
        if not self._dead and self.pidfd is None:
            self._dead = _ended(self._process.pid)
        leaves = self.linger and self._story.done
        if not (self._dead or leaves) and time.monotonic() < self.until:
            return None
        timed_out = not self._dead
        code = self._end(self._process, linger=leaves)
        return JobOutcome(
            job=self.job,
            fate=self._fate(code, timed_out=timed_out),
            tasks=tuple(r.outcome() for r in self._story.records),
            ms=round((self._story.last_word - self._started) * 1000, 3),
        )

    def abandon(self) -> None:
        """Ends the child without asking what it did."""
        if self._process is not None:
            self._end(self._process)

    def _end(self, process: subprocess.Popen[bytes], *, linger: bool = False) -> int | None:
        """Kills the child's process group, whatever is left of it, before its number is free again; then takes what
        is in the pipes, whose end is not awaited: a grandchild outside the group may hold them open for ever."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if linger:
            _leave(process)
        else:
            _await(process)
        end = time.monotonic() + GRACE
        for fd, read in ((self._results_fd, self._read_results), (self._output_fd, self._read_output)):
            while fd in self._open and time.monotonic() < end and _readable(fd):
                read()
        code = process.wait() if _ended(process.pid) else None
        self._close_all()
        return code

    def _fate(self, code: int | None, *, timed_out: bool) -> Termination:
        story = self._story
        remarks = [r.error for r in story.records if r.error]
        if story.garbage:
            remarks.append(f"{story.garbage} lines of the result channel could not be read")
        printed, where = split_traceback(self._output.text())
        if where:
            remarks.append(where)
        if code == LOST_CHANNEL:
            remarks.append("a library closed the result channel")
        if code == NOT_BECOME:
            return Termination(
                kind="not-started", error=printed or "the rights of the environment's owner could not be taken"
            )
        fate = Termination(
            kind="completed",
            last_step=story.pending,
            last_label=story.pending_label,
            stderr=printed,
            error="; ".join(remarks),
        )
        if story.done:
            return fate
        if timed_out:
            return msgspec.structs.replace(fate, kind="timeout")
        if code is not None and code < 0:
            return msgspec.structs.replace(fate, kind="signal", signal=_signal_name(-code))
        return msgspec.structs.replace(fate, kind="exit", exit_code=code)

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.discard(fd)
            if self._selector is not None:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(fd)
            os.close(fd)

    def _close_all(self) -> None:
        for fd in list(self._open):
            self._close(fd)


def _modules(job: Job) -> list[str]:
    """The modules of a job's bodies."""
    return sorted({task.body.partition(":")[0] for task in job.tasks})


_LEAVING: list[subprocess.Popen[bytes]] = []  # killed children whose end nobody waits for yet


def _leave(process: subprocess.Popen[bytes]) -> None:
    import atexit

    if not _LEAVING:
        atexit.register(reap)
    _LEAVING.append(process)


def reap() -> None:
    """Waits for the children that `linger` left behind, a second at most for each."""
    while _LEAVING:
        process = _LEAVING.pop()
        _await(process)
        process.poll()


def _await(process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + GRACE
    while not _ended(process.pid) and time.monotonic() < end:
        time.sleep(0.002)


def _ended(pid: int) -> bool:
    """Whether the child has ended; leaves it to be waited for, so that its number stays taken."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _readable(fd: int) -> bool:
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(event & select.POLLIN for _, event in poll.poll(0))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
