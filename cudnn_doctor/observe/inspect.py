"""A live process as facts, by /proc alone. Nothing is stopped, traced or sent a signal.

Every file is read by /proc/PID/root, so that a container is seen as it sees itself. A process may end, and another may
get its number, between any two reads: what was read is thrown away then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from cudnn_doctor.model.base import Absent, Fact, Known, known
from cudnn_doctor.model.inspection import GpuUse, InspectedProcess, MappedLibrary
from cudnn_doctor.observe import process
from cudnn_doctor.probe.cudnn_copies import exported_version
from cudnn_doctor.probe.root_files import absent

T = TypeVar("T")
Memory = Known[dict[int, tuple[GpuUse, ...]]] | Absent  # by PID
_NAMED = re.compile(r"(?P<name>lib[A-Za-z_-]+?)(?:-[0-9a-f]{8})?\.so(?:\.(?P<version>[\d.]+))?$")
_NAMESPACES = ("mnt", "pid", "net", "user", "ipc")
_UNREADABLE = Absent(reason="no-permission", detail="not readable as this user")
_DELETED = " (deleted)"
# Library -> the wheel that brings it; "_cu12" and the like follow up to CUDA 12.
_WHEELS = {"libcublas": "nvidia_cublas", "libcublasLt": "nvidia_cublas", "libcudart": "nvidia_cuda_runtime",
           "libnvrtc": "nvidia_cuda_nvrtc", "libnccl": "nvidia_nccl", "libnvJitLink": "nvidia_nvjitlink",
           "libcudnn": "nvidia_cudnn"}  # fmt: skip


class GoneError(Exception):
    """The process has ended, or its number is another's now."""


def inspect_process(pid: int, memory: Memory, proc: str = "/proc") -> InspectedProcess:
    """The facts of one process.

    Raises:
        GoneError: there is no such process, or it ended meanwhile.
    """
    stat = process.stat_of(pid, proc)
    if stat is None or stat.state in ("Z", "X"):
        raise GoneError(f"there is no process {pid}" if stat is None else f"process {pid} has ended")
    environment = _fact(lambda: _environment(pid, proc), f"{proc}/{pid}/environ")
    found = InspectedProcess(
        pid=pid,
        started=stat.started,
        name=stat.name,
        user=_fact(lambda: os.stat(f"{proc}/{pid}").st_uid, f"{proc}/{pid}"),
        threads=stat.threads,
        parent=stat.parent,
        seconds=_age(stat, proc),
        namespaces=_other_namespaces(pid, proc),
        libraries=_fact(lambda: _with_core(tuple(_libraries(pid, proc))), f"{proc}/{pid}/maps"),
        devices=_fact(lambda: process.gpu_files_of(pid, proc) or (), f"{proc}/{pid}/fd"),
        visible_devices=_variable(environment, "CUDA_VISIBLE_DEVICES"),
        mps=_mps(environment),
        gpu_memory=memory if isinstance(memory, Absent) else known(memory.value.get(pid, ()), memory.source),
        memory_limit=_fact(lambda: _memory_limit(pid, proc), f"{proc}/{pid}/cgroup"),
        limits=process.limits_of(pid, proc),
        forked_from=_fact(lambda: _forked_from(pid, stat.parent, proc), f"{proc}/{pid}/maps"),
    )
    again = process.stat_of(pid, proc)
    if again is None or again.started != stat.started or again.state in ("Z", "X"):
        raise GoneError(f"process {pid} ended while it was looked at")
    return found


def gpu_processes(memory: Memory, proc: str = "/proc") -> list[int]:
    """Every process that holds a GPU: by its open device files, by a mapped libcuda, or as NVML names it."""
    named = set(memory.value) if isinstance(memory, Known) else set()
    own = os.getpid()
    for entry in os.listdir(proc):
        if entry.isdigit() and int(entry) != own and _holds(int(entry), proc):
            named.add(int(entry))
    return sorted(named)


def _holds(pid: int, proc: str) -> bool:
    try:
        if process.gpu_files_of(pid, proc) is not None:
            return True
        return any("/libcuda.so" in path for path in process.libraries_of(pid, proc))
    except OSError:  # gone, or another user's
        return False


