"""Finds CUDA toolkits and the CUDA libraries that cuDNN and the frameworks open."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cudnn_doctor.model.base import Absent, Fact, known
from cudnn_doctor.model.facts import Cuda, CudaLibrary, Package, TargetEnv, Toolkit
from cudnn_doctor.probe.packages import installed, probe_packages
from cudnn_doctor.probe.search_dirs import library_folders, toolkit_roots

_PREFIXES = ("libcu", "libnv")
_LINUX = re.compile(r"lib(cudart|cublas|cublasLt|nvrtc|nvJitLink)\.so\.(\d{1,4}(?:\.\d{1,9})*)")
_WINDOWS = re.compile(r"(cudart|cublas|cublasLt|nvrtc|nvJitLink)64_(\d{1,4})(?:_\d+)?\.dll", re.IGNORECASE)
# The wheel that a library comes from; "-cu12" and the like follow up to CUDA 12.
_WHEELS = {
    "libcudart": "nvidia-cuda-runtime",
    "libcublas": "nvidia-cublas",
    "libcublasLt": "nvidia-cublas",
    "libnvrtc": "nvidia-cuda-nvrtc",
    "libnvJitLink": "nvidia-nvjitlink",
}


def probe_cuda(
    patient: TargetEnv,
    environ: Mapping[str, str],
    root: Path = Path("/"),
    packages: Fact[tuple[Package, ...]] | None = None,
) -> Cuda:
    """Toolkits on disk and copies of libcudart, libcublas, libcublasLt, libnvrtc and libnvJitLink, each counted once.

    Args:
        packages: what `probe_packages` found; read where left out.
    """
    owners = installed(probe_packages(patient) if packages is None else packages)
    return Cuda(toolkits=_toolkits(environ, root), libraries=_libraries(patient, environ, root, owners))


def _toolkits(environ: Mapping[str, str], root: Path) -> tuple[Toolkit, ...]:
    found: dict[str, Toolkit] = {}
    for path, way in toolkit_roots(environ, root):
        real = os.path.realpath(path)
        version = _toolkit_version(real)
        has_files = any(os.path.exists(os.path.join(real, n)) for n in ("bin/nvcc", "bin/nvcc.exe", "lib64", "targets"))
        if real not in found and (has_files or not isinstance(version, Absent)):
            found[real] = Toolkit(path=path, real_path=real, version=version, found_by=way)
    return tuple(found.values())


def _toolkit_version(path: str) -> Fact[str]:
    """From version.json (CUDA 11.1 and later), version.txt (before), else the folder's name."""
    try:
        with open(os.path.join(path, "version.json"), "rb") as file:
            match = re.search(rb'"cuda"\s*:\s*\{[^}]*?"version"\s*:\s*"([\d.]+)"', file.read(1 << 16))
        if match:
            return known(match[1].decode(), f"{path}/version.json")
    except OSError:
        pass
    try:
        with open(os.path.join(path, "version.txt"), encoding="utf-8", errors="replace") as text:
            found = re.search(r"CUDA Version ([\d.]+)", text.read(4096))
        if found:
            return known(found[1], f"{path}/version.txt")
    except OSError:
        pass
    named = re.search(r"(?:cuda-|/v)(\d+\.\d+)$", path.replace("\\", "/"))
    return known(named[1], "folder name") if named else Absent(reason="not-found", detail=f"no version.json in {path}")


def _libraries(
    patient: TargetEnv, environ: Mapping[str, str], root: Path, packages: Sequence[Package]
) -> tuple[CudaLibrary, ...]:
    found: dict[str, CudaLibrary] = {}
    seen: set[str] = set()
    for folder, way in library_folders(patient, environ, root, _PREFIXES):
        real_folder = os.path.realpath(folder)
        if real_folder in seen:
            continue
        seen.add(real_folder)
        try:
            names = sorted(n for n in os.listdir(folder) if n.startswith(_PREFIXES) or n.endswith(".dll"))
        except OSError:
            continue
        for name in names:
            match = _LINUX.fullmatch(name) or _WINDOWS.fullmatch(name)
            real = os.path.realpath(os.path.join(folder, name)) if match else ""
            if not match or real in found or not os.path.isfile(real):
                continue
            library = f"lib{match[1]}"
            major = int(match[2].split(".")[0]) if name.startswith("lib") else int(match[2][:2])
            found[real] = CudaLibrary(
                name=library,
                major=major,
                path=os.path.join(folder, name),
                real_path=real,
                version=_version(library, major, os.path.basename(real), folder, packages),
                found_by=way,
            )
    return tuple(found.values())


def _version(library: str, major: int, name: str, folder: str, packages: Sequence[Package]) -> Fact[str]:
    match = _LINUX.fullmatch(name)
    if match and match[2].count(".") >= 2:
        return known(match[2], f"file name {name}")
    wheel = _WHEELS[library]
    for package in packages:
        inside = os.path.realpath(folder).startswith(os.path.realpath(package.location) + os.sep)
        mine = package.name == f"{wheel}-cu{major}" or (
            package.name == wheel and package.version.startswith(f"{major}.")
        )
        if inside and mine:
            return known(package.version, f"metadata of {package.name}")
    return Absent(reason="not-found", detail="neither its name nor a package says it")
