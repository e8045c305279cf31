"""The recorder's events of one program image, in order, with the questions that the rules ask of them, and the words in
which people read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from cudnn_doctor.knowledge.status import cuda_error, cudnn_status
from cudnn_doctor.model import events as ev
from cudnn_doctor.model.explanation import Evidence
from cudnn_doctor.postmortem.finding import event

E = TypeVar("E", bound=ev.Event)
SOURCE = "recorder"
_CUBLAS = {
    1: "NOT_INITIALIZED",
    3: "ALLOC_FAILED",
    7: "INVALID_VALUE",
    8: "ARCH_MISMATCH",
    11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED",
    14: "INTERNAL_ERROR",
    15: "NOT_SUPPORTED",
}  # fmt: skip  cublas_api.h of CUDA 12


class Timeline:
    """One program image."""

    def __init__(self, recording: ev.Recording, started: int) -> None:
        """`started`: CLOCK_MONOTONIC of the program's start, ns."""
        self.process, self._started = recording.process, started
        self.events = recording.events
        self._by_number = {e.seq: e for e in recording.events}

    def of(self, *kinds: type[E]) -> Iterator[E]:
        """The events of these kinds, in order."""
        return (e for e in self.events if isinstance(e, kinds))

    def number(self, seq: int | None) -> ev.AnyEvent | None:
        """The event of that number, where it was kept."""
        return self._by_number.get(seq) if seq is not None else None

    def ended_context(self, context: int | None, before: int) -> ev.ContextEnded | None:
        """The event that ended a context before event `before`; the last one, where its address was used again."""
        if context is None:
            return None
        found = [e for e in self.of(ev.ContextEnded) if e.context == context and e.seq < before]
        return found[-1] if found else None

    def failures(self) -> list[ev.CallFailed | ev.StreamSet]:
        """Calls that failed, the first one first."""
        return [e for e in self.events if isinstance(e, (ev.CallFailed, ev.StreamSet)) and e.status]

    def seconds(self, e: ev.Event) -> float:
        """Seconds after the program's start."""
        return max(0.0, (e.origin.at - self._started) / 1e9)

    def forked(self, pid: int) -> ev.Forked | None:
        """The event that says that process `pid` was forked after CUDA had been initialised."""
        return next((e for e in self.of(ev.Forked) if e.origin.pid == pid and e.initialised), None)

    def shown(self, e: ev.Event, because: str = "") -> Evidence:
        """An event in words: when, what, in which thread, at which line of the program."""
        text = f"{self.seconds(e):.3f} s: {words(e)}{self._where(e)}"
        place = place_of(e)
        return event(f"{text} at {place}" if place else text, because, source=SOURCE)

    def _where(self, e: ev.Event) -> str:
        """The process and thread, unless it is the first one of the program image."""
        process = f", process {e.origin.pid}" if e.origin.pid != self.process.pid else ""
        return process + (f", thread {e.origin.tid} {e.origin.thread}".rstrip() if e.origin.tid != e.origin.pid else "")


def place_of(e: ev.Event) -> str:
    """The program's own Python lines, the innermost two that lie in no installed package; else the innermost at all."""
    frames = e.origin.python
    own = [f for f in frames if not re.search(r"/(?:site|dist)-packages/|/lib/python3|^<frozen ", f.file)]
    if not frames:
        return ""
    shown = own[:1] or list(frames[:1])
    shown += [f for f in own[1:] if f.file != shown[0].file][:1] or own[1:2]  # who called a helper's file
    return " < ".join(f"{_short(f.file)}:{f.line} in {f.function}" for f in shown)


def _short(path: str) -> str:
    """The file and its folder: enough to find it, and two of them fit a line."""
    return "/".join(path.split("/")[-2:])


