"""What of a report is compared between nodes: each section as leaves, a name and a text, without values that differ
from card to card or from minute to minute (UUIDs, temperatures, memory in use, process ids, times, where it was read).

A fact that nobody looked at is no leaf and no difference: its name stands in `unknown`. A fact that could not be read
is a leaf with the reason, because on a healthy fleet it can be read everywhere or nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from cudnn_doctor.model import facts as f
from cudnn_doctor.model.base import Absent, Fact, Known

JOINT = ": "
NODE = "<node>"  # stands for the name of the node that wrote a report


class Canonical(NamedTuple):
    """One section of one report."""

    leaves: dict[str, str]
    unknown: tuple[str, ...] = ()  # beginnings of leaf names that nobody looked at
    compared: bool = True  # False: the report holds nothing to compare here


# Fields that are left out, by type.
LEFT_OUT: dict[type, frozenset[str]] = {
    f.Gpu: frozenset(
        {
            "index",
            "uuid",
            "pci",
            "memory_used",
            "memory_free",
            "mig_devices",
            "ecc_uncorrected",
            "retired_pages",
            "remapped_rows",
            "throttle",
            "temperature",
            "processes",
        }
    ),
    f.Driver: frozenset({"pci", "device_nodes"}),
    f.NvmlStatus: frozenset({"message"}),
    f.CudnnCopy: frozenset({"path", "directory", "version_readings", "real_path", "found_by"}),
    f.SubLibrary: frozenset({"name", "path"}),
    f.Resolution: frozenset({"consumer", "wanted", "path", "shadowed", "steps"}),
    f.Toolkit: frozenset({"path", "real_path"}),
    f.CudaLibrary: frozenset({"name", "major", "real_path", "path"}),
    f.Framework: frozenset({"name", "location", "requires"}),
    f.Host: frozenset({"environment", "limits"}),
    f.TargetEnv: frozenset({"chosen_by"}),
}
# What names an element of a list; others go by their place in it.
NAMED: dict[type, Callable[[Any], str]] = {
    f.CudnnCopy: lambda c: str(c.real_path),
    f.SubLibrary: lambda s: str(s.name),
    f.Resolution: lambda r: f"{r.consumer} loads {r.wanted}",
    f.Toolkit: lambda t: str(t.real_path),
    f.CudaLibrary: lambda c: str(c.real_path),
    f.Framework: lambda w: str(w.name),
}
# Variables that pick devices: which ones differs from rank to rank, how many does not.
PICKING = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "GPU_DEVICE_ORDINAL")


def flat(value: Any) -> Canonical:
    """Any value of a snapshot as leaves."""
    leaves: dict[str, str] = {}
    unknown: list[str] = []
    _flatten(value, "", leaves, unknown)
    return Canonical(leaves, tuple(sorted(unknown)))


def _flatten(value: Any, name: str, leaves: dict[str, str], unknown: list[str]) -> None:
    if isinstance(value, Known):
        _flatten(value.value, name, leaves, unknown)
    elif isinstance(value, Absent):
        if value.reason == "not-examined":
            unknown.append(name)
        else:
            leaves[name] = f"absent ({value.reason})"
    elif isinstance(value, msgspec.Struct):
        for field in _fields(type(value)):
            _flatten(getattr(value, field), f"{name}{JOINT}{field}" if name else field, leaves, unknown)
    elif isinstance(value, dict):
        for key in value:
            _flatten(value[key], f"{name}{JOINT}{key}" if name else str(key), leaves, unknown)
    elif isinstance(value, (tuple, list)):
        _flatten_list(value, name, leaves, unknown)
    else:
        leaves[name] = ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _flatten_list(values: Sequence[Any], name: str, leaves: dict[str, str], unknown: list[str]) -> None:
    if not values or not isinstance(values[0], msgspec.Struct):
        leaves[name or "all"] = ", ".join(map(str, values)) or "none"
        return
    key = NAMED.get(type(values[0]))
    seen: dict[str, int] = {}
    for place, element in enumerate(values, 1):
        label = key(element) if key else str(place)
        seen[label] = seen.get(label, 0) + 1
        label += f" ({seen[label]})" if seen[label] > 1 else ""
        _flatten(element, f"{name}{JOINT}{label}" if name else label, leaves, unknown)


@cache
def _fields(kind: type) -> tuple[str, ...]:
    left_out = LEFT_OUT.get(kind, frozenset())
    return tuple(name for name in kind.__struct_fields__ if name not in left_out)  # type: ignore[attr-defined]  # a Struct


# ---------------------------------------------------------------- sections that need more than their own leaves


def cudnn(copies: tuple[f.CudnnCopy, ...], resolutions: tuple[f.Resolution, ...]) -> Canonical:
    """The copies, and which one everybody loads."""
    return flat({"": copies, "who loads it": tuple(r for r in resolutions if r.wanted.startswith("libcudnn"))})


def cuda(found: f.Cuda, resolutions: tuple[f.Resolution, ...]) -> Canonical:
    """Toolkits, libraries, and which ones cuDNN loads; libcuda belongs to the driver."""
    parts = ("libcublas", "libnvrtc", "libcudart")
    return flat({"": found, "who loads it": tuple(r for r in resolutions if r.wanted.startswith(parts))})


def packages(found: Fact[tuple[f.Package, ...]], overwrites: tuple[f.Overwrite, ...], env: f.TargetEnv) -> Canonical:
    """Name and version; the folder where it lies outside the environment."""
    if isinstance(found, Absent):
        return flat({"packages": found})
    leaves: dict[str, str] = {}
    for package in found.value:
        inside = package.location.startswith(env.prefix.rstrip("/") + "/")
        text = package.version if inside else f"{package.version} in {package.location}"
        leaves[package.name] = f"{leaves[package.name]}, {text}" if package.name in leaves else text
    for o in overwrites:
        on_disk = o.on_disk.value if isinstance(o.on_disk, Known) else f"absent ({o.on_disk.reason})"
        leaves[f"claimed by several{JOINT}{o.directory}"] = f"{', '.join(o.packages)}; on disk: {on_disk}"
    return Canonical(leaves)


def variables(environment: dict[str, str]) -> Canonical:
    """Those that are set. Of one that picks devices the number of them counts."""
    return Canonical({name: _picked(v) if name in PICKING else v for name, v in environment.items()})


def _picked(value: str) -> str:
    entries = [e.strip() for e in value.split(",")]
    if not all(e.isdecimal() or e.startswith(("GPU-", "MIG-")) for e in entries):
        return value or "(empty)"
    return f"{len(entries)} device{'s' if len(entries) > 1 else ''}"


def visible(gpus: Sequence[f.Gpu], environment: dict[str, str]) -> Sequence[f.Gpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves."""
    value = environment.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return gpus
    from cudnn_doctor.model.visible_devices import visible_devices

    uuids = [g.uuid.value if isinstance(g.uuid, Known) else "" for g in gpus]
    chosen = set(visible_devices(value, uuids).devices)
    return [g for place, g in enumerate(gpus) if str(place) in chosen]


