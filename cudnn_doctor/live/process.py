"""One child process: a session of its own without core dumps, stdin null, output captured and capped, results on a
pipe of its own as JSON lines (live/wire.py), its whole process group killed at the end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cudnn_doctor.live.output import Capped, clean
from cudnn_doctor.live.wire import LOST_CHANNEL
from cudnn_doctor.model import Base, Fate, Step

if TYPE_CHECKING:
    import selectors
    import subprocess

LINE_LIMIT = 1 << 20  # bytes of one result line
RESULT_LIMIT = 16 << 20  # bytes of all result lines of a child
GRACE = 1.0  # seconds for the kernel to take down a killed child
CHILD = str(Path(__file__).with_name("child.py"))


class Task(Base, frozen=True, kw_only=True):
    """One body to run in a child: `module:function`, called with the wire, `args` and what the child's tasks share."""

    id: str
    body: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class Job(Base, frozen=True, kw_only=True):
    """One child process: its tasks in order, its environment, its own deadline in seconds from its start."""

    tasks: tuple[Task, ...]
    device: int | None = None  # for the reader of the outcome; bodies take theirs from their args
    set_env: dict[str, str] = msgspec.field(default_factory=dict)
    unset_env: tuple[str, ...] = ()
    deadline: float = 20.0
    stack_limit: int | None = None  # bytes; the soft RLIMIT_STACK that the child starts under


class TaskOutcome(Base, frozen=True, kw_only=True):
    """What one task wrote. `ended` is False when the child died or was killed inside it, or never came to it."""

    id: str
    begun: bool
    ended: bool
    steps: tuple[Step, ...]
    ms: float
    error: str = ""  # the body's own exception


class JobOutcome(Base, frozen=True, kw_only=True):
    """How a child fared: one task outcome for each of the job's tasks, in order."""

    job: Job
    fate: Fate
    tasks: tuple[TaskOutcome, ...]
    ms: float  # from the start of the process to its last word


def not_started(job: Job, error: str) -> JobOutcome:
    """The outcome of a job that never became a process."""
    tasks = tuple(TaskOutcome(id=t.id, begun=False, ended=False, steps=(), ms=0.0) for t in job.tasks)
    return JobOutcome(job=job, fate=Fate(kind="not-started", error=error), tasks=tasks, ms=0.0)


class _Line(msgspec.Struct):
    """Any line of the result channel; whatever does not fit is garbage and counted as such."""

    begin: str | None = None
    next: str | None = None
    did: str | None = None
    note: str | None = None
    end: str | None = None
    done: bool = False
    label: str = ""
    status: int | None = None
    name: str = ""
    detail: str = ""
    value: Any = None
    ms: float | None = None
    error: str = ""


class _Record:
    """What is known of one task so far."""

    def __init__(self, task: Task) -> None:
        self.task, self.begun, self.ended = task, False, False
        self.steps: list[Step] = []
        self.ms, self.error, self.started = 0.0, "", 0.0

    def outcome(self) -> TaskOutcome:
        ms = self.ms if self.ended else (time.monotonic() - self.started) * 1000 if self.begun else 0.0
        return TaskOutcome(
            id=self.task.id,
            begun=self.begun,
            ended=self.ended,
            steps=tuple(self.steps),
            ms=round(ms, 3),
            error=self.error,
        )