def words(e: ev.Event) -> str:
    """What happened, in a line."""
    match e:
        case ev.ContextCreated():
            kind = "context" if e.how == "created" else f"{e.how} context"
            return f"{e.function} made a {kind} {_address(e.context)} on {_device(e)}"
        case ev.ContextEnded():
            lost = [f"{n} {name}" for n, name in ((e.streams, "streams"), (e.handles, "handles")) if n]
            with_it = f" with {' and '.join(lost)}" if lost else ""
            return f"{e.function} ended context {_address(e.context)} on {_device(e)}{with_it}"
        case ev.StreamCreated():
            return f"{e.function} made stream {_address(e.stream)} in context {_address(e.context)}"
        case ev.StreamEnded():
            return f"stream {_address(e.stream)} was destroyed"
        case ev.HandleCreated():
            return f"{e.function} made handle {_address(e.handle)} in context {_address(e.context)}"
        case ev.HandleEnded():
            return f"{e.function} destroyed handle {_address(e.handle)}"
        case ev.StreamSet():
            what = f"{e.function} answered {status_name(e)}" if e.status else f"{e.function} took it"
            return (
                f"{what}: handle {_address(e.handle)} of context {_address(e.handle_context)}, stream "
                f"{_address(e.stream)} of context {_address(e.stream_context)}"
            )
        case ev.EndedUsed():
            return f"{e.function} was called with handle {_address(e.handle)} and stream {_address(e.stream)}"
        case ev.CallFailed():
            again = f", {e.count} times" if e.count > 1 else ""
            return f"{e.function} answered {status_name(e)}{again}{_memory(e)}"
        case ev.HandleShared():
            at_once = " at the same time" if e.at_once else ""
            return (
                f"{e.function}: handle {_address(e.handle)} is used by a second thread (first: {e.first_tid}){at_once}"
            )
        case ev.Forked():
            return f"process {e.origin.pid} was forked from {e.parent}, where CUDA had been initialised"
        case ev.CudaInitialised():
            return f"cuInit answered {status_name(e)}"
    return type(e).__name__


def _memory(e: ev.CallFailed) -> str:
    if e.requested is None and e.memory_free is None:
        return ""
    asked = f"asked for {size(e.requested)}" if e.requested is not None else "asked for memory"
    free = f", {size(e.memory_free)} of {size(e.memory_total or 0)} were free" if e.memory_free is not None else ""
    return f": {asked}{free}"


def status_name(e: ev.CallFailed | ev.StreamSet | ev.CudaInitialised) -> str:
    """`7 CUDNN_STATUS_MAPPING_ERROR`, `700 CUDA_ERROR_ILLEGAL_ADDRESS`."""
    library = getattr(e, "library", "cuda")
    if e.status is None:
        return "nothing: it never returned"
    if library == "cudnn":
        known = cudnn_status(major_of(getattr(e, "path", "")), e.status)
        return f"{e.status} {known.name}" if known else str(e.status)
    if library == "cublas":
        name = _CUBLAS.get(e.status, "")
        return f"{e.status} CUBLAS_STATUS_{name}" if name else str(e.status)
    error = cuda_error(e.status)
    return f"{e.status} {error.name}" if error else str(e.status)


def major_of(path: str) -> int:
    """cuDNN's major by the file's name; 9 where it does not say."""
    match = re.search(r"\.so\.(\d+)", path)
    return int(match[1]) if match else 9


def size(count: int) -> str:
    """Bytes for people."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} bytes"


def _address(value: int | None) -> str:
    if value is None:
        return "unknown"
    names = ("0 (default)", "1 (legacy)", "2 (per thread)")  # cuda.h, CU_STREAM_LEGACY and the like
    return names[value] if value < len(names) else f"{value:#x}"


def _device(e: ev.ContextCreated | ev.ContextEnded) -> str:
    return "an unknown device" if e.device is None else f"device {e.device}"


def timelines(recordings: Sequence[ev.Recording], started: int) -> list[Timeline]:
    """All images of a run."""
    return [Timeline(r, started) for r in recordings if r.events]
