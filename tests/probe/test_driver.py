"""The driver's facts from a made file system: what is there, what is not, what may not be read."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest

from cudnn_doctor.model.base import NOT_EXAMINED, Absent, Known, known
from cudnn_doctor.model.facts import CudaInit, DeviceNode, Driver, LibcudaCopy, NvmlStatus, PciDevice
from cudnn_doctor.probe.driver import probe_driver, with_init
from cudnn_doctor.probe.nvml_session import NvmlFacts, NvmlSession
from tests.probe.machine import PROC_VERSION, elf, ld_cache, link, pci_device, put

LIB = "/usr/lib/x86_64-linux-gnu"


def h200_machine(root: Path) -> Path:
    pci_device(root, "0000:00:00.0", "0x8086", "0x0d57", "0x060000")
    pci_device(root, "0000:00:03.0", "0x1af4", "0x1041", "0x020000", "virtio-pci")
    pci_device(root, "0000:00:06.0", "0x10de", "0x2335", "0x030200", "nvidia")
    put(root, {f"/dev/{n}": "" for n in ("nvidia-uvm-tools", "nvidia0", "nvidia-uvm", "nvidiactl", "null")})
    put(root, {"/dev/nvidia-caps/nvidia-cap1": "", "/proc/driver/nvidia/version": PROC_VERSION})
    put(root, {"/sys/module/nvidia/version": "580.159.04\n", "/sys/module/nvidia_uvm/refcnt": "0\n"})
    put(root, {"/usr/local/nvidia/lib64/libcuda.so.580.159.04": elf()})
    link(root, "/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.159.04")
    return root


class Told(NvmlSession):
    """A session whose child has told its facts."""

    def __init__(self, status: Known[NvmlStatus] | Absent, version: Known[str] | Absent) -> None:
        self._thread, self._facts = None, NvmlFacts(status=status, version=version, gpus=NOT_EXAMINED)


SUCCESS = known(NvmlStatus(code=0, name="NVML_SUCCESS"), "nvmlInit")
RELEASE = known("580.159.04", "nvmlSystemGetDriverVersion")


def test_h200(tmp_path: Path) -> None:
    environ = {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64:/usr/local/nvidia/lib"}
    put(tmp_path, {"/proc/devices": "Character devices:\n195 nvidia\n\nBlock devices:\n"})
    driver = probe_driver(h200_machine(tmp_path), environ, Told(SUCCESS, RELEASE))
    gpu = PciDevice(
        address="0000:00:06.0", device="0x2335", driver=known("nvidia", "/sys/bus/pci/devices/0000:00:06.0/driver")
    )
    names = ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
    assert driver == Driver(
        pci=known((gpu,), "/sys/bus/pci/devices"),
        nvml=SUCCESS,
        version=RELEASE,
        cuda=NOT_EXAMINED,
        kernel_module=known("580.159.04", "/proc/driver/nvidia/version"),
        kernel_module_kind=known("open", "/proc/driver/nvidia/version"),
        nouveau=known(False, "/sys/module/nouveau"),
        device_nodes=known(
            tuple(DeviceNode(path=f"/dev/{n}", readable=True, writable=True, kind="file") for n in names), "/dev"
        ),
        majors=known({"nvidia": 195}, "/proc/devices"),
        uvm=known(True, "/sys/module/nvidia_uvm"),
        libcuda=(
            LibcudaCopy(
                path="/usr/local/nvidia/lib64/libcuda.so.1",
                real_path="/usr/local/nvidia/lib64/libcuda.so.580.159.04",
                version=known("580.159.04", "file name /usr/local/nvidia/lib64/libcuda.so.580.159.04"),
                found_by="LD_LIBRARY_PATH",
                compat=False,
                wsl=False,
            ),
        ),
        init=NOT_EXAMINED,
        libcuda_off_path=(),
    )
    assert msgspec.json.decode(msgspec.json.encode(driver), type=Driver) == driver


def test_empty_machine(tmp_path: Path) -> None:
    driver = probe_driver(tmp_path, {})
    assert driver.pci == Absent(reason="not-found", detail="/sys/bus/pci/devices: No such file or directory")
    assert driver.nvml == driver.version == driver.cuda == NOT_EXAMINED
    assert driver.kernel_module == Absent(
        reason="not-found",
        detail="neither /proc/driver/nvidia/version nor /sys/module/nvidia/version: no nvidia kernel module is loaded",
    )
    assert driver.kernel_module_kind == Absent(
        reason="not-found", detail="/proc/driver/nvidia/version: No such file or directory"
    )
    no_modules = Absent(reason="not-found", detail="/proc/modules: No such file or directory")
    assert driver.nouveau == driver.uvm == no_modules
    assert driver.device_nodes == Absent(reason="not-found", detail="/dev: No such file or directory")
    assert driver.libcuda == driver.libcuda_off_path == ()


@pytest.mark.parametrize(
    ("line", "release", "kind"),
    [
        (PROC_VERSION, "580.159.04", "open"),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n",
            "535.104.05",
            "proprietary",
        ),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.135  Fri Nov 8\n", "550.135", "proprietary"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module  570.86.15  Release Build\n", "570.86.15", "open"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.3.0  Release Build\n", "540.3.0", "open"),
    ],
)
def test_kernel_module_line(tmp_path: Path, line: str, release: str, kind: str) -> None:
    put(tmp_path, {"/proc/driver/nvidia/version": line})
    driver = probe_driver(tmp_path, {})
    assert driver.kernel_module == known(release, "/proc/driver/nvidia/version")
    assert driver.kernel_module_kind == known(kind, "/proc/driver/nvidia/version")


def test_kernel_module_from_sysfs_where_the_line_says_nothing(tmp_path: Path) -> None:
    put(tmp_path, {"/proc/driver/nvidia/version": "garbage\n", "/sys/module/nvidia/version": "470.256.02\n"})
    driver = probe_driver(tmp_path, {})
    assert driver.kernel_module == known("470.256.02", "/sys/module/nvidia/version")
    assert driver.kernel_module_kind == Absent(
        reason="error", detail="/proc/driver/nvidia/version is not understood: garbage"
    )


def test_nouveau_from_sysfs_and_from_proc_modules(tmp_path: Path) -> None:
    put(tmp_path / "a", {"/sys/module/nouveau/parameters/modeset": "-1\n"})
    put(tmp_path / "b", {"/proc/modules": "nouveau_extra 1 0 - Live 0x0\nnouveau 2400256 1 - Live 0x0\n"})
    put(tmp_path / "c", {"/proc/modules": "nouveau_extra 1 0 - Live 0x0\nvideo 1 1 nouveau, Live 0x0\n"})
    assert probe_driver(tmp_path / "a", {}).nouveau == known(True, "/sys/module/nouveau")
    assert probe_driver(tmp_path / "b", {}).nouveau == known(True, "/proc/modules")
    assert probe_driver(tmp_path / "c", {}).nouveau == known(False, "/proc/modules")


def test_pci_tells_displays_from_other_nvidia_functions_and_unbound_from_bound(tmp_path: Path) -> None:
    pci_device(tmp_path, "0000:01:00.0", "0x10de", "0x2684", "0x030000", "nouveau")
    pci_device(tmp_path, "0000:01:00.1", "0x10de", "0x22ba", "0x040300", "snd_hda_intel")
    pci_device(tmp_path, "0000:02:00.0", "0x10de", "0x22a3", "0x068000", "nvidia-nvswitch")
    pci_device(tmp_path, "0000:03:00.0", "0x10de", "0x2330", "0x030200")
    pci_device(tmp_path, "0000:04:00.0", "0x1002", "0x73bf", "0x030000", "amdgpu")
    put(tmp_path, {"/sys/bus/pci/devices/0000:05:00.0/vendor": "0x10de\n"})  # vanishes while it is read
    driver = probe_driver(tmp_path, {})
    assert isinstance(driver.pci, Known)
    assert [(d.address, d.driver) for d in driver.pci.value] == [
        ("0000:01:00.0", known("nouveau", "/sys/bus/pci/devices/0000:01:00.0/driver")),
        (
            "0000:03:00.0",
            Absent(
                reason="not-found",
                detail="/sys/bus/pci/devices/0000:03:00.0/driver: no kernel driver is bound to the device",
            ),
        ),
    ]


def test_no_nvidia_device_is_told_from_no_pci_bus(tmp_path: Path) -> None:
    pci_device(tmp_path, "0000:00:00.0", "0x8086", "0x0d57", "0x060000")
    assert probe_driver(tmp_path, {}).pci == known((), "/sys/bus/pci/devices")


def test_device_nodes_in_natural_order_with_wsl_and_tegra(tmp_path: Path) -> None:
    names = ("nvidia10", "nvidia2", "nvidia-modeset", "nvidia-fs0", "nvidia-vgpu1", "dxg", "nvmap", "nvhost-ctrl-gpu")
    put(tmp_path, {f"/dev/{name}": "" for name in (*names, "nvme0", "nvram")})
    nodes = probe_driver(tmp_path, {}).device_nodes
    assert isinstance(nodes, Known)
    assert [n.path for n in nodes.value] == [
        "/dev/nvidia2",
        "/dev/nvidia10",
        "/dev/dxg",
        "/dev/nvmap",
        "/dev/nvidia-modeset",
        "/dev/nvhost-ctrl-gpu",
    ]


def test_device_node_that_the_mode_allows_and_the_device_rules_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, {"/dev/nvidiactl": "", "/dev/nvidia0": "", "/dev/nvidia-uvm": ""})
    opened: list[str] = []

    def refuse(path: str, flags: int) -> int:
        opened.append(os.path.basename(path))
        raise OSError(errno.EPERM if path.endswith("ctl") else errno.ENXIO, "refused")

    monkeypatch.setattr(os, "open", refuse)
    nodes = probe_driver(tmp_path, {}).device_nodes
    monkeypatch.undo()
    assert isinstance(nodes, Known)
    assert nodes.value == (
        DeviceNode(path="/dev/nvidia0", readable=True, writable=True, kind="file"),
        DeviceNode(path="/dev/nvidiactl", readable=True, writable=True, refused="EPERM", kind="file"),
        DeviceNode(path="/dev/nvidia-uvm", readable=True, writable=True, refused="ENXIO", kind="file"),
    )
    assert opened == ["nvidiactl", "nvidia-uvm"]  # opening a GPU's own node would power it up


def test_device_node_that_the_mode_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"/dev/nvidiactl": ""})
    monkeypatch.setattr(os, "access", lambda path, mode, effective_ids: mode == os.R_OK)
    nodes = probe_driver(tmp_path, {}).device_nodes
    assert nodes == known((DeviceNode(path="/dev/nvidiactl", readable=True, writable=False, kind="file"),), "/dev")


def test_what_stands_in_for_a_device_node(tmp_path: Path) -> None:
    """A bind mount of /dev/null, which is what container engines mask with, has /dev/null's numbers."""
    listed = "Character devices:\n  1 mem\n195 nvidia\n509 nvidia-uvm\n\nBlock devices:\n  7 loop\n"
    put(tmp_path, {"/proc/devices": listed})
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia-uvm").symlink_to("/dev/null")
    (tmp_path / "dev/nvidiactl").mkdir()
    driver = probe_driver(tmp_path, {})
    assert driver.majors == known({"nvidia": 195, "nvidia-uvm": 509}, "/proc/devices")
    assert isinstance(driver.device_nodes, Known)
    found = {n.path: (n.kind, n.major, n.minor) for n in driver.device_nodes.value}
    assert found == {"/dev/nvidia-uvm": ("char", 1, 3), "/dev/nvidiactl": ("folder", -1, -1)}


