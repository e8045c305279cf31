"""What there is to run the states on: copies, devices, who else uses them, whether MPS runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cudnn_doctor.model.base import NOT_EXAMINED, Base, Fact, value_or
from cudnn_doctor.model.facts import CudnnCopy
from cudnn_doctor.model.reproduction import Copy, Device
from cudnn_doctor.reproduce.report import devices_of
from cudnn_doctor.scenarios.sub_library_foreign import FIRST

if TYPE_CHECKING:
    from cudnn_doctor.model.facts import TargetEnv
    from cudnn_doctor.probe import Libraries


class StateTargets(Base, frozen=True, kw_only=True):
    """Where the states run."""

    copies: tuple[Copy, ...]
    devices: tuple[Device, ...]
    mps: Fact[bool] = NOT_EXAMINED


def gather(
    patient: TargetEnv, environ: Mapping[str, str], which: str | None, wanted: Sequence[int], *, users: bool = True
) -> StateTargets:
    """Reads the machine. `which` is `--cudnn`: None for the copy that wins, "all", or a path; `wanted` are ordinals.

    `users`: whether anybody needs to know who else uses the GPUs and whether MPS runs; asking takes 0.2 s.

    Raises:
        ValueError: no GPU or no cuDNN to work on, or what was asked for is not there.
    """
    from cudnn_doctor.live.choose import devices_to_check, named_copies
    from cudnn_doctor.probe import collect, read_libraries

    ordinals = devices_to_check(environ, wanted)
    if not ordinals:
        raise ValueError("no NVIDIA GPU that a program started here could use; `cudnn-doctor check` says why.")
    read: list[Libraries] = []
    snapshot = collect(patient, environ, on_libraries=read.append) if users else None
    libraries = read[0] if read else read_libraries(patient, environ)
    copies = tuple(describe(path, preload, libraries) for path, preload in named_copies(libraries, which))
    if snapshot is None:
        return StateTargets(copies=copies, devices=tuple(Device(ordinal=o) for o in ordinals))
    return StateTargets(copies=copies, devices=devices_of(snapshot, ordinals, environ), mps=snapshot.host.mps)


def describe(path: str, preload: Sequence[str], libraries: Libraries) -> Copy:
    """A copy with what the plan needs to know of it and of the others."""
    known = next((c for c in libraries.cudnn if c.real_path == os.path.realpath(path)), None)
    version = value_or(known.version, "") if known else ""
    major = known.major if known else major_of(path)
    cached = (
        lib.real_path for lib in libraries.cuda.libraries if lib.name == "libcublasLt" and "cache" in lib.found_by
    )
    return Copy(
        path=path,
        major=major,
        version=version,
        preload=tuple(preload),
        other=next((c.directory for c in libraries.cudnn if _other(c, path, major, version)), ""),
        cublas_in_cache=next(cached, "") if major == 8 else "",
    )


def major_of(path: str) -> int:
    """The major in a file name, through its links: 9 of libcudnn.so.9.19.0.

    Raises:
        ValueError: no name of it has one.
    """
    for name in (os.path.basename(path), os.path.basename(os.path.realpath(path))):
        found = re.search(r"\.so\.(\d+)", name)
        if found:
            return int(found[1])
    raise ValueError(f"{path}: its name has no major version (libcudnn.so.9); name the file that has one.")


def _other(copy: CudnnCopy, path: str, major: int, version: str) -> bool:
    """Whether a copy can stand for "of another version"."""
    return (
        copy.major == major
        and copy.real_path != os.path.realpath(path)
        and value_or(copy.version, "") != version
        and os.path.isfile(os.path.join(copy.directory, FIRST.get(major, "")))
    )
