"""The NVIDIA driver: hardware on the bus, kernel module, device nodes, NVML's versions, libcuda on the loader's path.

`init` and `cuda` stay not examined until `with_init`: they are asked of libcuda itself, in a child process.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cudnn_doctor.model.base import NOT_EXAMINED, Absent, Known, known
from cudnn_doctor.model.facts import CudaInit, DeviceNode, Driver, LibcudaCopy
from cudnn_doctor.probe.loader_path import Found, examine, find_on_path, release_of
from cudnn_doctor.probe.nvml_session import NvmlSession
from cudnn_doctor.probe.pci import probe_pci
from cudnn_doctor.probe.root_files import ROOT, at, entries, guard, linux_fact, on_linux, read

SONAME = "libcuda.so.1"
_VERSION = "/proc/driver/nvidia/version"
# GPU nodes, the control node, unified memory, mode setting; WSL's node; Tegra's, where no PCI device is.
_NODES = r"nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset)|dxg|nvmap|nvhost-ctrl-gpu"
_OPENED = ("nvidiactl", "nvidia-uvm")  # opening a GPU's own node would power it up
_WSL = "/usr/lib/wsl/"
# Where libcuda is put without the loader being told: WSL, GKE's device plugin, NixOS, older distributions.
_HIDDEN = ("/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib", "/usr/lib64/nvidia")


def probe_driver(
    root: Path = ROOT, environ: Mapping[str, str] | None = None, nvml: NvmlSession | None = None
) -> Driver:
    """All facts about the driver that need no CUDA; NVML's are not examined where no session is given."""
    environ = os.environ if environ is None else environ
    libcuda = _libcuda(root, environ) if on_linux() else ()
    return Driver(
        pci=probe_pci(root),
        nvml=NOT_EXAMINED if nvml is None else nvml.status,
        version=NOT_EXAMINED if nvml is None else nvml.version,
        cuda=NOT_EXAMINED,
        kernel_module=linux_fact(lambda: _module_release(root)),
        kernel_module_kind=linux_fact(lambda: _module_kind(root)),
        nouveau=linux_fact(lambda: _module_loaded(root, "nouveau")),
        device_nodes=linux_fact(lambda: _device_nodes(root)),
        uvm=linux_fact(lambda: _module_loaded(root, "nvidia_uvm")),
        libcuda=libcuda,
        libcuda_off_path=_libcuda_off_path(root, libcuda) if on_linux() else (),
        majors=linux_fact(lambda: _majors(root)),
    )


def with_libcuda(driver: Driver, environ: Mapping[str, str], root: Path = ROOT) -> Driver:
    """The driver with the libcuda that programs with other variables would find."""
    return msgspec.structs.replace(driver, libcuda=_libcuda(root, environ) if on_linux() else ())


def with_init(driver: Driver, init: Known[CudaInit] | Absent) -> Driver:
    """The driver with what a child heard from libcuda: how cuInit ended, and the CUDA that the driver serves."""
    return msgspec.structs.replace(driver, init=init, cuda=init.value.driver_cuda if isinstance(init, Known) else init)


def _module_release(root: Path) -> Known[str] | Absent:
    line = _module_line(root)
    if isinstance(line, Known):
        match = re.search(r"Kernel Module(?: for \S+)?\s+(\d{2,}(?:\.\d+)+)", line.value)
        if match:
            return known(match[1], _VERSION)
    path = "/sys/module/nvidia/version"
    try:
        return known(read(root, path).strip(), path)
    except FileNotFoundError:
        return Absent(reason="not-found", detail=f"neither {_VERSION} nor {path}: no nvidia kernel module is loaded")


def _module_kind(root: Path) -> Known[str] | Absent:
    line = _module_line(root)
    if isinstance(line, Absent):
        return line
    if "Kernel Module" not in line.value:
        return Absent(reason="error", detail=f"{_VERSION} is not understood: {line.value[:80]}")
    return known("open" if "Open Kernel Module" in line.value else "proprietary", _VERSION)


def _module_line(root: Path) -> Known[str] | Absent:
    return guard(lambda: known(read(root, _VERSION).partition("\n")[0], _VERSION))