# ---------------------------------------------------------------- libcuda


def test_libcuda_in_the_loaders_order_each_file_once(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            f"{LIB}/libcuda.so.535.104.05": elf(),
            "/usr/local/cuda-12.6/compat/libcuda.so.560.35.05": elf(),
            "/opt/odd/libcuda.so.1": elf(),
            "/etc/ld.so.cache": ld_cache(
                ("libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1"), ("libcuda.so.1", f"{LIB}/libcuda.so.1")
            ),
        },
    )
    link(tmp_path, "/usr/local/cuda", "cuda-12.6")
    link(tmp_path, "/usr/local/cuda-12.6/compat/libcuda.so.1", "libcuda.so.560.35.05")
    link(tmp_path, f"{LIB}/libcuda.so.1", "libcuda.so.535.104.05")
    link(tmp_path, "/lib", "usr/lib")
    driver = probe_driver(tmp_path, {"LD_LIBRARY_PATH": "/opt/odd:/usr/local/cuda-12.6/compat:$ORIGIN/../lib"})
    odd = Absent(reason="not-found", detail="the file name carries no driver release: libcuda.so.1")
    compat = "/usr/local/cuda-12.6/compat/libcuda.so.560.35.05"
    assert [(c.path, c.version, c.found_by, c.compat) for c in driver.libcuda] == [
        ("/opt/odd/libcuda.so.1", odd, "LD_LIBRARY_PATH", False),
        (
            "/usr/local/cuda-12.6/compat/libcuda.so.1",
            known("560.35.05", f"file name {compat}"),
            "LD_LIBRARY_PATH",
            True,
        ),
        (
            f"{LIB}/libcuda.so.1",
            known("535.104.05", f"file name {LIB}/libcuda.so.535.104.05"),
            "ld.so.cache",
            False,
        ),
    ]
    assert driver.libcuda_off_path == ()


