"""Other processes that matter, by /proc alone: names, and whether an MPS control daemon serves this user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.probe.root_files import ROOT, at, entries, linux_fact, read

_MPS_PIPES = "/tmp/nvidia-mps"  # noqa: S108  CUDA's own default
_MPS_COMM = "nvidia-cuda-mps"  # "nvidia-cuda-mps-control" and "-server", cut by the kernel to 15 characters
_MPS_DAEMON = "nvidia-cuda-mps-control"
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO of linux/proc_ns.h


def command_name(root: Path, pid: int) -> Known[str] | Absent:
    """The kernel's name of a process, at most 15 characters."""
    path = f"/proc/{pid}/comm"
    return linux_fact(lambda: known(read(root, path).strip(), path))


def parent_of(root: Path, pid: int) -> int | None:
    """The parent's PID; None where it cannot be read, as for a process that has ended."""
    try:
        return int(read(root, f"/proc/{pid}/stat").rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def probe_mps(root: Path = ROOT, environ: Mapping[str, str] | None = None) -> Known[bool] | Absent:
    """Whether CUDA here would become a client of MPS: the control daemon's pipe is there and so is the daemon.

    A pipe without a visible daemon is stale, except in a PID namespace of its own (a container that shares the pipe
    folder with its host), where it cannot be known.
    """
    folder = (os.environ if environ is None else environ).get("CUDA_MPS_PIPE_DIRECTORY") or _MPS_PIPES
    return linux_fact(lambda: _mps(root, f"{folder}/control"))


def _mps(root: Path, pipe: str) -> Known[bool] | Absent:
    if not os.path.lexists(at(root, pipe)):
        return known(False, f"{pipe} does not exist")
    daemon = _find_daemon(root)
    if daemon:
        return known(True, f"{pipe} and /proc/{daemon}/comm")
    if os.stat(at(root, "/proc/self/ns/pid")).st_ino != _INITIAL_PID_NAMESPACE:
        return Absent(reason="no-permission", detail=f"{pipe} exists; its daemon may run outside this PID namespace")
    return known(False, f"{pipe} is there, but no {_MPS_DAEMON} runs")


def _find_daemon(root: Path) -> str:
    for pid in entries(root, "/proc"):
        if not pid.isdigit():
            continue
        try:
            if read(root, f"/proc/{pid}/comm").strip() == _MPS_COMM and _MPS_DAEMON in read(
                root, f"/proc/{pid}/cmdline"
            ):
                return pid
        except OSError:  # it ended meanwhile
            continue
    return ""
