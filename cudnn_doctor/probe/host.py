"""The machine around the GPU: operating system, container, limits, MPS, environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from cudnn_doctor.live import open_files
from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import Host, Limits
from cudnn_doctor.probe.cgroups import UNLIMITED, probe_memory_limit
from cudnn_doctor.probe.environment import allowed_variables
from cudnn_doctor.probe.processes import probe_mps
from cudnn_doctor.probe.root_files import ROOT, at, clean, entries, guard, linux_fact, on_linux, read

_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")  # os-release(5)
# Names that container runtimes leave in the path of a process's cgroup.
_CGROUP_NAMES = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("garden", "garden"),
    ("lxc", "lxc"),
)


def probe_host(root: Path = ROOT, environ: Mapping[str, str] | None = None) -> Host:
    """All facts about the host; each is absent on its own where it cannot be read."""
    environ = os.environ if environ is None else environ
    return Host(
        os=guard(lambda: _os(root)),
        kernel=linux_fact(
            lambda: known(read(root, "/proc/sys/kernel/osrelease").strip(), "/proc/sys/kernel/osrelease")
        ),
        machine=os.uname().machine if hasattr(os, "uname") else environ.get("PROCESSOR_ARCHITECTURE", ""),
        libc=linux_fact(lambda: _libc(root)),
        container=linux_fact(lambda: _container(root, environ)),
        wsl=linux_fact(lambda: known("microsoft" in read(root, "/proc/version").lower(), "/proc/version")),
        limits=probe_limits(root),
        environment=allowed_variables(environ),
        mps=probe_mps(root, environ),
    )


def probe_limits(root: Path = ROOT) -> Limits:
    """Soft resource limits of this process, which its children inherit."""
    return Limits(
        stack=guard(lambda: _rlimit("RLIMIT_STACK")),
        memlock=guard(lambda: _rlimit("RLIMIT_MEMLOCK")),
        open_files=guard(_open_files),
        cgroup_memory=probe_memory_limit(root),
        address_space=guard(lambda: _rlimit("RLIMIT_AS")),
    )


def _open_files() -> Known[int] | Absent:
    read = _rlimit("RLIMIT_NOFILE")  # ours may have been raised meanwhile
    return known(open_files.given(), read.source) if isinstance(read, Known) else read


def _rlimit(name: str) -> Known[int] | Absent:
    try:
        import resource
    except ImportError:
        return Absent(reason="not-supported", detail=f"{sys.platform} has no resource limits")
    soft, _ = resource.getrlimit(getattr(resource, name))
    return known(UNLIMITED if soft == resource.RLIM_INFINITY else soft, f"getrlimit({name})")


def _os(root: Path) -> Known[str] | Absent:
    if on_linux():
        return _os_release(root)
    if sys.platform == "darwin":
        import platform

        return known(f"macOS {platform.mac_ver()[0]}", "platform.mac_ver")
    version: Callable[[], tuple[int, ...]] | None = getattr(sys, "getwindowsversion", None)
    if version is None:
        return Absent(reason="not-supported", detail=f"platform {sys.platform}")
    major, minor, build = version()[:3]
    return known(f"Windows {major}.{minor} build {build}", "sys.getwindowsversion")


def _os_release(root: Path) -> Known[str] | Absent:
    for path in _OS_RELEASE:
        try:
            text = read(root, path)
        except FileNotFoundError:
            continue
        fields = dict(re.findall(r"^([A-Z_]+)=[\"']?(.*?)[\"']?$", text, re.MULTILINE))
        name = fields.get("PRETTY_NAME") or f"{fields.get('NAME', '')} {fields.get('VERSION_ID', '')}".strip()
        return known(name, path) if name else Absent(reason="error", detail=f"{path} names no system")
    return Absent(reason="not-found", detail=f"neither {' nor '.join(_OS_RELEASE)}")


def _libc(root: Path) -> Known[str] | Absent:
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):  # musl knows no such name
        version = None
    if version:
        return known(version, "confstr(CS_GNU_LIBC_VERSION)")
    musl = [name for name in entries(root, "/lib") if name.startswith("ld-musl-")]
    if musl:
        return known("musl", f"/lib/{musl[0]}")
    return Absent(reason="not-found", detail="confstr has no CS_GNU_LIBC_VERSION and /lib no ld-musl-*")


def _container(root: Path, environ: Mapping[str, str]) -> Known[str] | Absent:
    """The innermost container runtime by the marks that it leaves: Kubernetes before the runtime below it."""
    if "KUBERNETES_SERVICE_HOST" in environ:
        return known("kubernetes", "KUBERNETES_SERVICE_HOST")
    for path, kind in (
        ("/run/.containerenv", "podman"),
        ("/.dockerenv", "docker"),
        ("/.singularity.d", "apptainer"),
    ):
        if os.path.exists(at(root, path)):
            return known(kind, path)
    manager = "/run/systemd/container"  # systemd's container interface: "lxc", "systemd-nspawn", ...; "wsl" is none
    if os.path.exists(at(root, manager)):
        kind = read(root, manager).strip()
        if kind and kind != "wsl":
            return known(kind, manager)
    if environ.get("container"):
        return known(clean(environ["container"]), "variable container")
    groups = guard(lambda: known(read(root, "/proc/1/cgroup"), "/proc/1/cgroup"))  # refused under hidepid
    for mark, kind in _CGROUP_NAMES:
        if isinstance(groups, Known) and mark in groups.value:
            return known(kind, groups.source)
    mounts = "/proc/self/mountinfo"  # containerd and enroot with a cgroup namespace leave no other mark
    if re.search(r"^\S+ \S+ \S+ \S+ / .* - overlay ", read(root, mounts), re.MULTILINE):
        return known("container", f"{mounts}: the root file system is an overlay")
    return known("none", "no mark of a container runtime")
