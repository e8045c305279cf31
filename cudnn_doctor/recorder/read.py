"""Reads the event files of the recorder (layout: source/file.h). Tolerant: a process may have died at any moment."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cudnn_doctor.model import events
from cudnn_doctor.model.events import AnyEvent, NativeFrame, Origin, Process, PythonFrame, Recording

MAGIC, FORMAT, SLOT = b"cdrecord", 1, 1024
FILES = 256  # recordings read from one folder: the largest of more
SIZE = 4 << 20  # bytes of one file; the recorder makes 1 MiB
HEADER = struct.Struct("<8s 5I 2i I 2Q Q 4I 512s")
RECORD = struct.Struct("<2Q I 3i I 2H 3B5x 12Q 48s 16s 13Q 712s")
UNKNOWN, RUNNING = 2**64 - 1, -(2**31)
GROUPS: dict[int, events.Library] = {1: "cuda", 2: "cudart", 3: "cudnn", 4: "cublas"}
WHY: tuple[events.PythonUnknown, ...] = (
    "",
    "no python",
    "not a python thread",
    "version not known",
    "not readable",
    "not taken",
    "no python frame",
)
CREATED: dict[int, Literal["primary", "created", "green"]] = {1: "primary", 2: "created", 3: "green"}
ENDED: dict[int, Literal["green-destroyed", "destroyed", "reset", "released"]] = {
    3: "green-destroyed",
    4: "destroyed",
    5: "reset",
    6: "released",
}


class Slot(NamedTuple):
    """One record as it lies in the file."""

    seq: int
    at: int
    kind: int
    pid: int
    tid: int
    status: int
    times: int
    module: int
    native_frames: int
    python_frames: int
    why: int
    exact: int
    field: tuple[int, ...]
    function: str
    thread: str
    native: tuple[int, ...]
    text: bytes


class Modules(NamedTuple):
    """The libraries that the records name by number; a number is used again after a library was closed."""

    rows: dict[int, list[tuple[int, str, int]]]  # number -> (seq, path, group), in order

    def at(self, number: int, seq: int) -> tuple[str, int]:
        """Path and group of library `number` as it was when event `seq` was written; ("", 0) when it is not named."""
        rows = self.rows.get(number, [])
        found = [(path, group) for named, path, group in rows if named < seq] or [row[1:] for row in rows[:1]]
        return found[-1] if found else ("", 0)


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def _slot(raw: bytes) -> Slot:
    v = RECORD.unpack(raw)
    return Slot(*v[:12], v[12:24], _text(v[24]), _text(v[25]), v[26:39], v[39])  # type: ignore[call-arg]  # by position


def _python(slot: Slot) -> tuple[PythonFrame, ...]:
    words = slot.text.split(b"\0")
    frames = []
    for i in range(min(slot.python_frames, len(words) // 3)):
        file, function, line = (w.decode("utf-8", "replace") for w in words[3 * i : 3 * i + 3])
        frames.append(PythonFrame(file=file, function=function, line=int(line) if line.isdecimal() else 0))
    return tuple(frames)


def _origin(slot: Slot, modules: Modules) -> Origin:
    native = [
        NativeFrame(
            module=modules.at((word >> 48) - 1, slot.seq)[0] if word >> 48 else "",
            offset=word & (2**48 - 1),
            exact=bool(slot.exact and not i),
        )
        for i, word in enumerate(slot.native[: slot.native_frames])
    ]
    return Origin(
        pid=slot.pid,
        tid=slot.tid,
        thread=slot.thread,
        at=slot.at,
        python=_python(slot),
        python_unknown=WHY[slot.why] if slot.why < len(WHY) else "not readable",
        native=tuple(native),
    )


def _known(value: int) -> int | None:
    return None if value in (0, UNKNOWN) else value


def _size(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _device(value: int) -> int | None:
    return value if value < 1024 else None  # -1 as a 64-bit number: not known


def _status(slot: Slot) -> int | None:
    return None if slot.status == RUNNING else slot.status


def _pair(s: Slot) -> dict[str, Any]:
    f = s.field
    return {
        "status": _status(s),
        "handle": f[0],
        "stream": f[1],
        "handle_context": _known(f[2]),
        "stream_context": _known(f[3]),
        "current_context": _known(f[4]),
        "handle_created_by": _known(f[5]),
        "stream_created_by": _known(f[6]),
        "handle_ended_by": _known(f[7]),
        "stream_ended_by": _known(f[8]),
    }


def _failed(s: Slot) -> dict[str, Any]:
    f = s.field
    return {
        "status": s.status,
        "count": s.times,
        "first": bool(f[6]),
        "handle": _known(f[0]),
        "stream": _size(f[1]),
        "current_context": _known(f[4]),
        "context_ended_by": _known(f[5]),
        "handle_ended_by": _known(f[7]),
        "stream_ended_by": _known(f[8]),
        "requested": _size(f[9]),
        "memory_free": _size(f[10]),
        "memory_total": _size(f[11]),
    }


def _ended(s: Slot) -> dict[str, Any]:
    f = s.field
    return {
        "context": _known(f[3]),
        "status": _status(s),
        "created_by": _known(f[5]),
        "ended_before_by": _known(f[8]),
    }


def _context_ended(s: Slot) -> dict[str, Any]:
    f = s.field
    return {
        "context": _known(f[0]),
        "device": _device(f[1]),
        "how": ENDED.get(f[2], "destroyed"),
        "function": s.function,
        "status": _status(s),
        "created_by": _known(f[5]),
        "streams": f[9],
        "handles": f[10],
    }


def _context_created(s: Slot) -> dict[str, Any]:
    f = s.field
    how = CREATED.get(f[2], "created")
    return {
        "context": f[0],
        "device": _device(f[1]),
        "how": how,
        "function": s.function,
        "current": _known(f[4]),
    }


# number -> type, what its fields are, whether it names the library of the call
KINDS: dict[int, tuple[Callable[..., AnyEvent], Callable[[Slot], dict[str, Any]], bool]] = {
    3: (events.CudaInitialised, lambda s: {"status": s.status}, False),
    4: (events.ContextCreated, _context_created, False),
    5: (
        events.ContextReleased,
        lambda s: {"context": _known(s.field[0]), "device": _device(s.field[1]), "status": s.status},
        False,
    ),
    6: (events.ContextEnded, _context_ended, False),
    7: (
        events.StreamCreated,
        lambda s: {"stream": s.field[0], "context": _known(s.field[3]), "function": s.function},
        False,
    ),
    8: (events.StreamEnded, lambda s: {"stream": s.field[0], **_ended(s)}, False),
    9: (events.HandleCreated, lambda s: {"handle": s.field[0], "context": _known(s.field[2])}, True),
    10: (events.HandleEnded, lambda s: {"handle": s.field[0], **_ended(s)}, True),
    11: (events.StreamSet, lambda s: {**_pair(s), "first": bool(s.field[9])}, True),
    12: (events.CallFailed, _failed, True),
    13: (
        events.HandleShared,
        lambda s: {
            "handle": s.field[0],
            "first_tid": s.field[1],
            "at_once": bool(s.field[2]),
            "created_by": _known(s.field[5]),
        },
        True,
    ),
    14: (events.EndedUsed, _pair, True),
    15: (events.Forked, lambda s: {"parent": s.field[0], "initialised": bool(s.field[1])}, False),
}
MODULE, MODULE_CLOSED = 1, 2


def _event(slot: Slot, modules: Modules) -> AnyEvent | None:
    origin = _origin(slot, modules)
    if slot.kind in (MODULE, MODULE_CLOSED):
        library = GROUPS.get(slot.field[1])
        if library is None:
            return None
        path = _text(slot.text)
        origin = Origin(pid=slot.pid, tid=slot.tid, thread=slot.thread, at=slot.at, python_unknown="not taken")
        if slot.kind == MODULE:
            return events.LibraryLoaded(seq=slot.seq, origin=origin, library=library, path=path, base=slot.field[0])
        return events.LibraryUnloaded(seq=slot.seq, origin=origin, library=library, path=path)
    if slot.kind not in KINDS:
        return None
    make, fields, by_library = KINDS[slot.kind]
    given = fields(slot)
    if by_library:
        path, group = modules.at(slot.module, slot.seq)
        given |= {"library": GROUPS.get(group, "cuda"), "path": path, "function": slot.function}
    return make(seq=slot.seq, origin=origin, **given)


def _process(head: tuple[Any, ...], file: str) -> Process:
    _, _, _, _, _, _, pid, parent, audit, monotonic, wall, _, _, _, _, _, program = head
    return Process(
        pid=pid,
        parent=parent,
        program=_text(program),
        started=monotonic,
        started_wall=wall,
        old_loader=audit < 2,
        file=file,
    )


def read(file: Path) -> Recording:
    """One event file, the events in their order. A file that is no recording gives no events and says so in `damage`.

    Raises OSError where the file cannot be read.
    """
    with file.open("rb") as stream:
        return decode(stream.read(SIZE), file.name)


def decode(raw: bytes, name: str) -> Recording:
    """The content of an event file; `name` is the file's."""
    head = HEADER.unpack(raw[: HEADER.size].ljust(HEADER.size, b"\0"))
    process = _process(head, name)
    if head[0] != MAGIC:
        return Recording(
            process=process, events=(), damage="no recording: the file was not begun, or is something else"
        )
    if head[1] != FORMAT or head[2] != SLOT:
        return Recording(process=process, events=(), damage=f"format {head[1]}, this version reads {FORMAT}")
    last, unrecorded = head[11], head[14]
    slots, incomplete = [], 0
    for at in range(SLOT, len(raw) - SLOT + 1, SLOT):
        slot = _slot(raw[at : at + SLOT])
        incomplete += slot.seq == UNKNOWN  # a thread was writing when the process died
        if slot.seq not in (0, UNKNOWN):
            slots.append(slot)
    slots.sort(key=lambda s: s.seq)
    rows: dict[int, list[tuple[int, str, int]]] = {}
    for slot in slots:
        if slot.kind == MODULE:
            rows.setdefault(slot.module, []).append((slot.seq, _text(slot.text), slot.field[1]))
    found = [_event(slot, Modules(rows)) for slot in slots]
    cut = len(raw) < head[3] * SLOT
    return Recording(
        process=process,
        events=tuple(e for e in found if e is not None),
        dropped=max(0, last - len(slots)) + unrecorded,
        incomplete=incomplete,
        damage=f"{len(raw)} bytes of {head[3] * SLOT}" if cut else "",
    )


def read_folder(folder: Path) -> tuple[Recording, ...]:
    """All recordings of a run, by their start; files that cannot be read are left out, and files beyond 256."""
    found = [_read_or_none(file) for file in sorted(folder.glob("*.events"))[:FILES]]
    return tuple(sorted((r for r in found if r), key=lambda r: (r.process.started, r.process.pid)))


def _read_or_none(file: Path) -> Recording | None:
    try:
        return read(file)
    except OSError:
        return None