def test_libcuda_of_other_architectures_is_passed_over(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "/opt/lib32/libcuda.so.1": elf(machine=3, bits=32),
            "/opt/arm/libcuda.so.1": elf(machine=183),
            f"{LIB}/libcuda.so.1": elf(),
        },
    )
    driver = probe_driver(tmp_path, {"LD_LIBRARY_PATH": "/opt/lib32;/opt/arm"})
    assert [c.path for c in driver.libcuda] == [f"{LIB}/libcuda.so.1"]
    assert driver.libcuda[0].found_by == "default folder"


def test_empty_libcuda_left_by_a_container_stops_the_loader_and_is_listed(tmp_path: Path) -> None:
    put(tmp_path, {f"{LIB}/libcuda.so.1": "", "/usr/lib/libcuda.so.1": elf()})
    driver = probe_driver(tmp_path, {})
    assert [(c.path, c.version) for c in driver.libcuda] == [
        (f"{LIB}/libcuda.so.1", Absent(reason="error", detail="no ELF file: 0 bytes")),
        (
            "/usr/lib/libcuda.so.1",
            Absent(reason="not-found", detail="the file name carries no driver release: libcuda.so.1"),
        ),
    ]


def test_libcuda_that_cannot_be_read_is_listed(tmp_path: Path) -> None:
    (tmp_path / "usr/lib64/libcuda.so.1").mkdir(parents=True)  # root may read every file, but no folder as a file
    (copy,) = probe_driver(tmp_path, {}).libcuda
    assert copy.version == Absent(reason="error", detail="not readable: Is a directory")


