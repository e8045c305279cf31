"""What `run` saw of one run of a program: the document run.jsonl, schema "cudnn-doctor/run/1".

One JSON object a line. The first holds the run's single facts; each further one is {"part": FIELD, "item": ...} and
adds an item to that field, so that a file that was cut still tells what stands before the cut.
Times are seconds after the program's start, memory is in bytes.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from cudnn_doctor.model.base import Base
from cudnn_doctor.model.errors import InputError
from cudnn_doctor.model.events import Recording

SCHEMA = "cudnn-doctor/run/1"
StreamKind = Literal["file", "terminal", "pipe", "other", "closed"]


class Ending(Base, frozen=True, kw_only=True):
    """How the program ended."""

    exit_code: int  # 128 + number where a signal ended it
    signal: str = ""  # its name
    core: bool = False
    seconds: float = 0.0


class SignalSeen(Base, frozen=True, kw_only=True):
    """A signal that came to the wrapper."""

    at: float
    signal: str
    sender: int = 0  # PID; 0: the kernel or a process outside this PID namespace
    sender_name: str = ""
    group: bool = False  # the whole process group got it, not the wrapper alone


class StreamText(Base, frozen=True, kw_only=True):
    """What the program wrote to descriptor 1, 2 or both."""

    descriptors: tuple[int, ...]
    kind: StreamKind
    head: str = ""
    lost: int = 0  # bytes between head and tail that were not kept
    tail: str = ""


class ProcessSeen(Base, frozen=True, kw_only=True):
    """The program or a descendant that lived long enough to be seen."""

    pid: int
    parent: int
    name: str
    started: float
    ended: float | None = None
    exit_code: int | None = None  # None: not known, or ended by a signal
    signal: str = ""
    libraries: tuple[str, ...] = ()  # paths of CUDA's libraries that it had mapped
    gpu_files: bool = False  # it holds the driver's device files
    peak_resident: int = 0


class GpuUser(Base, frozen=True, kw_only=True):
    """Memory of one process on one GPU, as NVML tells it."""

    gpu: int
    pid: int
    name: str = ""
    peak: int = 0
    last: int = 0
    ours: bool = False  # the program or its descendant


class GpuSeen(Base, frozen=True, kw_only=True):
    """One GPU over the run."""

    gpu: int
    name: str
    total: int
    used_before: int
    used_peak: int
    used_last: int
    busy_last: int = -1  # percent; -1: not told


class XidSeen(Base, frozen=True, kw_only=True):
    """An error report of NVIDIA's kernel driver during the run."""

    at: float
    gpu: int
    code: int
    pid: int = 0  # 0: NVML does not tell


class Counter(Base, frozen=True, kw_only=True):
    """A counter of the kernel's before and after the run."""

    name: str  # oom_kill of the machine, of the cgroup, ...
    before: int
    after: int
    source: str


class Stall(Base, frozen=True, kw_only=True):
    """A time without output, processor time or GPU work (`--stall`)."""

    at: float
    seconds: float
    gpu_idle: bool | None = None  # None: not known
    stacks: str = ""
    stacks_unknown: str = ""  # why there are none


class LogFile(Base, frozen=True, kw_only=True):
    """A library's own log, written because `run` asked for it."""

    name: str
    text: str


class RunRecording(Base, frozen=True, kw_only=True):
    """One run."""

    schema: Literal["cudnn-doctor/run/1"] = "cudnn-doctor/run/1"
    tool: str = ""
    taken_at: str = ""
    command: tuple[str, ...] = ()
    ending: Ending
    settings: dict[str, str] = msgspec.field(
        default_factory=dict
    )  # variables that were added to the program's environment
    environment: dict[str, str] = msgspec.field(default_factory=dict)  # allowed variables that were set
    limits: dict[str, str] = msgspec.field(default_factory=dict)
    trace: bool = False
    pid: int = 0
    started: int = 0  # CLOCK_MONOTONIC, ns: the recorder's times count from there
    lacks: tuple[str, ...] = ()  # what could not be observed, and why
    signals: tuple[SignalSeen, ...] = ()
    streams: tuple[StreamText, ...] = ()
    processes: tuple[ProcessSeen, ...] = ()
    gpus: tuple[GpuSeen, ...] = ()
    gpu_users: tuple[GpuUser, ...] = ()
    xids: tuple[XidSeen, ...] = ()
    counters: tuple[Counter, ...] = ()
    kernel: tuple[str, ...] = ()  # lines of the kernel log about these processes
    stalls: tuple[Stall, ...] = ()
    logs: tuple[LogFile, ...] = ()
    recorded: tuple[Recording, ...] = ()  # what the recorder saw inside


def encode_run(recording: RunRecording) -> bytes:
    """The document, a line each."""
    plain: dict[str, Any] = msgspec.to_builtins(recording)
    parts = {name: plain.pop(name) for name in _parts()}
    lines = [plain, *({"part": name, "item": item} for name, items in parts.items() for item in items)]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def decode_run(data: bytes, name: str) -> RunRecording:
    """The recording in a run.jsonl; a last line that was cut is left out.

    Raises:
        InputError: it is none, in words for the user.
    """
    first, *rest = data.splitlines()[: 1 << 20] or [b""]
    try:
        plain: dict[str, Any] = msgspec.json.decode(first, type=dict[str, Any])
        for number, line in enumerate(rest, 2):
            try:
                item = msgspec.json.decode(line, type=dict[str, Any])
            except msgspec.DecodeError:
                if number == len(rest) + 1:
                    break
                raise
            if item.get("part") in _parts():
                plain.setdefault(item["part"], []).append(item["item"])
        return msgspec.convert(plain, RunRecording)
    except (msgspec.MsgspecError, KeyError, AttributeError) as error:
        raise InputError(f"{name} is no recording of `cudnn-doctor run` ({SCHEMA}): {error}.") from error


def _parts() -> tuple[str, ...]:
    """The fields whose items have a line each."""
    return tuple(
        f.name for f in msgspec.structs.fields(RunRecording) if any(isinstance(a, type) for a in get_args(f.type)[:1])
        and issubclass(get_args(f.type)[0], Base)
    )  # fmt: skip