def environment_of(pid: int, proc: str = "/proc") -> dict[str, str]:
    """The environment with which a process was started.

    Raises:
        OSError: it is gone, or another user's.
    """
    return _environment(pid, proc)


def interpreter_of(pid: int, environ: dict[str, str], proc: str = "/proc") -> str:
    """The Python that a process was called as ("/opt/venv/bin/python"); "" where it is no Python."""
    with open(f"{proc}/{pid}/cmdline", "rb") as file:
        called = os.fsdecode(file.read(4096).partition(b"\0")[0])
    if not re.fullmatch(r"python[\d.]*", os.path.basename(called)):
        return ""
    folders = environ.get("PATH", "").split(os.pathsep) if "/" not in called else [""]
    return next((p for f in folders if os.path.isabs(p := os.path.join(f, called)) and os.path.exists(p)), "")


def _fact(answer: Callable[[], T], source: str) -> Fact[T]:
    try:
        return known(answer(), source)
    except PermissionError:
        return _UNREADABLE
    except (OSError, ValueError) as error:
        return absent(error)


def _environment(pid: int, proc: str) -> dict[str, str]:
    with open(f"{proc}/{pid}/environ", "rb") as file:
        pairs = (entry.partition(b"=") for entry in file.read(1 << 20).split(b"\0") if b"=" in entry)
        return {os.fsdecode(name): value.decode("utf-8", "replace") for name, _, value in pairs}


def _variable(environment: Fact[dict[str, str]], name: str) -> Fact[str]:
    if isinstance(environment, Absent):
        return environment
    if name not in environment.value:
        return Absent(reason="not-found", detail=f"{name} was not set")
    return known(environment.value[name], environment.source)


def _mps(environment: Fact[dict[str, str]]) -> Fact[bool]:
    if isinstance(environment, Absent):
        return environment
    folder = environment.value.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps"  # noqa: S108  CUDA's own default
    return known(os.path.exists(f"{folder}/control"), f"{folder}/control")


def _age(stat: process.Stat, proc: str) -> float:
    try:
        with open(f"{proc}/uptime", encoding="ascii") as file:
            up = float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return round(max(0.0, up - stat.started / process.TICKS), 2)


def _other_namespaces(pid: int, proc: str) -> tuple[str, ...]:
    found = []
    for kind in _NAMESPACES:
        try:
            if os.readlink(f"{proc}/{pid}/ns/{kind}") != os.readlink(f"{proc}/self/ns/{kind}"):
                found.append(kind)
        except OSError:  # noqa: PERF203  not readable: `libraries` says so
            continue
    return tuple(found)


def _libraries(pid: int, proc: str) -> Iterator[MappedLibrary]:
    for mapped in process.libraries_of(pid, proc):
        deleted = mapped.endswith(_DELETED)
        path = mapped.removesuffix(_DELETED)
        match = _NAMED.search(os.path.basename(path))
        if match:
            version = _version(pid, proc, path, match, deleted=deleted)
            yield MappedLibrary(name=match["name"], path=path, version=version, deleted=deleted)


def _with_core(libraries: tuple[MappedLibrary, ...]) -> tuple[MappedLibrary, ...]:
    """A deleted libcudnn, which says nothing of itself, has the version of a part that is mapped from its folder."""
    parts = (lib for lib in libraries if lib.name.startswith("libcudnn_") and isinstance(lib.version, Known))
    beside = {os.path.dirname(lib.path): lib.version for lib in parts}
    return tuple(
        msgspec.structs.replace(lib, version=beside.get(os.path.dirname(lib.path), lib.version))
        if lib.name == "libcudnn" and isinstance(lib.version, Absent)
        else lib
        for lib in libraries
    )


def _version(pid: int, proc: str, path: str, match: re.Match[str], *, deleted: bool) -> Fact[str]:
    """What the mapped file says of itself, else its full name. Of a deleted file only the mapping itself tells."""
    file = _mapping(pid, proc, path + _DELETED) if deleted else f"{proc}/{pid}/root{path}"
    if file and match["name"].startswith("libcudnn"):
        said = _cudnn_version(file, match["name"].removeprefix("libcudnn"), match["version"] or "")
        if said:
            return said
    real = "" if deleted else _real_name(pid, proc, path)
    full = _NAMED.search(real)
    version = (full["version"] if full else "") or match["version"] or ""
    if version.count(".") >= 1:
        return known(version, f"file name {real or os.path.basename(path)}")
    if not deleted and (wheel := _wheel_of(pid, proc, path, match["name"])):
        return known(wheel[1], wheel[0])
    return Absent(reason="not-found", detail="no full version in its name, none exported")