def _module_loaded(root: Path, name: str) -> Known[bool] | Absent:
    if os.path.isdir(at(root, "/sys/module")):  # modules built into the kernel are here, too
        return known(os.path.isdir(at(root, f"/sys/module/{name}")), f"/sys/module/{name}")
    loaded = any(line.startswith(f"{name} ") for line in read(root, "/proc/modules").splitlines())
    return known(loaded, "/proc/modules")


def _majors(root: Path) -> Known[dict[str, int]] | Absent:
    """Numbers of the driver's character devices: {"nvidia": 195, "nvidia-uvm": 509}. Newer modules call the first
    "nvidia" or "nvidiactl" instead of "nvidia-frontend"."""
    listed, _, _ = read(root, "/proc/devices").partition("Block devices:")
    return known({n: int(m) for m, n in re.findall(r"^\s*(\d+) (nvidia\S*)$", listed, re.MULTILINE)}, "/proc/devices")


def _device_nodes(root: Path) -> Known[tuple[DeviceNode, ...]] | Absent:
    names = [name for name in entries(root, "/dev") if re.fullmatch(_NODES, name)]
    names.sort(key=lambda name: (not name[-1].isdigit(), len(name), name))  # nvidia2 before nvidia10, others behind
    return known(tuple(_node(root, name) for name in names), "/dev")


def _node(root: Path, name: str) -> DeviceNode:
    path = f"/dev/{name}"
    place = at(root, path)
    effective = os.access in os.supports_effective_ids
    readable, writable = (os.access(place, mode, effective_ids=effective) for mode in (os.R_OK, os.W_OK))
    refused = ""
    if name in _OPENED and readable and writable:
        try:
            os.close(os.open(place, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
        except OSError as error:
            refused = errno.errorcode.get(error.errno or 0, str(error.errno))
    kind, major, minor = _device(place)
    return DeviceNode(
        path=path, readable=readable, writable=writable, refused=refused, kind=kind, major=major, minor=minor
    )


def _device(place: str) -> tuple[str, int, int]:
    """Kind of a node and, of a device, its numbers."""
    try:
        found = os.stat(place)
    except OSError:
        return "", -1, -1
    for kind, is_one in (("char", stat.S_ISCHR), ("block", stat.S_ISBLK)):
        if is_one(found.st_mode):
            return kind, os.major(found.st_rdev), os.minor(found.st_rdev)
    return "folder" if stat.S_ISDIR(found.st_mode) else "file", -1, -1


def _libcuda(root: Path, environ: Mapping[str, str]) -> tuple[LibcudaCopy, ...]:
    return tuple(_copy(found) for found in find_on_path(SONAME, root, environ))


def _libcuda_off_path(root: Path, on_path: tuple[LibcudaCopy, ...]) -> tuple[LibcudaCopy, ...]:
    found: dict[str, LibcudaCopy] = {}
    for folder in (*_HIDDEN, *_compat_folders(root)):
        file = examine(f"{folder}/{SONAME}", "not searched by the loader", root)
        if file is not None and all(file.real_path != copy.real_path for copy in on_path):
            found.setdefault(file.real_path, _copy(file))
    return tuple(found.values())


def _compat_folders(root: Path) -> list[str]:
    """Where cuda-compat installs; NVIDIA's images put the library one folder deeper."""
    try:
        toolkits = [name for name in entries(root, "/usr/local") if name.startswith("cuda")]
    except OSError:
        return []
    return [f"/usr/local/{name}/compat{below}" for name in toolkits for below in ("", "/lib", "/lib.real")]


def _copy(found: Found) -> LibcudaCopy:
    paths = (found.path, found.real_path)
    return LibcudaCopy(
        path=found.path,
        real_path=found.real_path,
        version=Absent(reason="error", detail=found.defect) if found.defect else release_of(found.real_path),
        found_by=found.found_by,
        compat=any(re.search(r"/(cuda-)?compat(_\w+)?/", path) for path in paths),  # compat_orin: Tegra's
        wsl=any(path.startswith(_WSL) for path in paths),
    )
