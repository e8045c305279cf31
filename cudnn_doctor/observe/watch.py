"""Everything that is noted of a running program from outside, and the recording that it becomes.

Begins 50 ms after the program: what is over before then has nothing to be seen, and must not wait for our imports.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cudnn_doctor import __version__
from cudnn_doctor.model.run_recording import (
    Ending,
    GpuSeen,
    GpuUser,
    LogFile,
    RunRecording,
    SignalSeen,
    Stall,
    StreamText,
    XidSeen,
)
from cudnn_doctor.observe import counters, process
from cudnn_doctor.observe.gpu_watch import GpuWatch
from cudnn_doctor.observe.kernel_said import kernel_lines
from cudnn_doctor.observe.stacks import python_stacks
from cudnn_doctor.observe.streams import Stream
from cudnn_doctor.observe.tree import Tree, signal_name
from cudnn_doctor.observe.wrapper import Ended, Program
from cudnn_doctor.probe.environment import allowed_variables
from cudnn_doctor.probe.root_files import clean
from cudnn_doctor.recorder.read import read_folder

FIRST, LONGEST = 0.1, 2.0  # seconds between two looks: short ones at the start
LOG_LIMIT = 1 << 16  # bytes of a library's log that are kept, from its end
TRACE_LIMIT = 64 << 20  # bytes after which a log that `--trace` asked for is cut to nothing
_OLD_LOADER = "glibc before 2.35: of libraries that dlopen binds at once the recorder sees only what they find by dlsym"
_BUSY = 0.02  # processor seconds a second that count as work


class Watch:
    """The observer of one program."""

    def __init__(self, program: Program, gpu: GpuWatch, folder: str, *, stall: float = 0.0) -> None:
        """Args:
        folder: where libraries write logs that `run` asked for; "" for none.
        stall: seconds without any sign of life that are worth a note; 0 for never.
        """
        self._program, self._gpu, self._folder, self._stall = program, gpu, folder, stall
        self._before = counters.read_counters()
        self._limits = process.limits_of(program.pid)
        self.tree = Tree(program.pid, program.started)
        self._pause = FIRST
        self.stalls: list[Stall] = []
        self._alive = (0.0, -1, 0.0)  # since when nothing has moved, bytes of output, processor seconds
        self.tree.look()

    def look(self, seconds: float) -> float:
        """Notes what is new; answers after how many seconds to look again."""
        self.tree.look()
        self._gpu.listen()
        self._cut_logs()
        if self._stall:
            self._watch_stall(seconds)
        self._pause = min(LONGEST, self._pause * 1.5)
        return min(self._pause, self._stall / 4) if self._stall else self._pause

    def _cut_logs(self) -> None:
        """A file that grows without bound is cut: cuDNN's full log is 0.8 MB a training step."""
        for path in self._log_paths():
            if path.stat().st_size > TRACE_LIMIT:
                with path.open("r+b") as file:
                    file.truncate(0)

    def _log_paths(self) -> list[Path]:
        return sorted(p for p in Path(self._folder).glob("*.log") if p.is_file()) if self._folder else []

    # -- stalls

    def _watch_stall(self, seconds: float) -> None:
        written = sum(_written(stream) for stream in self._program.streams)
        worked = self.tree.processor_seconds()
        since, before, work = self._alive
        still = written == before and worked - work < _BUSY * max(self._stall / 4, seconds - since)
        if not still or self._gpu_busy():
            self._alive = (seconds, written, worked)
            self._told = False
        elif seconds - since >= self._stall and not self._told:
            self._told = True
            stacks, unknown = python_stacks(self.tree.gpu_pids()[0])
            self.stalls.append(
                Stall(at=round(since, 3), seconds=round(seconds - since, 1), gpu_idle=self._gpu_idle(), stacks=stacks,
                      stacks_unknown=unknown)
            )  # fmt: skip

    _told = False

    def _gpu_idle(self) -> bool | None:
        samples = [line["sample"] for line in self._gpu.lines if "sample" in line]
        return all(busy <= 0 for _, busy, _ in samples[-1]) if samples else None

    def _gpu_busy(self) -> bool:
        """Whether a GPU works for the program; where the driver does not tell whose work it is, for anybody."""
        samples = [line["sample"] for line in self._gpu.lines if "sample" in line]
        return bool(samples) and any(
            busy > 0 and self.tree.holds(pid) for _, _, users in samples[-1] for pid, _, busy in users
        )

    # -- the end

    def recording(
        self, command: Sequence[str], ended: Ended, settings: Mapping[str, str], lacks: Sequence[str], *, trace: bool
    ) -> RunRecording:
        """All of it. Call once, after the program's end."""
        self._gpu.end(last_word=True)
        processes = self.tree.seen()
        self.tree.close()
        missed = ["more processes than are followed: the later ones were not looked at"] if self.tree.missed else []
        told = [line["lack"] for line in self._gpu.lines if "lack" in line]
        unread = [
            f"output on descriptor {s.fds[0]} is no file, pipe or terminal: it was not read"
            for s in self._program.streams
            if s.kind == "other" and not _is_null(s.outer)
        ]
        recorded = read_folder(Path(self._folder)) if self._folder else ()
        blind = [_OLD_LOADER] if any(r.process.old_loader for r in recorded) else []
        return RunRecording(
            tool=f"cudnn-doctor {__version__}",
            taken_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            command=tuple(clean(word) for word in command),
            ending=Ending(
                exit_code=ended.code,
                signal=signal_name(ended.signal) if ended.signal else "",
                core=ended.core,
                seconds=round(ended.seconds, 3),
            ),
            settings={name: clean(value) for name, value in settings.items()},
            environment=allowed_variables(os.environ),
            limits=self._limits,
            trace=trace,
            pid=self._program.pid,
            started=int(self._program.started * 1e9),
            lacks=(*lacks, *told, *missed, *unread, *blind),
            signals=tuple(_signal(*seen) for seen in ended.signals),
            streams=tuple(_text(stream) for stream in self._program.streams),
            processes=processes,
            gpus=tuple(_gpus(self._gpu.lines)),
            gpu_users=tuple(_users(self._gpu.lines, self.tree)),
            xids=tuple(XidSeen(at=x["at"], gpu=x["gpu"], code=x["xid"]) for x in self._gpu.lines if "xid" in x),
            counters=counters.compare(self._before, counters.read_counters()),
            kernel=kernel_lines({p.pid for p in processes}),
            stalls=tuple(self.stalls),
            logs=tuple(_log(path) for path in self._log_paths()),
            recorded=recorded,
        )


