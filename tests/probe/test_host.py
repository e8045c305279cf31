"""The host's facts from made file systems: systems, containers, WSL, limits, cgroups, MPS, environment."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import msgspec
import pytest

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import Host
from cudnn_doctor.probe.cgroups import probe_memory_limit
from cudnn_doctor.probe.environment import ALLOWED, allowed_variables
from cudnn_doctor.probe.host import probe_host, probe_limits
from cudnn_doctor.probe.processes import _INITIAL_PID_NAMESPACE, command_name, probe_mps
from tests.probe.machine import put

DISK = "25 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
OVERLAY = "812 730 0:57 / / rw,relatime master:300 - overlay overlay rw,lowerdir=/var/lib/x/1/fs\n"
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\n'
VERSION = "Linux version 6.18.44-fc-v973-gpu (builder@sandboxing) #1 SMP PREEMPT_DYNAMIC @0\n"
WSL = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1) #1 SMP\n"


def machine(root: Path) -> Path:
    return put(
        root,
        {
            "/etc/os-release": UBUNTU,
            "/proc/version": VERSION,
            "/proc/sys/kernel/osrelease": "6.18.44-fc-v973-gpu\n",
            "/proc/1/cgroup": "0::/init.scope\n",
            "/proc/self/mountinfo": DISK,
        },
    )


def test_plain_machine(tmp_path: Path) -> None:
    host = probe_host(machine(tmp_path), {"CUDA_VISIBLE_DEVICES": "0", "HOME": "/home/user"})
    assert host.os == known("Ubuntu 24.04.3 LTS", "/etc/os-release")
    assert host.kernel == known("6.18.44-fc-v973-gpu", "/proc/sys/kernel/osrelease")
    assert host.machine == os.uname().machine
    assert host.container == known("none", "no mark of a container runtime")
    assert host.wsl == known(False, "/proc/version")
    assert host.environment == {"CUDA_VISIBLE_DEVICES": "0"}
    assert host.mps == known(False, "/tmp/nvidia-mps/control does not exist")
    assert msgspec.json.decode(msgspec.json.encode(host), type=Host) == host


def test_empty_machine(tmp_path: Path) -> None:
    host = probe_host(tmp_path, {})
    assert host.os == Absent(reason="not-found", detail="neither /etc/os-release nor /usr/lib/os-release")
    no_file = "{}: No such file or directory"
    assert host.kernel == Absent(reason="not-found", detail=no_file.format("/proc/sys/kernel/osrelease"))
    assert host.wsl == Absent(reason="not-found", detail=no_file.format("/proc/version"))
    assert host.container == Absent(reason="not-found", detail=no_file.format("/proc/self/mountinfo"))
    assert host.limits.cgroup_memory == Absent(reason="not-found", detail=no_file.format("/proc/self/cgroup"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (UBUNTU, "Ubuntu 24.04.3 LTS"),
        ("NAME='Alpine Linux'\nVERSION_ID=3.20.3\n", "Alpine Linux 3.20.3"),
        ("PRETTY_NAME=Void\n", "Void"),
    ],
)
def test_os_release(tmp_path: Path, text: str, name: str) -> None:
    put(tmp_path, {"/usr/lib/os-release": text})
    assert probe_host(tmp_path, {}).os == known(name, "/usr/lib/os-release")


def test_os_release_without_name(tmp_path: Path) -> None:
    put(tmp_path, {"/etc/os-release": "ID=x\n"})
    assert probe_host(tmp_path, {}).os == Absent(reason="error", detail="/etc/os-release names no system")


@pytest.mark.parametrize(
    ("files", "environ", "kind", "source"),
    [
        ({"/.dockerenv": ""}, {}, "docker", "/.dockerenv"),
        ({"/run/.containerenv": ""}, {}, "podman", "/run/.containerenv"),
        ({"/.singularity.d/actions/run": ""}, {}, "apptainer", "/.singularity.d"),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes", "KUBERNETES_SERVICE_HOST"),
        ({"/run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn", "/run/systemd/container"),
        ({}, {"container": "lxc"}, "lxc", "variable container"),
        ({"/proc/1/cgroup": "4:memory:/docker/0123456789ab\n"}, {}, "docker", "/proc/1/cgroup"),
        ({"/proc/1/cgroup": "0::/kubepods.slice/docker-0.scope\n"}, {}, "kubernetes", "/proc/1/cgroup"),
        ({"/proc/1/cgroup": "0::/machine.slice/libpod-0.scope\n"}, {}, "podman", "/proc/1/cgroup"),
        (
            {"/proc/self/mountinfo": OVERLAY},
            {},
            "container",
            "/proc/self/mountinfo: the root file system is an overlay",
        ),
        (
            {"/proc/self/mountinfo": DISK + OVERLAY.replace(" / / ", " / /var/lib/docker/overlay2/x/merged ")},
            {},
            "none",
            "no mark of a container runtime",
        ),
        ({"/run/systemd/container": "wsl\n"}, {}, "none", "no mark of a container runtime"),
    ],
)
def test_container(tmp_path: Path, files: dict[str, str], environ: dict[str, str], kind: str, source: str) -> None:
    host = probe_host(put(machine(tmp_path), files), environ)
    assert host.container == known(kind, source)
    assert "KUBERNETES_SERVICE_HOST" not in host.environment


def test_musl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def confstr(name: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", confstr)
    put(tmp_path, {"/lib/libz.so.1": ""})
    why = Absent(reason="not-found", detail="confstr has no CS_GNU_LIBC_VERSION and /lib no ld-musl-*")
    assert probe_host(tmp_path, {}).libc == why
    put(tmp_path, {"/lib/ld-musl-x86_64.so.1": ""})
    assert probe_host(tmp_path, {}).libc == known("musl", "/lib/ld-musl-x86_64.so.1")


def test_glibc(tmp_path: Path) -> None:
    name = os.confstr("CS_GNU_LIBC_VERSION")
    assert name is not None
    assert probe_host(tmp_path, {}).libc == known(name, "confstr(CS_GNU_LIBC_VERSION)")
    assert name.startswith("glibc 2.")


def test_windows_names_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sys, "getwindowsversion", lambda: (10, 0, 26100, 2, ""), raising=False)
    monkeypatch.delattr(os, "uname")
    host = probe_host(tmp_path, {"PROCESSOR_ARCHITECTURE": "AMD64"})
    assert host.os == known("Windows 10.0 build 26100", "sys.getwindowsversion")
    assert host.machine == "AMD64"


def test_wsl(tmp_path: Path) -> None:
    assert probe_host(put(machine(tmp_path), {"/proc/version": WSL}), {}).wsl == known(True, "/proc/version")


def test_limits_of_this_process(tmp_path: Path) -> None:
    limits = probe_limits(tmp_path)
    for fact, name in (
        (limits.stack, "RLIMIT_STACK"),
        (limits.memlock, "RLIMIT_MEMLOCK"),
        (limits.open_files, "RLIMIT_NOFILE"),
    ):
        soft = resource.getrlimit(getattr(resource, name))[0]
        assert fact == known(-1 if soft == resource.RLIM_INFINITY else soft, f"getrlimit({name})")


def test_unlimited_is_minus_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert probe_limits(tmp_path).memlock == known(-1, "getrlimit(RLIMIT_MEMLOCK)")


# ---------------------------------------------------------------- cgroups

V2_MOUNT = "32 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
V1_MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
)
NO_LIMIT_V1 = "9223372036854771712\n"


def groups(root: Path, own: str, mounts: str, limits: dict[str, str]) -> Known[int] | Absent:
    put(root, {"/proc/self/cgroup": own, "/proc/self/mountinfo": mounts})
    put(root, {f"/sys/fs/cgroup{path}": text for path, text in limits.items()})
    return probe_memory_limit(root)


def test_v2_limit_of_an_ancestor(tmp_path: Path) -> None:
    limits = {"/process_api/memory.max": "137438953472\n", "/process_api/e233/memory.max": "max\n"}
    fact = groups(tmp_path, "0::/process_api/e233\n", V2_MOUNT, limits)
    assert fact == known(137438953472, "/sys/fs/cgroup/process_api/memory.max")


def test_v2_smallest_wins(tmp_path: Path) -> None:
    limits = {"/a/memory.max": "4096\n", "/a/b/memory.max": "8192\n"}
    assert groups(tmp_path, "0::/a/b\n", V2_MOUNT, limits) == known(4096, "/sys/fs/cgroup/a/memory.max")


def test_v2_without_limit(tmp_path: Path) -> None:
    fact = groups(tmp_path, "0::/a\n", V2_MOUNT, {"/a/memory.max": "max\n"})
    assert fact == known(-1, "/sys/fs/cgroup/a/memory.max")


def test_v2_at_the_root_group_has_no_file(tmp_path: Path) -> None:
    assert groups(tmp_path, "0::/\n", V2_MOUNT, {"/cgroup.procs": "1\n"}) == Absent(
        reason="not-found", detail="no memory controller is mounted for the group of this process"
    )


def test_v2_group_outside_the_namespace(tmp_path: Path) -> None:
    fact = groups(tmp_path, "0::/../../other\n", V2_MOUNT, {"/memory.max": "1048576\n"})
    assert fact == known(1048576, "/sys/fs/cgroup/memory.max")


def test_v1_beside_an_empty_v2(tmp_path: Path) -> None:
    fact = groups(
        tmp_path,
        "9:name=systemd:/\n4:cpuset,memory:/jobs/7\n0::/\n",
        V1_MOUNTS.format(root="/"),
        {"/memory/memory.limit_in_bytes": NO_LIMIT_V1, "/memory/jobs/7/memory.limit_in_bytes": "2147483648\n"},
    )
    assert fact == known(2147483648, "/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes")


def test_v1_unlimited(tmp_path: Path) -> None:
    limits = {"/memory/memory.limit_in_bytes": NO_LIMIT_V1}
    fact = groups(tmp_path, "4:memory:/\n", V1_MOUNTS.format(root="/"), limits)
    assert fact == known(-1, "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def test_v1_in_a_container_that_mounts_its_own_group(tmp_path: Path) -> None:
    fact = groups(
        tmp_path,
        "4:memory:/docker/0123\n",
        V1_MOUNTS.format(root="/docker/0123"),
        {"/memory/memory.limit_in_bytes": "536870912\n"},
    )
    assert fact == known(536870912, "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def test_limit_that_is_no_number(tmp_path: Path) -> None:
    fact = groups(tmp_path, "0::/a\n", V2_MOUNT, {"/a/memory.max": "many\n"})
    assert isinstance(fact, Absent)
    assert fact.reason == "error"
    assert fact.detail.startswith("ValueError: ")


# ---------------------------------------------------------------- MPS

PIPES = "/tmp/nvidia-mps"


def daemon(root: Path, pid: int, name: str) -> None:
    put(root, {f"/proc/{pid}/comm": f"{name[:15]}\n", f"/proc/{pid}/cmdline": f"{name}\0-d\0"})


def test_mps_daemon_serves(tmp_path: Path) -> None:
    put(tmp_path, {f"{PIPES}/control": ""})
    daemon(tmp_path, 12, "bash")
    daemon(tmp_path, 2634, "nvidia-cuda-mps-control")
    assert probe_mps(tmp_path, {}) == known(True, "/tmp/nvidia-mps/control and /proc/2634/comm")


def test_mps_pipe_in_the_folder_of_the_variable(tmp_path: Path) -> None:
    put(tmp_path, {f"{PIPES}/control": ""})
    daemon(tmp_path, 2634, "nvidia-cuda-mps-control")
    environ = {"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}
    assert probe_mps(tmp_path, environ) == known(False, "/run/mps/control does not exist")
    put(tmp_path, {"/run/mps/control": ""})
    assert probe_mps(tmp_path, environ) == known(True, "/run/mps/control and /proc/2634/comm")


def test_mps_server_alone_is_no_control_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {f"{PIPES}/control": "", "/proc/self/ns/pid": ""})
    daemon(tmp_path, 2635, "nvidia-cuda-mps-server")
    inode = (tmp_path / "proc/self/ns/pid").stat().st_ino
    monkeypatch.setattr("cudnn_doctor.probe.processes._INITIAL_PID_NAMESPACE", inode)
    stale = known(False, "/tmp/nvidia-mps/control is there, but no nvidia-cuda-mps-control runs")
    assert probe_mps(tmp_path, {}) == stale


def test_initial_pid_namespace_has_its_fixed_number() -> None:
    # `stat -L -c %i /proc/self/ns/pid` on a machine outside any container gives 4026531836.
    assert _INITIAL_PID_NAMESPACE == 4026531836


def test_mps_pipe_shared_with_another_pid_namespace_cannot_be_known(tmp_path: Path) -> None:
    put(tmp_path, {f"{PIPES}/control": "", "/proc/self/ns/pid": ""})
    assert probe_mps(tmp_path, {}) == Absent(
        reason="no-permission",
        detail="/tmp/nvidia-mps/control exists; its daemon may run outside this PID namespace",
    )


def test_command_name(tmp_path: Path) -> None:
    put(tmp_path, {"/proc/7/comm": "python3\n"})
    assert command_name(tmp_path, 7) == known("python3", "/proc/7/comm")
    assert command_name(tmp_path, 8) == Absent(reason="not-found", detail="/proc/8/comm: No such file or directory")


# ---------------------------------------------------------------- environment


def test_secrets_stay_out() -> None:
    names = (
        *("CUDNN_TOKEN", "NVIDIA_API_KEY", "NGC_API_KEY", "CUDA_PASSWORD", "TF_API_TOKEN", "XLA_SECRET", "LD_SECRET"),
        *("TORCH_HUB_TOKEN", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "MXNET_CUDNN_KEY", "JAX_COORDINATOR_TOKEN"),
    )
    assert allowed_variables({**dict.fromkeys(names, "secret"), "XLA_FLAGS": "--xla_gpu_autotune_level=0"}) == {
        "XLA_FLAGS": "--xla_gpu_autotune_level=0"
    }


def test_no_allowed_name_looks_like_a_secret() -> None:
    words = ("TOKEN", "KEY", "SECRET", "PASS", "CRED", "AUTH", "HOST")
    assert [name for name in ALLOWED if any(word in name for word in words)] == []


def test_empty_values_count_as_set_and_stray_bytes_do_not_break_json() -> None:
    found = allowed_variables({"CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": "/opt/\udcff"})
    assert found == {"CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": "/opt/\ufffd"}
    assert msgspec.json.encode(found)
