"""The machine that a question is about; "" stands for what was not said or not read."""

from __future__ import annotations

from typing import Literal

import msgspec

from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.facts import Gpu, Snapshot

System = Literal["linux", "windows", "wsl", "macos"]
SYSTEMS: tuple[System, ...] = ("linux", "windows", "wsl", "macos")
MACHINES = ("x86_64", "aarch64")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the machine. `serves` is the CUDA that the driver itself reports, `compat` the release of a
    cuda-compat libcuda in use."""

    python: str = ""
    system: System = "linux"
    machine: str = "x86_64"
    gpu: str = ""  # a name
    capabilities: tuple[str, ...] = ()  # "8.6"; of all GPUs that must be served
    driver: str = ""
    serves: str = ""
    compat: str = ""

    @property
    def wheels(self) -> Literal["linux", "windows"]:
        """The system whose wheels pip takes here."""
        return "windows" if self.system == "windows" else "linux"

    @property
    def driver_system(self) -> Literal["linux", "windows"]:
        """The system whose driver numbers count: in WSL the driver is that of Windows."""
        return "windows" if self.system in ("windows", "wsl") else "linux"


def target_of(snapshot: Snapshot) -> Target:
    """The machine of a snapshot, as far as it was read."""
    driver = snapshot.driver
    gpus: tuple[Gpu, ...] = value_or(snapshot.gpus, ())
    capabilities = dict.fromkeys(g.compute_capability.value for g in gpus if isinstance(g.compute_capability, Known))
    names = [g.name.value for g in gpus if isinstance(g.name, Known)]
    init = driver.init.value if isinstance(driver.init, Known) else None
    own = init.driver_cuda if init and isinstance(init.driver_cuda, Known) else driver.cuda
    first = driver.libcuda[0] if driver.libcuda else None
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(snapshot.host.machine.lower(), snapshot.host.machine)
    return Target(
        python=".".join(value_or(snapshot.patient.python_version, "").split(".")[:2]),
        system=_system(value_or(snapshot.host.os, ""), wsl=value_or(snapshot.host.wsl, False)),
        machine=machine,
        gpu=names[0] if names else "",
        capabilities=tuple(capabilities),
        driver=value_or(driver.version, ""),
        serves=value_or(own, ""),
        compat=value_or(first.version, "") if first and first.compat else "",
    )


def _system(name: str, *, wsl: bool) -> System:
    if wsl:
        return "wsl"
    return "windows" if "Windows" in name else "macos" if name.startswith(("macOS", "Darwin")) else "linux"