def _written(stream: Stream) -> int:
    if stream.ring is not None:
        return stream.ring.total
    try:
        return os.fstat(stream.outer).st_size
    except OSError:
        return 0


def _is_null(fd: int) -> bool:
    try:
        return os.fstat(fd).st_rdev == os.stat(os.devnull).st_rdev
    except OSError:
        return True


def _signal(at: float, number: int, sender: int, group: bool) -> SignalSeen:
    stat = process.stat_of(sender) if sender else None
    return SignalSeen(at=round(at, 3), signal=signal_name(number), sender=sender, group=group,
                      sender_name=stat.name if stat else "")  # fmt: skip


def _text(stream: Stream) -> StreamText:
    head, lost, tail = stream.kept()
    if not lost:
        head, tail = head + tail, b""
    return StreamText(
        descriptors=tuple(stream.fds),
        kind=stream.kind,
        head=head.decode("utf-8", "replace"),
        lost=lost,
        tail=tail.decode("utf-8", "replace"),
    )


def _gpus(lines: list[dict[str, Any]]) -> list[GpuSeen]:
    samples = [line["sample"] for line in lines if "sample" in line]
    about: list[list[Any]] = next((line["gpus"] for line in lines if "gpus" in line), [])
    if not samples:
        return []
    return [
        GpuSeen(gpu=i, name=name, total=total, used_before=samples[0][i][0], used_peak=max(s[i][0] for s in samples),
                used_last=samples[-1][i][0], busy_last=samples[-1][i][1])
        for i, (name, total) in enumerate(about)
    ]  # fmt: skip


def _users(lines: list[dict[str, Any]], tree: Tree) -> list[GpuUser]:
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for line in lines:
        for gpu, (_, _, users) in enumerate(line.get("sample", ())):
            for pid, used, _ in users:
                peak, _ = found.get((gpu, pid), (0, 0))
                found[gpu, pid] = max(peak, used), used
    users_found = []
    for (gpu, pid), (peak, last) in found.items():
        stat = process.stat_of(pid)
        users_found.append(GpuUser(gpu=gpu, pid=pid, name=stat.name if stat else "", peak=peak, last=last,
                                   ours=tree.holds(pid)))  # fmt: skip
    return users_found


def _log(path: Path) -> LogFile:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_LIMIT))
        return LogFile(name=path.name, text=file.read(LOG_LIMIT).decode("utf-8", "replace"))


def remove(folder: str) -> None:
    """Takes our temporary files away."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
