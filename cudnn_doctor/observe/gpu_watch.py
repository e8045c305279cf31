"""A process that asks NVML beside the program: error reports of the kernel driver (Xid) as they come, memory of each
GPU and process once a second. It makes no CUDA context and needs no root.

A process of its own because nvmlInit opens libcuda by the loader's path and calls into it: one that crashes or hangs
takes this process along, not the wrapper.
"""

from __future__ import annotations

import os
import select
import time

from cudnn_doctor.observe.relay import alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PERIOD = 1.0  # seconds between two samples
_WAIT_MS = 200  # for an event, and so for the wrapper's word
LAST_WORD = 0.6  # seconds that the wrapper waits for what came at the very end
_XID = 8  # nvmlEventTypeXidCriticalError


class GpuWatch:
    """The watching process, as the wrapper sees it."""

    def __init__(self, started: float) -> None:
        """Forks it where there is a driver. `started`: `time.monotonic` of the program's start."""
        self.lines: list[dict[str, Any]] = []
        self.pid = 0
        self._rest = b""
        if not os.path.exists("/dev/nvidiactl"):
            return
        read, write = os.pipe()
        control_r, self._control = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            try:
                alone({write, control_r})
                _watch(write, control_r, started)
            finally:
                os._exit(0)
        os.close(write)
        os.close(control_r)
        os.set_blocking(read, False)
        self._read = read

    def listen(self) -> None:
        """Takes what it has said until now."""
        import json

        while self.pid:
            try:
                data = os.read(self._read, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            self.lines += [json.loads(line) for line in lines]
            del self.lines[1:-4096]  # the first names the GPUs

    def end(self, *, last_word: bool) -> None:
        """Ends it; with `last_word` it may first say what came in the last moment."""
        if not self.pid:
            return
        os.close(self._control)
        if last_word:
            until = time.monotonic() + LAST_WORD
            while time.monotonic() < until and not self._finished():
                select.select([self._read], [], [], 0.05)
                self.listen()
        if not self._finished():
            os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        self.listen()
        os.close(self._read)
        self.pid = 0

    def _finished(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _watch(out: int, control: int, started: float) -> None:
    import json

    def say(line: dict[str, Any]) -> None:
        try:
            os.write(out, json.dumps({"at": round(time.monotonic() - started, 3), **line}).encode() + b"\n")
        except OSError:  # nobody reads: the wrapper is stopped, or gone
            return

    os.set_blocking(out, False)
    try:
        import pynvml

        pynvml.nvmlInit()
        _follow(pynvml, say, control)
    except Exception as error:  # whatever a broken driver answers: said, and no more is watched
        say({"lack": f"NVML: {error}"})


def _follow(nvml: Any, say: Any, control: int) -> None:
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    say({"gpus": [_about(nvml, h) for h in handles]})
    events = nvml.nvmlEventSetCreate()
    indices = {}
    for i, handle in enumerate(handles):
        indices[_uuid(nvml, handle)] = i
        try:
            nvml.nvmlDeviceRegisterEvents(handle, _XID, events)
        except nvml.NVMLError as error:  # WSL, vGPU, a driver without
            say({"lack": f"Xid events of GPU {i}: {error}"})
    due, last = 0.0, None
    work = [_Work(nvml, handle) for handle in handles]
    while True:
        over = bool(select.select([control], [], [], 0)[0])
        try:
            event = nvml.nvmlEventSetWait_v2(events, _WAIT_MS)
            say({"xid": int(event.eventData), "gpu": indices.get(_uuid(nvml, event.device), -1)})
            continue
        except nvml.NVMLError_Timeout:
            pass
        except nvml.NVMLError:  # no GPU could be registered
            time.sleep(_WAIT_MS / 1000)
        if over:
            return
        if time.monotonic() >= due:
            due = time.monotonic() + PERIOD
            sample = [_sample(nvml, handle, w) for handle, w in zip(handles, work, strict=True)]
            if sample != last:
                say({"sample": sample})
                last = sample


def _uuid(nvml: Any, handle: Any) -> str:
    return str(nvml.nvmlDeviceGetUUID(handle))


def _about(nvml: Any, handle: Any) -> list[Any]:
    name = nvml.nvmlDeviceGetName(handle)
    return [name.decode() if isinstance(name, bytes) else name, int(nvml.nvmlDeviceGetMemoryInfo(handle).total)]


class _Work:
    """How busy each process has kept a GPU since it was last asked."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._until = 0  # microseconds, by the driver's clock

    def ask(self) -> dict[int, int] | None:
        """Percent by PID; None where the driver does not tell."""
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(self._handle, self._until)
        except self._nvml.NVMLError_NotFound:  # nobody worked
            return {}
        except self._nvml.NVMLError:  # MIG, vGPU
            return None
        self._until = max([self._until, *(int(s.timeStamp) for s in samples)])
        return {int(s.pid): int(s.smUtil) for s in samples if s.pid}


def _sample(nvml: Any, handle: Any, work: _Work) -> list[Any]:
    """Memory in use, busy percent (-1: not told), and of each compute process its PID, memory, and busy percent."""
    try:
        busy = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except nvml.NVMLError:  # MIG
        busy = -1
    try:
        busy_by = work.ask()
        users = [
            [int(p.pid), int(p.usedGpuMemory or 0), busy if busy_by is None else busy_by.get(int(p.pid), 0)]
            for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        ]
    except nvml.NVMLError:
        users = []
    return [int(nvml.nvmlDeviceGetMemoryInfo(handle).used), busy, users]
