"""NVIDIA display devices on the PCI bus, as sysfs shows them: there without any driver, and in most containers."""

from __future__ import annotations

import os
from pathlib import Path

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import PciDevice
from cudnn_doctor.probe.root_files import ROOT, absent, at, entries, linux_fact, read

_DEVICES = "/sys/bus/pci/devices"
_NVIDIA = 0x10DE
_DISPLAY = 0x03  # base class: VGA 0x0300, 3D controller 0x0302 (data centre cards), other 0x0380; NVSwitch is 0x0680


def probe_pci(root: Path = ROOT) -> Known[tuple[PciDevice, ...]] | Absent:
    """Every PCI function of vendor 0x10de and display class; none at all is an empty tuple, not an absence."""
    return linux_fact(lambda: _scan(root))


def _scan(root: Path) -> Known[tuple[PciDevice, ...]]:
    devices = (_display_device(root, address) for address in entries(root, _DEVICES))
    return known(tuple(d for d in devices if d is not None), _DEVICES)


def _display_device(root: Path, address: str) -> PciDevice | None:
    folder = f"{_DEVICES}/{address}"
    try:
        if int(read(root, f"{folder}/vendor"), 16) != _NVIDIA:
            return None
        if int(read(root, f"{folder}/class"), 16) >> 16 != _DISPLAY:
            return None
        device = read(root, f"{folder}/device").strip()
    except (OSError, ValueError):  # hot-unplugged between listing and reading
        return None
    return PciDevice(address=address, device=device, driver=_bound_driver(root, f"{folder}/driver"))


def _bound_driver(root: Path, link: str) -> Known[str] | Absent:
    try:
        return known(os.path.basename(os.readlink(at(root, link))), link)
    except FileNotFoundError:
        return Absent(reason="not-found", detail=f"{link}: no kernel driver is bound to the device")
    except OSError as error:
        error.filename = link
        return absent(error)
