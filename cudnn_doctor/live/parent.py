"""Child processes for everything that touches libcuda or libcudnn.

A library may crash, abort, hang, print a hundred megabytes, close every descriptor or kill its process group: all of
that comes back as data, whole and on time. Each child is a session of its own without core dumps, with stdin closed off,
its output captured and capped, and its results on a pipe of its own as JSON lines (live/wire.py).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cudnn_doctor.live.wire import LOST_CHANNEL
from cudnn_doctor.model import Base, Fate, Step

if TYPE_CHECKING:
    import selectors
    import subprocess

OUTPUT_HEAD, OUTPUT_TAIL = 8192, 8192  # bytes kept of what a child prints
LINE_LIMIT = 1 << 20  # bytes of one result line
RESULT_LIMIT = 16 << 20  # bytes of all result lines of a child
GRACE = 1.0  # seconds for the kernel to take down a killed child
CHILD = str(Path(__file__).with_name("child.py"))


class Task(Base, frozen=True, kw_only=True):
    """One body to run in a child: `module:function`, called with the wire, `args` and what the child's tasks share."""

    id: str
    body: str
    args: dict[str, Any] = {}


class Job(Base, frozen=True, kw_only=True):
    """One child process: its tasks in order, its environment, its own deadline in seconds from its start."""

    tasks: tuple[Task, ...]
    device: int | None = None  # for the reader of the outcome; bodies take theirs from their args
    set_env: dict[str, str] = {}
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
    job: Job
    fate: Fate
    tasks: tuple[TaskOutcome, ...]  # one for each of the job's, in order
    ms: float  # from the start of the process to its last word


class Line(msgspec.Struct):
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


Progress = Callable[[JobOutcome], None]


def run_jobs(
    jobs: Sequence[Job], *, deadline: float, width: int | None = None, progress: Progress | None = None
) -> tuple[JobOutcome, ...]:
    """Runs all jobs, at most `width` children at a time, and returns their outcomes in the order of `jobs`.

    `deadline` is in seconds from now and bounds the whole call; children that have not ended by then are killed, those
    not yet started are `not-started`.
    """
    import selectors

    until = time.monotonic() + deadline
    waiting = list(enumerate(jobs))
    outcomes: dict[int, JobOutcome] = {}
    running: dict[int, _Child] = {}
    with selectors.DefaultSelector() as selector:
        while waiting or running:
            now = time.monotonic()
            while waiting and len(running) < (width or len(jobs)) and now < until:
                index, job = waiting.pop(0)
                running[index] = _Child(job, selector, min(until, now + job.deadline))
            if now >= until:
                outcomes.update((i, _not_started(job, "no time left before the deadline")) for i, job in waiting)
                waiting.clear()
            _wait(selector, running.values())
            for index, child in list(running.items()):
                outcome = child.outcome()
                if outcome is not None:
                    del running[index]
                    outcomes[index] = outcome
                    if progress:
                        progress(outcome)
    return tuple(outcomes[i] for i in range(len(jobs)))


def _wait(selector: selectors.BaseSelector, children: Any) -> None:
    if not children:
        return
    now = time.monotonic()
    timeout = max(0.0, min(c.until for c in children) - now)
    if any(c.pidfd is None for c in children):
        timeout = min(timeout, 0.01)
    for key, _ in selector.select(timeout):
        key.data()


def _not_started(job: Job, error: str) -> JobOutcome:
    tasks = tuple(TaskOutcome(id=t.id, begun=False, ended=False, steps=(), ms=0.0) for t in job.tasks)
    return JobOutcome(job=job, fate=Fate(kind="not-started", error=error), tasks=tasks, ms=0.0)


class _Capped:
    """The first and the last bytes of a stream, and how many were left out between them."""

    def __init__(self) -> None:
        self.head, self.tail, self.dropped = b"", b"", 0

    def feed(self, data: bytes) -> None:
        room = OUTPUT_HEAD - len(self.head)
        self.head += data[:room]
        tail = self.tail + data[room:] if room > 0 else self.tail + data
        self.tail = tail[-OUTPUT_TAIL:]
        self.dropped += len(tail) - len(self.tail)

    def text(self) -> str:
        gap = f"\n[... {self.dropped} bytes left out ...]\n".encode() if self.dropped else b""
        return clean((self.head + gap + self.tail).decode("utf-8", "replace"))