def _cudnn_version(file: str, part: str, major: str) -> Known[str] | None:
    """What a part of cuDNN says of itself; libcudnn itself says nothing, the graph library (8: ops_infer) beside it
    does."""
    if part:
        return exported_version(file, part)
    folder = os.path.dirname(file)
    if "/map_files/" in file:  # a deleted file: what lies beside its old path is another's
        return None
    for name, symbol in (("_graph", "_graph"), ("_ops_infer", "_ops")):
        said = exported_version(f"{folder}/libcudnn{name}.so.{major.partition('.')[0]}", symbol)
        if said:
            return said
    return None


def _wheel_of(pid: int, proc: str, path: str, name: str) -> tuple[str, str] | None:
    """The wheel's folder of facts and its version, for a library in site-packages/nvidia."""
    before, inside, _ = path.partition("/nvidia/")
    word = _WHEELS.get(name)
    if not inside or not word:
        return None
    try:
        entries = os.listdir(f"{proc}/{pid}/root{before}")
    except OSError:
        return None
    for entry in entries:
        match = re.fullmatch(rf"{word}(?:_cu\d+)?-([\d.]+)\.dist-info", entry)
        if match:
            return entry, match[1]
    return None


def _real_name(pid: int, proc: str, path: str) -> str:
    """The name behind links, libcudart.so.13 -> libcudart.so.13.0.96, as the process would follow them."""
    name = os.path.basename(path)
    for _ in range(4):
        try:
            target = os.readlink(f"{proc}/{pid}/root{os.path.dirname(path)}/{name}")
        except OSError:
            return name
        name = os.path.basename(target)
    return name


def _mapping(pid: int, proc: str, path: str) -> str:
    """The file behind a mapping whose name is gone, for root; "" for others."""
    try:
        for entry in os.listdir(f"{proc}/{pid}/map_files"):
            if os.readlink(f"{proc}/{pid}/map_files/{entry}") == path:
                return f"{proc}/{pid}/map_files/{entry}"
    except OSError:
        return ""
    return ""


def _memory_limit(pid: int, proc: str) -> int:
    """The smallest memory.max of its cgroup and those above, as this machine mounts them; -1 for none."""
    with open(f"{proc}/{pid}/cgroup", encoding="utf-8") as file:
        line = next((entry for entry in file.read().splitlines() if entry.startswith("0::")), "")
    smallest = -1
    folder = Path("/sys/fs/cgroup" + line.removeprefix("0::"))
    for group in (folder, *folder.parents):
        if not group.is_relative_to("/sys/fs/cgroup"):
            break
        if (group / "memory.max").exists():
            word = (group / "memory.max").read_text().strip()
            if word != "max" and (smallest < 0 or int(word) < smallest):
                smallest = int(word)
    return smallest


def _forked_from(pid: int, parent: int, proc: str) -> int:
    """The parent, where this process is its fork without an exec, made after CUDA was opened there: libcuda lies at the
    same address in both, and the driver's files have the same numbers."""
    ours = _cuda_at(pid, proc)
    if not ours or not parent:
        return 0
    try:
        if _cuda_at(parent, proc) != ours:
            return 0
        shared = _driver_files(pid, proc) & _driver_files(parent, proc)
    except PermissionError:
        return 0
    return parent if shared else 0


def _cuda_at(pid: int, proc: str) -> str:
    with open(f"{proc}/{pid}/maps", "rb") as file:
        for line in file.read(1 << 23).splitlines():
            if b"/libcuda.so" in line:
                return line.partition(b"-")[0].decode()
    return ""


def _driver_files(pid: int, proc: str) -> set[tuple[str, str]]:
    found = set()
    for fd in os.listdir(f"{proc}/{pid}/fd"):
        try:
            target = os.readlink(f"{proc}/{pid}/fd/{fd}")
        except OSError:  # closed meanwhile
            continue
        if target.startswith("/dev/nvidia"):
            found.add((fd, target))
    return found
