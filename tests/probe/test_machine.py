"""The machine probes together: on this machine as it is, on other platforms, and in time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.facts import Driver, Gpu, Host, Xid
from cudnn_doctor.probe.driver import probe_driver
from cudnn_doctor.probe.host import probe_host
from cudnn_doctor.probe.kernel_log import probe_xids
from cudnn_doctor.probe.nvml_session import NvmlSession, probe_gpus

HAS_GPU = os.path.exists("/dev/nvidiactl")
REPOSITORY = Path(__file__).parents[2]

ALL = """
import json, sys
import msgspec
before = set(sys.modules)
sys.path.insert(0, {repository!r})
{prelude}
from cudnn_doctor.probe.driver import probe_driver
from cudnn_doctor.probe.nvml_session import NvmlSession, probe_gpus
from cudnn_doctor.probe.host import probe_host
from cudnn_doctor.probe.kernel_log import probe_xids
with NvmlSession() as nvml:
    facts = [probe_driver(nvml=nvml), probe_gpus(nvml), probe_host(), probe_xids()]
loaded = sorted({{"pynvml", "subprocess", "dataclasses"}} & (sys.modules.keys() - before))
print(json.dumps({{"loaded": loaded, "facts": msgspec.to_builtins(facts)}}))
"""


def run(prelude: str = "") -> dict[str, object]:
    code = ALL.format(repository=str(REPOSITORY), prelude=prelude)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_this_machine() -> None:
    with NvmlSession() as nvml:
        driver, gpus = probe_driver(nvml=nvml), probe_gpus(nvml)
    host, xids = probe_host(), probe_xids()
    for fact, kind in ((driver, Driver), (host, Host)):
        assert msgspec.json.decode(msgspec.json.encode(fact), type=kind) == fact
    assert isinstance(host.os, Known)
    assert isinstance(host.kernel, Known)
    assert host.kernel.value == os.uname().release
    assert isinstance(host.limits.stack, Known)
    assert isinstance(xids, Known) or xids.reason == "no-permission"
    if HAS_GPU:
        assert isinstance(gpus, Known)
        assert isinstance(driver.pci, Known)
        assert len(gpus.value) >= 1
        for gpu in gpus.value:
            for name in ("name", "uuid", "pci", "compute_capability", "memory_total", "compute_mode", "processes"):
                assert isinstance(getattr(gpu, name), Known), name
            assert isinstance(gpu.memory_total, Known)
            assert isinstance(gpu.memory_used, Known)
            assert isinstance(gpu.memory_free, Known)
            assert gpu.memory_total.value == gpu.memory_used.value + gpu.memory_free.value
        assert isinstance(driver.version, Known)
        assert isinstance(driver.kernel_module, Known)
        assert driver.version.value == driver.kernel_module.value
        assert driver.libcuda[0].version == Known(
            value=driver.version.value, source=f"file name {driver.libcuda[0].real_path}"
        )
    else:
        why = "no libnvidia-ml.so.1 in LD_LIBRARY_PATH, ld.so.cache and the default folders"
        assert driver.nvml == driver.version == gpus == Absent(reason="not-found", detail=why)
        assert driver.device_nodes == Known(value=(), source="/dev")
        assert isinstance(driver.kernel_module, Absent)
        assert driver.kernel_module.reason == "not-found"
        assert driver.libcuda == ()


def test_nothing_of_cuda_is_loaded_into_this_process() -> None:
    code = ALL.format(repository=str(REPOSITORY), prelude="") + "print(open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    mapped = {line.split()[-1] for line in done.stdout.splitlines() if " /" in line}
    assert [path for path in mapped if "libcuda.so" in path or "libcudnn" in path or "libcudart" in path] == []


@pytest.mark.skipif(HAS_GPU, reason="a machine with an NVIDIA driver: NVML is asked in a child")
def test_nothing_heavy_is_imported_without_nvidia() -> None:
    assert run()["loaded"] == []


WITHOUT_POSIX = """
import os
import msgspec, pathlib, threading, ctypes  # what these import must still see the real platform
sys.platform = {platform!r}
for name in ("uname", "confstr", "sysconf"):
    delattr(os, name)
sys.modules["resource"] = None
"""


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_other_platforms_answer_that_it_is_not_supported(platform: str) -> None:
    raw = run(WITHOUT_POSIX.format(platform=platform))["facts"]
    driver, gpus, host, xids = msgspec.convert(
        raw, tuple[Driver, Known[tuple[Gpu, ...]] | Absent, Host, Known[tuple[Xid, ...]] | Absent]
    )
    linux_only = Absent(reason="not-supported", detail="read from /proc, /sys and /dev: Linux only")
    for fact in (
        *(driver.pci, driver.kernel_module, driver.kernel_module_kind, driver.nouveau, driver.device_nodes, driver.uvm),
        *(host.kernel, host.libc, host.container, host.wsl, host.mps, host.limits.cgroup_memory, xids),
    ):
        assert fact == linux_only
    assert driver.libcuda == driver.libcuda_off_path == ()
    no_limits = Absent(reason="not-supported", detail=f"{platform} has no resource limits")
    assert host.limits.stack == host.limits.memlock == host.limits.open_files == no_limits
    assert gpus == Absent(reason="not-supported", detail="NVML is asked in a child process: Linux only")
    if platform == "win32":
        assert host.os == Absent(reason="not-supported", detail="platform win32")  # no sys.getwindowsversion here
    else:
        assert isinstance(host.os, Known)
        assert host.os.value.startswith("macOS")