def gpus(found: Fact[tuple[f.Gpu, ...]], environment: dict[str, str]) -> Canonical:
    """What kind the visible GPUs are. A value that all of them share is told once, however many are visible: a rank
    that sees one of eight is compared by that one."""
    if isinstance(found, Absent):
        return flat({"GPUs": found})
    shown = visible(found.value, environment)
    if not shown:
        return Canonical({"GPUs": "none is visible"} if found.value else {"GPUs": "none"})
    each = [(_bus(g), flat(g)) for g in shown]
    names = dict.fromkeys(name for _, canonical in each for name in canonical.leaves)
    unknown = tuple(sorted({name for _, canonical in each for name in canonical.unknown}))
    leaves = {name: _shared([(bus, c.leaves.get(name, "–")) for bus, c in each]) for name in names}
    return Canonical(leaves, unknown)


def _bus(gpu: f.Gpu) -> str:
    return gpu.pci.value if isinstance(gpu.pci, Known) else f"GPU {gpu.index}"


def _shared(values: Iterable[tuple[str, str]]) -> str:
    """One text for the values of one node's GPUs, with the buses of those that stand apart."""
    buses: dict[str, list[str]] = {}
    for bus, value in values:
        buses.setdefault(value, []).append(bus)
    if len(buses) == 1:
        return next(iter(buses))
    ordered = sorted(buses.items(), key=lambda item: (len(item[1]), item[0]))
    apart = [f"{value} on {', '.join(sorted(where))}" for value, where in ordered[:-1]]
    return "; ".join((*apart, f"{ordered[-1][0]} on the other {len(ordered[-1][1])}"))


def layout(found: Fact[tuple[f.Gpu, ...]], driver: f.Driver, environment: dict[str, str]) -> Canonical:
    """Which buses hold a GPU. Where a container, a cgroup or a variable shows a part of them, there is nothing to
    compare."""
    if isinstance(found, Absent) or _partial(found.value, driver, environment):
        return Canonical({}, compared=False)
    return Canonical({"GPUs": str(len(found.value)), **{_bus(g): _name(g) for g in found.value}})


def _name(gpu: f.Gpu) -> str:
    return gpu.name.value if isinstance(gpu.name, Known) else f"absent ({gpu.name.reason})"


def _partial(gpus: Sequence[f.Gpu], driver: f.Driver, environment: dict[str, str]) -> bool:
    if len(visible(gpus, environment)) < len(gpus):
        return True
    if environment.get("NVIDIA_VISIBLE_DEVICES", "all") not in ("all", "", "void", "none"):
        return True
    nodes = driver.device_nodes.value if isinstance(driver.device_nodes, Known) else ()
    cards = [n for n in nodes if n.path.removeprefix("/dev/nvidia").isdecimal()]
    present = len(driver.pci.value) if isinstance(driver.pci, Known) else 0
    return any(n.refused == "EPERM" for n in cards) or (bool(cards) and len(cards) < present)
