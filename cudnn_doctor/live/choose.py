"""What the live check runs on: which devices, which copies of cuDNN."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Resolution
from cudnn_doctor.model.visible_devices import visible_devices

if TYPE_CHECKING:
    from cudnn_doctor.probe import Libraries

PLAIN = "plain dlopen"
BY_THE_USER = ("LD_LIBRARY_PATH", "LD_PRELOAD")
CUBLAS = ("libcublasLt", "libcublas")  # in the order in which one needs the other


def devices_to_check(environ: Mapping[str, str], wanted: Sequence[int] = (), root: Path = Path("/")) -> tuple[int, ...]:
    """CUDA ordinals that a program started here would see; empty where there is no device node.

    CUDA_VISIBLE_DEVICES hides devices and ends at its first entry that is no device (CUDA programming guide).

    Raises:
        ValueError: a wanted ordinal is not among them.
    """
    nodes = [p.name for p in (root / "dev").glob("nvidia*")] if (root / "dev").is_dir() else []
    count = sum(1 for n in nodes if re.fullmatch(r"nvidia\d+", n)) or int((root / "dev/dxg").exists())
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    seen = tuple(range(count if listed is None else visible(listed, _uuids(root, count))))
    missing = [d for d in wanted if d not in seen]
    if missing and count:
        raise ValueError(
            f"--device {missing[0]}: a program started here sees {len(seen)} device(s), numbered from 0"
            + (f" (CUDA_VISIBLE_DEVICES={listed})." if listed is not None else ".")
        )
    return tuple(d for d in seen if not wanted or d in wanted)


def visible(listed: str, uuids: Sequence[str]) -> int:
    """How many devices CUDA_VISIBLE_DEVICES leaves of those with these UUIDs ("" where one is not known).

    Slices, and UUIDs that nobody could read, are believed: the child will hear what CUDA thinks of them.
    """
    if "MIG-" in listed or ("GPU-" in listed and not all(uuids)):
        return len(listed.split(","))
    return len(visible_devices(listed, uuids).devices)


def _uuids(root: Path, count: int) -> list[str]:
    """UUIDs by the kernel module's own files, in the order of the bus; CUDA's order for cards of one kind."""
    found = []
    for information in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        text = information.read_text(errors="replace")
        found.append(next((line.split()[-1] for line in text.splitlines() if line.startswith("GPU UUID")), ""))
    return found if len(found) == count else [""] * count


def choose_copies(libraries: Libraries, *, everything: bool) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Paths of the cuDNN copies to open, each with the libraries that a framework would have loaded before it.

    Those are the copies that the installed frameworks would load and those that the user put first by
    LD_LIBRARY_PATH or LD_PRELOAD; without a framework, what a plain dlopen finds. `everything` adds every other copy.
    """
    copies = {c.real_path: c for c in libraries.cudnn}
    found = [r for r in libraries.resolutions if isinstance(r.real_path, Known) and r.real_path.value in copies]
    chosen = [r for r in found if r.consumer not in (*copies, PLAIN)]
    plain = [r for r in found if r.consumer == PLAIN]
    chosen += [r for r in plain if not chosen or r.step.startswith(BY_THE_USER)]
    result = {value_or(r.real_path, ""): _preload(libraries, copies[value_or(r.real_path, "")], r) for r in chosen}
    if everything or not result:
        for copy in libraries.cudnn:
            if copy.kind != "shimless":
                result.setdefault(copy.real_path, ())
    return tuple(result.items())


def named_copies(libraries: Libraries, which: str | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Copies for the commands that take `--cudnn`: None for the first that `choose_copies` names, "all" for each
    distinct copy, else the file at a path.

    Raises:
        ValueError: no cuDNN here, or no libcudnn at the path.
    """
    if which is None or which == "all":
        found = choose_copies(libraries, everything=which == "all")
        if not found:
            raise ValueError("no cuDNN found here: --cudnn PATH names one, --env PATH the environment that has it.")
        return found if which else found[:1]
    path = Path(which)
    if path.is_dir():
        candidates = sorted(path.glob("libcudnn.so.*"), key=lambda p: len(p.name))
        path = candidates[0] if candidates else path
    if not path.is_file():
        raise ValueError(f"--cudnn {which}: no libcudnn.so.N there.")
    real = str(path.resolve())
    for resolution in libraries.resolutions:
        copy = next((c for c in libraries.cudnn if c.real_path == real == value_or(resolution.real_path, "")), None)
        if copy and resolution.consumer != PLAIN:
            return ((real, _preload(libraries, copy, resolution)),)
    return ((real, ()),)


def _preload(libraries: Libraries, copy: CudnnCopy, resolution: Resolution) -> tuple[str, ...]:
    """cuBLAS of the wheels, which a framework loads before cuDNN; a plain dlopen has only the loader's path."""
    if resolution.consumer == PLAIN:
        return ()
    wanted = value_or(copy.cuda_flavour, 0)
    return tuple(
        lib.real_path
        for name in CUBLAS
        for lib in libraries.cuda.libraries
        if lib.name == name and lib.major == wanted and "site-packages" in lib.found_by
    )
