"""Counters of the kernel that say who was killed for memory: read before and after a run."""

from __future__ import annotations

from pathlib import Path

from cudnn_doctor.model.run_recording import Counter
from cudnn_doctor.probe.cgroups import group_files
from cudnn_doctor.probe.root_files import ROOT, read

Values = dict[str, tuple[str, int]]  # file and field -> name, value
_OOM = "oom_kill"


def read_counters(root: Path = ROOT) -> Values:
    """What can be read: the machine's counter, and those of this process's cgroup and its ancestors."""
    values: Values = {}
    files = [("/proc/vmstat", "machine"), *((path, "cgroup") for path in _cgroup_files(root))]
    for path, where in files:
        try:
            lines = read(root, path).splitlines()
        except OSError:
            continue
        for line in lines:
            field, _, value = line.partition(" ")
            if field == _OOM and value.strip().isdigit():
                values[path] = (f"{where} {_OOM}", int(value))
    return values


def compare(before: Values, after: Values) -> tuple[Counter, ...]:
    """Each counter that was there both times."""
    return tuple(
        Counter(name=name, before=before[path][1], after=value, source=path)
        for path, (name, value) in after.items()
        if path in before
    )


def _cgroup_files(root: Path) -> list[str]:
    try:
        return list(group_files(root, v2="memory.events", v1="memory.oom_control"))
    except OSError:
        return []