@pytest.mark.parametrize("folder", ["/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"])
def test_default_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setattr("cudnn_doctor.probe.loader_path._machine", lambda: "x86_64")
    put(tmp_path, {f"{folder}/libcuda.so.1": elf()})
    assert [(c.path, c.found_by) for c in probe_driver(tmp_path, {}).libcuda] == [
        (f"{folder}/libcuda.so.1", "default folder")
    ]


def test_relative_and_empty_entries_of_ld_library_path_are_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cudnn_doctor.probe.loader_path._machine", lambda: "x86_64")
    here = put(tmp_path / "work", {"/libcuda.so.1": elf(), "/sub/libcuda.so.1": elf()})
    monkeypatch.chdir(here)
    found = probe_driver(Path("/"), {"LD_LIBRARY_PATH": "sub::"}).libcuda
    assert [c.path for c in found[:2]] == [f"{here}/sub/libcuda.so.1", f"{here}/libcuda.so.1"]
    assert all(not c.path.startswith(str(here)) for c in probe_driver(Path("/"), {"LD_LIBRARY_PATH": ""}).libcuda)


@pytest.mark.parametrize("folder", ["/usr/local/nvidia/lib64", "/run/opengl-driver/lib", "/usr/lib64/nvidia"])
def test_folders_that_only_ld_library_path_or_an_rpath_reaches(tmp_path: Path, folder: str) -> None:
    put(tmp_path, {f"{folder}/libcuda.so.1": elf()})
    driver = probe_driver(tmp_path, {})
    assert driver.libcuda == ()
    assert [c.path for c in driver.libcuda_off_path] == [f"{folder}/libcuda.so.1"]


