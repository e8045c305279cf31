"""Builders for the probes' tests: a file system below a folder, and stand-ins for pynvml."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml

from cudnn_doctor.model.facts import Gpu
from cudnn_doctor.probe.gpus import read_gpu
from cudnn_doctor.probe.nvml import Nvml

MIB = 1 << 20
UUID = "GPU-00000000-1111-2222-3333-444444444444"

# As an H200 under driver 580.159.04 shows them.
PROC_VERSION = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  \n"
    "GCC version:  gcc version 15.3.0 (GCC) \n"
)


def put(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files below `root`, given by the machine's absolute paths."""
    for path, content in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def link(root: Path, path: str, target: str) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def elf(machine: int = 62, bits: int = 64) -> bytes:
    """The first 64 bytes of a little-endian shared object; 62 is x86-64."""
    return struct.pack("<4sBBB9xHH44x", b"\x7fELF", bits // 32, 1, 1, 3, machine)


def ld_cache(*libraries: tuple[str, str], flags: int = 0x0303) -> bytes:
    """An /etc/ld.so.cache in glibc's newer layout, entries in the given order."""
    header = 48 + 24 * len(libraries)
    strings, entries = b"", b""
    for soname, path in libraries:
        key = header + len(strings)
        strings += soname.encode() + b"\0"
        entries += struct.pack("=iIIIQ", flags, key, header + len(strings), 0, 0)
        strings += path.encode() + b"\0"
    start = struct.pack("=20sII20x", b"glibc-ld.so.cache1.1", len(libraries), len(strings))
    return start + entries + strings


def pci_device(root: Path, address: str, vendor: str, device: str, kind: str, driver: str = "") -> None:
    """One device below /sys/bus/pci/devices, its driver as the relative link that sysfs has."""
    folder = f"/sys/bus/pci/devices/{address}"
    put(root, {f"{folder}/vendor": f"{vendor}\n", f"{folder}/device": f"{device}\n", f"{folder}/class": f"{kind}\n"})
    if driver:
        link(root, f"{folder}/driver", f"../../../bus/pci/drivers/{driver}")


def error(code: int) -> Exception:
    """The exception of the real bindings for a status."""
    failure = pynvml.NVMLError(code)
    assert isinstance(failure, Exception)
    return failure


class FakeNvml:
    """Stands in for pynvml: `answers` maps a function's name to its value, to an exception, or to a callable.

    A name that is not in `answers` does not exist, as an attribute that old bindings lack.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = {"nvmlInit": None, "nvmlShutdown": None, **answers}
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)
        answer = self.answers[name]
        if name.startswith("NVML_"):
            return answer

        def function(*args: Any) -> Any:
            self.calls.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer(*args) if callable(answer) else answer

        return function


def field(value: int, status: int = 0) -> SimpleNamespace:
    """One answer of nvmlDeviceGetFieldValues."""
    return SimpleNamespace(nvmlReturn=status, valueType=1, value=SimpleNamespace(uiVal=value))


def process(pid: int, memory: int | None) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=memory, gpuInstanceId=0xFFFFFFFF, computeInstanceId=0xFFFFFFFF)


def h200(**changes: Any) -> dict[str, Any]:
    """What an idle H200 answers: the recording of 2026-11-30, nvidia-smi's reserved memory counted as used."""
    total, free = 150754820096, 150109880320
    return {
        "nvmlSystemGetDriverVersion": "580.159.04",
        "nvmlSystemGetNVMLVersion": "13.580.159.04",
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": lambda index: f"handle {index}",
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlDeviceGetUUID": UUID,
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId="00000000:00:06.0"),
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=total, free=free, used=total - free),
        "nvmlDeviceGetComputeMode": 0,
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetTotalEccErrors": 0,
        "nvmlDeviceGetRetiredPages": error(3),
        "nvmlDeviceGetRetiredPagesPendingStatus": error(3),
        "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
        "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION": 230,
        "nvmlDeviceGetFieldValues": lambda handle, fields: [field(0)],
        "nvmlDeviceGetCurrentClocksEventReasons": 1,
        "nvmlDeviceGetTemperature": 36,
        "nvmlDeviceGetDisplayActive": 0,
        "nvmlDeviceGetComputeRunningProcesses": [],
        "nvmlDeviceGetGraphicsRunningProcesses": [],
        "nvmlDeviceGetMPSComputeRunningProcesses": [],
        "nvmlSystemGetProcessName": error(6),
        **changes,
    }


def gpus(answers: dict[str, Any], root: Path = Path("/nonexistent")) -> tuple[Gpu, ...]:
    """All GPUs that a `FakeNvml` shows."""
    nvml = Nvml(FakeNvml(answers))
    return tuple(read_gpu(nvml, index, root) for index in range(answers["nvmlDeviceGetCount"]))


def facts(gpu: Gpu) -> dict[str, Any]:
    """A GPU's facts by name."""
    return {name: getattr(gpu, name) for name in Gpu.__struct_fields__ if name != "index"}
