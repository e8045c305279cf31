"""What a child writes, line by line, made into outcomes of its tasks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import msgspec

from cudnn_doctor.live.output import clean
from cudnn_doctor.model.base import Base
from cudnn_doctor.model.live import Step, Termination

LINE_LIMIT = 1 << 20  # bytes of one result line
RESULT_LIMIT = 16 << 20  # bytes of all result lines of a child


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
    trusted: bool = False  # loads nothing but the driver's own libraries: stays who the caller is
    limits: dict[str, int] = msgspec.field(default_factory=dict)  # soft limits that it starts under: {"STACK": 262144}


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
    fate: Termination
    tasks: tuple[TaskOutcome, ...]
    ms: float  # from the start of the process to its last word


def not_started(job: Job, error: str) -> JobOutcome:
    """The outcome of a job that never became a process."""
    tasks = tuple(TaskOutcome(id=t.id, begun=False, ended=False, steps=(), ms=0.0) for t in job.tasks)
    return JobOutcome(job=job, fate=Termination(kind="not-started", error=error), tasks=tasks, ms=0.0)


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


class Transcript:
    """The result lines of a child, as far as they have come."""

    def __init__(self, job: Job) -> None:
        self.records = [_Record(t) for t in job.tasks]
        self.current: _Record | None = None
        self.pending, self.pending_label = "", ""  # the call that has begun and not returned
        self.done = False
        self.garbage = self.received = 0
        self.last_word = time.monotonic()
        self._rest = b""

    def add(self, tasks: Iterable[Task]) -> None:
        """Further tasks, after those of the job."""
        self.records += [_Record(t) for t in tasks]

    def feed(self, data: bytes) -> None:
        """The next bytes of the result channel."""
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