def test_wsl(tmp_path: Path) -> None:
    put(tmp_path, {"/usr/lib/wsl/lib/libcuda.so.1.1": elf(), "/dev/dxg": ""})
    link(tmp_path, "/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so.1.1")
    copy = LibcudaCopy(
        path="/usr/lib/wsl/lib/libcuda.so.1",
        real_path="/usr/lib/wsl/lib/libcuda.so.1.1",
        version=Absent(reason="not-found", detail="the file name carries no driver release: libcuda.so.1.1"),
        found_by="not searched by the loader",
        compat=False,
        wsl=True,
    )
    off_path = probe_driver(tmp_path, {})
    assert (off_path.libcuda, off_path.libcuda_off_path) == ((), (copy,))
    put(tmp_path, {"/etc/ld.so.cache": ld_cache(("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"))})
    on_path = probe_driver(tmp_path, {})
    assert (on_path.libcuda, on_path.libcuda_off_path) == (
        (msgspec.structs.replace(copy, found_by="ld.so.cache"),),
        (),
    )


def test_cuda_compat_that_is_not_on_the_path(tmp_path: Path) -> None:
    put(tmp_path, {"/usr/local/cuda-12.6/compat/lib.real/libcuda.so.560.35.05": elf(), f"{LIB}/libcuda.so.1": elf()})
    link(tmp_path, "/usr/local/cuda-12.6/compat/lib.real/libcuda.so.1", "libcuda.so.560.35.05")
    link(tmp_path, "/usr/local/cuda", "cuda-12.6")
    driver = probe_driver(tmp_path, {})
    assert [c.path for c in driver.libcuda] == [f"{LIB}/libcuda.so.1"]
    assert [(c.real_path, c.compat) for c in driver.libcuda_off_path] == [
        ("/usr/local/cuda-12.6/compat/lib.real/libcuda.so.560.35.05", True)
    ]


# ---------------------------------------------------------------- what children tell


def test_what_a_child_heard_from_libcuda(tmp_path: Path) -> None:
    driver = probe_driver(tmp_path, {})
    cuda = known("12.6", "cuDriverGetVersion")
    init = known(CudaInit(code=803, name="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", driver_cuda=cuda, library="x"), "child")
    assert with_init(driver, init) == msgspec.structs.replace(driver, init=init, cuda=cuda)
    crashed = Absent(reason="error", detail="SIGSEGV in cuInit")
    assert with_init(driver, crashed) == msgspec.structs.replace(driver, init=crashed, cuda=crashed)


def test_nvml_without_library(tmp_path: Path) -> None:
    driver = probe_driver(tmp_path, {}, NvmlSession(tmp_path, {}))
    detail = "no libnvidia-ml.so.1 in LD_LIBRARY_PATH, ld.so.cache and the default folders"
    assert driver.nvml == driver.version == Absent(reason="not-found", detail=detail)
    assert driver.cuda == NOT_EXAMINED
