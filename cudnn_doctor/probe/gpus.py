"""What NVML says about each GPU. Reads only: no clocks, modes or counters are touched and no CUDA context is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import Gpu, GpuProcess
from cudnn_doctor.probe.nvml import Nvml, absent_code, convert, text
from cudnn_doctor.probe.processes import command_name, parent_of
from cudnn_doctor.probe.root_files import ROOT

T = TypeVar("T")

# nvmlComputeMode_t
_COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
# nvmlClocksEventReasons (nvmlClocksThrottleReasons before 12.535), bits
_THROTTLE = {
    0x1: "gpu-idle",
    0x2: "applications-clocks",
    0x4: "sw-power-cap",
    0x8: "hw-slowdown",
    0x10: "sync-boost",
    0x20: "sw-thermal",
    0x40: "hw-thermal",
    0x80: "hw-power-brake",
    0x100: "display-clocks",
    0x200: "board-limit",
    0x400: "reliability",
}
# nvmlDeviceGpuRecoveryAction_t, answered to NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
_RECOVERY = {
    0: "none",
    1: "gpu-reset",
    2: "node-reboot",
    3: "drain-p2p",
    4: "drain-and-reset",
    5: "recover-imex-domain",
    6: "bus-reset",
    7: "system-reboot",
}
_UNCORRECTED, _VOLATILE = 1, 0  # nvmlMemoryErrorType_t, nvmlEccCounterType_t
_RETIREMENT_CAUSES = (0, 1)  # nvmlPageRetirementCause_t: several single-bit errors, a double-bit error
_TEMPERATURE_GPU = 0  # nvmlTemperatureSensors_t
_NOT_AVAILABLE = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE of a 64-bit field
_NAME_LENGTH = 256


def unreadable(index: int, why: Absent) -> Gpu:
    """A device of which nothing can be told."""
    fields: dict[str, Any] = {name: why for name in Gpu.__struct_fields__ if name != "index"}
    return Gpu(index=index, **fields)


def read_gpu(nvml: Nvml, index: int, root: Path = ROOT) -> Gpu:
    """One device; for the child process that has NVML open."""
    handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
    if isinstance(handle, Absent):
        return unreadable(index, handle)

    def ask(name: str, change: Callable[[Any], T], *args: Any) -> Known[T] | Absent:
        return convert(nvml.call(name, handle.value, *args), change)

    memory = nvml.call("nvmlDeviceGetMemoryInfo", handle.value)
    rows = nvml.call("nvmlDeviceGetRemappedRows", handle.value)
    mig = ask("nvmlDeviceGetMigMode", lambda modes: bool(modes[0]))
    return Gpu(
        index=index,
        name=ask("nvmlDeviceGetName", text),
        uuid=ask("nvmlDeviceGetUUID", text),
        pci=ask("nvmlDeviceGetPciInfo", lambda info: text(info.busId)),
        compute_capability=ask("nvmlDeviceGetCudaComputeCapability", lambda version: f"{version[0]}.{version[1]}"),
        memory_total=convert(memory, lambda m: int(m.total)),
        memory_used=convert(memory, lambda m: int(m.used)),
        memory_free=convert(memory, lambda m: int(m.free)),
        compute_mode=ask("nvmlDeviceGetComputeMode", lambda mode: _COMPUTE_MODES.get(int(mode), f"mode-{mode}")),
        mig=mig,
        mig_devices=_mig_devices(nvml, handle.value, mig),
        persistence=ask("nvmlDeviceGetPersistenceMode", bool),
        ecc=ask("nvmlDeviceGetEccMode", lambda modes: bool(modes[0])),
        ecc_uncorrected=ask("nvmlDeviceGetTotalEccErrors", int, _UNCORRECTED, _VOLATILE),
        retired_pages=_sum([ask("nvmlDeviceGetRetiredPages", len, cause) for cause in _RETIREMENT_CAUSES]),
        retirement_pending=ask("nvmlDeviceGetRetiredPagesPendingStatus", bool),
        remapped_rows=convert(rows, lambda r: int(r[1])),
        remap_pending=convert(rows, lambda r: bool(r[2])),
        remap_failed=convert(rows, lambda r: bool(r[3])),
        recovery_action=_recovery_action(nvml, handle.value),
        throttle=convert(
            _first(
                nvml, ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"), handle
            ),
            _throttle_words,
        ),
        temperature=ask("nvmlDeviceGetTemperature", int, _TEMPERATURE_GPU),
        display_active=ask("nvmlDeviceGetDisplayActive", bool),
        processes=_processes(nvml, handle, root),
    )


def _sum(facts: Sequence[Known[int] | Absent]) -> Known[int] | Absent:
    total = 0
    for fact in facts:
        if isinstance(fact, Absent):
            return fact
        total += fact.value
    return known(total, facts[0].source if isinstance(facts[0], Known) else "")


def _first(nvml: Nvml, names: Sequence[str], handle: Known[Any]) -> Known[Any] | Absent:
    """The answer of the first function that bindings and driver both have, else why the first has none."""
    answers: list[Known[Any] | Absent] = []
    for name in names:
        answers.append(nvml.call(name, handle.value))
        if isinstance(answers[-1], Known) or answers[-1].reason != "not-supported":
            return answers[-1]
    return answers[0]


def _throttle_words(bits: int) -> tuple[str, ...]:
    active = [1 << n for n in range(bits.bit_length()) if bits >> n & 1]
    return tuple(_THROTTLE.get(bit, f"reason-{bit:#x}") for bit in active)


def _recovery_action(nvml: Nvml, handle: Any) -> Known[str] | Absent:
    name = "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION"
    field = nvml.constant(name)
    if field is None:
        return Absent(reason="not-supported", detail=f"the installed nvidia-ml-py has no {name}")
    answer = nvml.call("nvmlDeviceGetFieldValues", handle, [field])
    if isinstance(answer, Known) and int(answer.value[0].nvmlReturn) != 0:
        return absent_code(f"nvmlDeviceGetFieldValues({name})", int(answer.value[0].nvmlReturn))
    return convert(answer, lambda values: _RECOVERY.get(int(values[0].value.uiVal), f"action-{values[0].value.uiVal}"))


def _mig_devices(nvml: Nvml, handle: Any, mig: Known[bool] | Absent) -> Known[tuple[str, ...]] | Absent:
    if isinstance(mig, Absent) or not mig.value:
        return convert(mig, lambda _: ())
    count = convert(nvml.call("nvmlDeviceGetMaxMigDeviceCount", handle), int)
    if isinstance(count, Absent):
        return count
    uuids: list[str] = []
    for slot in range(count.value):
        device = nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, slot)
        if isinstance(device, Absent):
            if device.reason == "not-found":  # an empty slot
                continue
            return device
        uuid = convert(nvml.call("nvmlDeviceGetUUID", device.value), text)
        if isinstance(uuid, Absent):
            return uuid
        uuids.append(uuid.value)
    return known(tuple(uuids), "nvmlDeviceGetMigDeviceHandleByIndex")


Kind = Literal["compute", "graphics", "mps"]
_PROCESS_CALLS: tuple[tuple[Kind, str], ...] = (
    ("compute", "nvmlDeviceGetComputeRunningProcesses"),
    ("mps", "nvmlDeviceGetMPSComputeRunningProcesses"),
    ("graphics", "nvmlDeviceGetGraphicsRunningProcesses"),
)


def _processes(nvml: Nvml, handle: Known[Any], root: Path) -> Known[tuple[GpuProcess, ...]] | Absent:
    """Processes on the device. An MPS client is listed by NVML as compute too, and many a process as compute and
    graphics with the same memory: such a one is told once, as mps before compute before graphics."""
    lists: dict[Kind, list[Any]] = {}
    for kind, name in _PROCESS_CALLS:
        answer = convert(_first(nvml, (name, f"{name}_v2"), handle), list)
        if isinstance(answer, Absent) and kind == "compute":
            return answer
        lists[kind] = answer.value if isinstance(answer, Known) else []
    seen: set[int] = set()
    found: list[GpuProcess] = []
    for kind in ("mps", "compute", "graphics"):
        # The pids of one list stay: with MIG a process may hold several slices, each with its memory.
        # Children of the doctor that work beside this one are no users of the GPU.
        fresh = [p for p in lists[kind] if int(p.pid) not in seen and parent_of(root, int(p.pid)) != os.getppid()]
        seen.update(int(p.pid) for p in fresh)
        found.extend(_process(nvml, p, kind, root) for p in fresh)
    return known(tuple(found), "NVML process lists")


def _process(nvml: Nvml, process: Any, kind: Kind, root: Path) -> GpuProcess:
    pid, memory = int(process.pid), process.usedGpuMemory
    return GpuProcess(
        pid=pid,
        name=_process_name(nvml, pid, root),
        memory=Absent(reason="not-supported", detail="NVML does not tell the memory of this process")
        if memory is None or int(memory) == _NOT_AVAILABLE
        else known(int(memory), "usedGpuMemory"),
        kind=kind,
    )


def _process_name(nvml: Nvml, pid: int, root: Path) -> Known[str] | Absent:
    name = convert(nvml.call("nvmlSystemGetProcessName", pid), text)
    if isinstance(name, Known) and name.value:
        return known(name.value[:_NAME_LENGTH], name.source)
    comm = command_name(root, pid)
    return comm if isinstance(comm, Known) or isinstance(name, Known) else name