class _Story:
    """The result lines of a child, as far as they have come."""

    def __init__(self, job: Job) -> None:
        self.records = [_Record(t) for t in job.tasks]
        self.current: _Record | None = None
        self.pending, self.pending_label = "", ""  # the call that has begun and not returned
        self.done = False
        self.garbage = self.received = 0
        self.last_word = time.monotonic()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        self.received += len(data)
        if self.received > RESULT_LIMIT:
            self.garbage += data.count(b"\n")
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._rest) > LINE_LIMIT:
            self.garbage += 1
            self._rest = b""

    def _take(self, raw: bytes) -> None:
        try:
            line = msgspec.json.decode(raw, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.garbage += 1
            return
        self.last_word = time.monotonic()
        record = self.current
        if line.done:
            self.done = True
        elif line.begin is not None:
            self.current = next((r for r in self.records if r.task.id == line.begin and not r.begun), None)
            if self.current:
                self.current.begun, self.current.started = True, self.last_word
        elif record is None:
            self.garbage += 1
        elif line.next is not None:
            self.pending, self.pending_label = clean(line.next), clean(line.label)
        elif line.end is not None:
            where = f"{self.pending}: " if line.error and self.pending else ""
            record.ended, record.ms, record.error = True, line.ms or 0.0, where + clean(line.error)
            self.pending, self.pending_label, self.current = "", "", None
        else:
            self._step(record, line)

    def _step(self, record: _Record, line: _Line) -> None:
        if line.did is not None:
            self.pending = self.pending_label = ""
        name = line.did or line.note
        if name is None:
            self.garbage += 1
            return
        step = Step(
            call=clean(name),
            status=line.status,
            name=clean(line.name),
            detail=clean(line.detail),
            label=clean(line.label),
            value=line.value,
            ms=line.ms,
        )
        record.steps.append(step)


class Child:
    """One running child. All its descriptors are read from the selector loop of `run_jobs`."""

    def __init__(self, job: Job, selector: selectors.BaseSelector, until: float) -> None:
        self.job, self.until = job, until
        self.pidfd: int | None = None
        self._selector = selector
        self._started = time.monotonic()
        self._output = Capped()
        self._story = _Story(job)
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

        env = {**os.environ, **self.job.set_env}
        for name in self.job.unset_env:
            env.pop(name, None)
        stack = [] if self.job.stack_limit is None else [str(self.job.stack_limit)]
        commands_r, self._commands_fd = os.pipe()
        self._results_fd, results_w = os.pipe()
        self._output_fd, output_w = os.pipe()
        self._open.update((self._commands_fd, self._results_fd, self._output_fd))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", CHILD, str(commands_r), str(results_w), *stack],
                stdin=subprocess.DEVNULL,
                stdout=output_w,
                stderr=output_w,
                env=env,
                pass_fds=(commands_r, results_w),
                start_new_session=True,
            )
        finally:
            for fd in (commands_r, results_w, output_w):
                os.close(fd)
        messages = ({"path": [p for p in sys.path if p]}, *self.job.tasks)
        self._commands = b"".join(msgspec.json.encode(m) + b"\n" for m in messages)
        self._listen()

    def _listen(self) -> None:
        import selectors

        assert self._process is not None  # noqa: S101 - called by _spawn
        with contextlib.suppress(OSError, AttributeError):  # an older kernel or a sandbox: run_jobs looks every 10 ms
            self.pidfd = os.pidfd_open(self._process.pid)
            self._open.add(self.pidfd)
            self._selector.register(self.pidfd, selectors.EVENT_READ, self._exited)
        for fd, event, react in (
            (self._commands_fd, selectors.EVENT_WRITE, self._write),
            (self._results_fd, selectors.EVENT_READ, self._read_results),
            (self._output_fd, selectors.EVENT_READ, self._read_output),
        ):
            os.set_blocking(fd, False)
            self._selector.register(fd, event, react)

    def _write(self) -> None:
        try:
            self._commands = self._commands[os.write(self._commands_fd, self._commands) :]
        except BlockingIOError:
            return
        except OSError:
            self._commands = b""  # the child is gone; its fate says so
        if not self._commands:
            self._close(self._commands_fd)

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
        if not self._dead and time.monotonic() < self.until:
            return None
        timed_out = not self._dead
        code = self._end(self._process)
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

    def _end(self, process: subprocess.Popen[bytes]) -> int | None:
        """Kills the child's process group, whatever is left of it, before its number is free again; then takes what
        is in the pipes, whose end is not awaited: a grandchild outside the group may hold them open for ever."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        end = time.monotonic() + GRACE
        while not _ended(process.pid) and time.monotonic() < end:
            time.sleep(0.002)
        end = time.monotonic() + GRACE
        for fd, read in ((self._results_fd, self._read_results), (self._output_fd, self._read_output)):
            while fd in self._open and time.monotonic() < end and _readable(fd):
                read()
        code = process.wait() if _ended(process.pid) else None
        self._close_all()
        return code

    def _fate(self, code: int | None, *, timed_out: bool) -> Fate:
        story = self._story
        remarks = [r.error for r in story.records if r.error]
        if story.garbage:
            remarks.append(f"{story.garbage} lines of the result channel could not be read")
        if code == LOST_CHANNEL:
            remarks.append("a library closed the result channel")
        fate = Fate(
            kind="completed",
            last_step=story.pending,
            last_label=story.pending_label,
            stderr=self._output.text(),
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
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
            os.close(fd)

    def _close_all(self) -> None:
        for fd in list(self._open):
            self._close(fd)


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