def clean(text: str) -> str:
    """Printable text and line ends only: no escape sequence of a library reaches a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "" for c in text).strip()


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


class _Child:
    """One running child and what it has said. All its descriptors are read from one selector loop."""

    def __init__(self, job: Job, selector: selectors.BaseSelector, until: float) -> None:
        self.job, self.until, self._selector = job, until, selector
        self._started = time.monotonic()
        self._output = _Capped()
        self._records = [_Record(t) for t in job.tasks]
        self._current: _Record | None = None
        self._pending = ""  # the call that has begun and not returned
        self._buffer = b""
        self._garbage = self._received = 0
        self._done = self._dead = False
        self._last_word = self._started
        self._open: set[int] = set()
        self.pidfd: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = ""
        try:
            self._spawn()
        except (OSError, ValueError) as e:
            self._failure = f"{type(e).__name__}: {e}"
            self._close_all()

    # -- start

    def _spawn(self) -> None:
        import selectors
        import subprocess

        env = {**os.environ, **self.job.set_env}
        for name in self.job.unset_env:
            env.pop(name, None)
        commands_r, commands_w = os.pipe()
        results_r, results_w = os.pipe()
        output_r, output_w = os.pipe()
        self._open.update((commands_w, results_r, output_r))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", CHILD, str(commands_r), str(results_w), *self._stack_argument()],
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
        try:
            self.pidfd = os.pidfd_open(self._process.pid)
            self._open.add(self.pidfd)
            self._selector.register(self.pidfd, selectors.EVENT_READ, self._exited)
        except (OSError, AttributeError):
            self.pidfd = None  # an older kernel or a sandbox: `_wait` looks every 10 ms
        for fd in (commands_w, results_r, output_r):
            os.set_blocking(fd, False)
        self._commands = b"".join(
            msgspec.json.encode(m) + b"\n" for m in ({"path": [p for p in sys.path if p]}, *self.job.tasks)
        )
        self._commands_fd, self._results_fd, self._output_fd = commands_w, results_r, output_r
        self._selector.register(commands_w, selectors.EVENT_WRITE, self._write)
        self._selector.register(results_r, selectors.EVENT_READ, self._read_results)
        self._selector.register(output_r, selectors.EVENT_READ, self._read_output)

    def _stack_argument(self) -> list[str]:
        return [] if self.job.stack_limit is None else [str(self.job.stack_limit)]

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
        data = self._read(self._results_fd)
        self._received += len(data)
        if self._received > RESULT_LIMIT:
            self._garbage += data.count(b"\n")
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._buffer) > LINE_LIMIT:
            self._garbage += 1
            self._buffer = b""

    def _take(self, raw: bytes) -> None:
        try:
            line = msgspec.json.decode(raw, type=Line)
        except msgspec.DecodeError:
            self._garbage += 1
            return
        self._last_word = time.monotonic()
        if line.done:
            self._done = True
        elif line.begin is not None:
            self._current = next((r for r in self._records if r.task.id == line.begin and not r.begun), None)
            if self._current:
                self._current.begun, self._current.started = True, self._last_word
        elif self._current is None:
            self._garbage += 1
        elif line.next is not None:
            self._pending = line.next
        elif line.end is not None:
            self._current.ended, self._current.ms, self._current.error = True, line.ms or 0.0, clean(line.error)
            self._pending, self._current = "", None
        elif line.did is not None or line.note is not None:
            self._pending = self._pending if line.did is None else ""
            self._current.steps.append(
                Step(
                    call=clean(line.did or line.note or ""),
                    status=line.status,
                    name=clean(line.name),
                    detail=clean(line.detail),
                    label=clean(line.label),
                    value=line.value,
                    ms=line.ms,
                )
            )

    # -- end

    def _exited(self) -> None:
        self._dead = True

    def outcome(self) -> JobOutcome | None:
        """The outcome once the process is gone or its time is up, else None."""
        if self._process is None:
            return _not_started(self.job, self._failure)
        late = time.monotonic() >= self.until
        if not self._dead and self.pidfd is None:
            self._dead = _ended(self._process.pid)
        if not (self._dead or late):
            return None
        timed_out = not self._dead
        if timed_out:
            self._kill()
            end = time.monotonic() + GRACE
            while not _ended(self._process.pid) and time.monotonic() < end:
                time.sleep(0.002)
        self._drain()
        self._kill()  # whatever the child left in its session; before its number is free again
        code = self._process.wait() if _ended(self._process.pid) else None
        self._close_all()
        fate = self._fate(code, timed_out=timed_out)
        return JobOutcome(
            job=self.job,
            fate=fate,
            tasks=tuple(r.outcome() for r in self._records),
            ms=round((self._last_word - self._started) * 1000, 3),
        )

    def _kill(self) -> None:
        assert self._process is not None  # noqa: S101 - only called once it runs
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def _drain(self) -> None:
        """Takes what is in the pipes now; a grandchild may hold them open for ever, so their end is not awaited."""
        end = time.monotonic() + GRACE
        for fd, read in ((self._results_fd, self._read_results), (self._output_fd, self._read_output)):
            while fd in self._open and time.monotonic() < end and _readable(fd):
                read()

    def _fate(self, code: int | None, *, timed_out: bool) -> Fate:
        remarks = [r.error for r in self._records if r.error]
        if self._garbage:
            remarks.append(f"{self._garbage} lines of the result channel could not be read")
        text = {"last_step": self._pending, "stderr": self._output.text(), "error": "; ".join(remarks)}
        if self._done:
            return Fate(kind="completed", **text)
        if timed_out:
            return Fate(kind="timeout", **text)
        if code is not None and code < 0:
            return Fate(kind="signal", signal=_signal_name(-code), **text)
        if code == LOST_CHANNEL:
            text["error"] = "; ".join([*remarks, "a library closed the result channel"])
        return Fate(kind="exit", exit_code=code, **text)

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.discard(fd)
            try:
                self._selector.unregister(fd)
            except KeyError:
                pass
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
