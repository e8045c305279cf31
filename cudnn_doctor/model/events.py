"""What the recorder saw inside a process, as data. No judgement, and nothing here opens a file: rules may import it.

Addresses are numbers; None where the recorder could not know one. `seq` orders the events of one recording, those of
all its threads and forked children. A status is the library's own number (cuDNN's needs the major version to be read);
None means that the call had been written down and never returned.
"""

from __future__ import annotations

from typing import Literal, Union

from cudnn_doctor.model.base import Base

Library = Literal["cuda", "cudart", "cudnn", "cublas"]
PythonUnknown = Literal[
    "", "no python", "not a python thread", "version not known", "not readable", "not taken", "no python frame"
]


class PythonFrame(Base, frozen=True, kw_only=True):
    file: str  # of a long path the end, behind "..."
    line: int  # 0: the interpreter has no line for it
    function: str  # qualified since Python 3.11


class NativeFrame(Base, frozen=True, kw_only=True):
    """An address in a library: `module` is its path ("": in none), `offset` counts from its load address."""

    module: str
    offset: int
    exact: bool  # the caller itself; the others were found on the stack and may be left over from an earlier call


class Origin(Base, frozen=True, kw_only=True):
    """Who made the call, when and from where. `at`: CLOCK_MONOTONIC, ns."""

    pid: int
    tid: int
    thread: str  # as the kernel names it, at most 15 characters
    at: int
    python: tuple[PythonFrame, ...] = ()  # innermost first: two frames, then those outside installed packages
    python_unknown: PythonUnknown = ""
    native: tuple[NativeFrame, ...] = ()


class Event(Base, frozen=True, kw_only=True, tag_field="kind"):
    seq: int
    origin: Origin


class LibraryLoaded(Event, frozen=True, kw_only=True, tag="library-loaded"):
    library: Library
    path: str
    base: int


class LibraryUnloaded(Event, frozen=True, kw_only=True, tag="library-unloaded"):
    library: Library
    path: str


class CudaInitialised(Event, frozen=True, kw_only=True, tag="cuda-initialised"):
    """The first cuInit, and each that failed."""

    status: int | None


class ContextCreated(Event, frozen=True, kw_only=True, tag="context-created"):
    """`how` primary: retained while it was not there."""

    context: int
    device: int | None
    how: Literal["created", "primary", "green"]
    function: str
    current: int | None  # the context that is current after the call


class ContextReleased(Event, frozen=True, kw_only=True, tag="context-released"):
    """A release of the primary context that others still hold."""

    context: int | None
    device: int | None
    status: int | None


class ContextEnded(Event, frozen=True, kw_only=True, tag="context-ended"):
    context: int | None
    device: int | None
    how: Literal["destroyed", "reset", "released", "green-destroyed"]
    function: str
    status: int | None
    created_by: int | None  # number of the event
    streams: int  # how many streams and handles were alive in it
    handles: int


class StreamCreated(Event, frozen=True, kw_only=True, tag="stream-created"):
    stream: int
    context: int | None
    function: str


class StreamEnded(Event, frozen=True, kw_only=True, tag="stream-ended"):
    stream: int
    context: int | None
    status: int | None
    created_by: int | None
    ended_before_by: int | None  # destroyed twice, or after its context


class HandleCreated(Event, frozen=True, kw_only=True, tag="handle-created"):
    """`path` is the copy of the library that made it. `context`: current after the call, else the only primary one."""

    library: Library
    path: str
    function: str
    handle: int
    context: int | None


class HandleEnded(Event, frozen=True, kw_only=True, tag="handle-ended"):
    library: Library
    path: str
    function: str
    handle: int
    context: int | None
    status: int | None
    created_by: int | None
    ended_before_by: int | None


class Pair(Event, frozen=True, kw_only=True):
    """A handle with a stream. `*_ended_by` names the event that ended one BEFORE this call: None while it lives."""

    library: Library
    path: str
    function: str
    status: int | None
    handle: int
    stream: int
    handle_context: int | None
    stream_context: int | None
    current_context: int | None
    handle_created_by: int | None
    stream_created_by: int | None
    handle_ended_by: int | None
    stream_ended_by: int | None


class StreamSet(Pair, frozen=True, kw_only=True, tag="stream-set"):
    """cudnnSetStream or cublasSetStream: the first pairs of a handle, pairs that failed (32 a process), and pairs of
    two contexts or with something ended, also where the library took them."""

    first: bool  # the first failure in this process


class EndedUsed(Pair, frozen=True, kw_only=True, tag="ended-used"):
    """A call with a handle that has ended, or whose stream has."""


class CallFailed(Event, frozen=True, kw_only=True, tag="call-failed"):
    """The first failure of a function with a status (of an allocation the first eight); `count`: how often in all.

    Memory in bytes, as cuMemGetInfo gave it right after an allocation that failed."""

    library: Library
    path: str
    function: str
    status: int
    count: int
    first: bool
    handle: int | None
    stream: int | None
    current_context: int | None
    context_ended_by: int | None
    handle_ended_by: int | None
    stream_ended_by: int | None
    requested: int | None
    memory_free: int | None
    memory_total: int | None


class HandleShared(Event, frozen=True, kw_only=True, tag="handle-shared"):
    """A second thread used the handle; `at_once`: while another was inside a call with it."""

    library: Library
    path: str
    function: str
    handle: int
    first_tid: int
    at_once: bool
    created_by: int | None


class Forked(Event, frozen=True, kw_only=True, tag="forked"):
    """Written by a forked child before its first event. `initialised`: cuInit had succeeded before the fork."""

    parent: int
    initialised: bool


AnyEvent = Union[
    LibraryLoaded,
    LibraryUnloaded,
    CudaInitialised,
    ContextCreated,
    ContextReleased,
    ContextEnded,
    StreamCreated,
    StreamEnded,
    HandleCreated,
    HandleEnded,
    StreamSet,
    EndedUsed,
    CallFailed,
    HandleShared,
    Forked,
]


class Process(Base, frozen=True, kw_only=True):
    """One program image: after exec the same pid has a second recording. `started` and `started_wall` in ns."""

    pid: int
    parent: int
    program: str
    started: int  # CLOCK_MONOTONIC, when the first CUDA library was loaded
    started_wall: int  # CLOCK_REALTIME
    old_loader: bool  # glibc before 2.35: of libraries that dlopen binds at once only what they find by dlsym is seen
    file: str  # name of the event file


class Recording(Base, frozen=True, kw_only=True):
    """`dropped`: events that later ones replaced, or that were only counted; `incomplete`: cut in the middle."""

    process: Process
    events: tuple[AnyEvent, ...]
    dropped: int = 0
    incomplete: int = 0
    damage: str = ""  # what was wrong with the file; "" when it is whole
