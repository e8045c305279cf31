"""Finds every copy of cuDNN that a program here could load, counts each once, and reads what it says of itself.

A copy is a folder with a libcudnn.so.N, or with sub-libraries of one; links lead to the same copy. Static libraries do
not count. The file names are those of NVIDIA's wheels, archives and packages from cuDNN 5 to 9.28; on Windows
cudnn64_9.dll and cudnn_ops64_9.dll.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from cudnn_doctor.model.base import Absent, Fact, Known, known
from cudnn_doctor.model.facts import CudnnCopy, Framework, Package, Resolution, SubLibrary, TargetEnv
from cudnn_doctor.probe.elf import ElfError, ForeignElfError, bytes_needed, read_dynamic, read_number, read_section
from cudnn_doctor.probe.ownership import Owner, owner_of
from cudnn_doctor.probe.packages import installed, probe_packages
from cudnn_doctor.probe.search_dirs import LD_PRELOAD, library_folders

if TYPE_CHECKING:
    from cudnn_doctor.live.questions import Answer

# libcudnn.so.9, libcudnn_ops.so.9.19.0, libcudnn-1a2b3c4d.so.9.1.0 (auditwheel); cudnn64_9.dll, cudnn_ops64_9.dll
_LINUX = re.compile(r"libcudnn(?P<part>_[a-z_]+)?(?:-[0-9a-f]{8})?\.so(?:\.(?P<version>\d{1,4}(?:\.\d{1,9})*))?")
_WINDOWS = re.compile(r"cudnn(?P<part>_[a-z_]+?)?64_(?P<version>\d{1,4})\.dll", re.IGNORECASE)
_NO_VERSION = Absent(reason="not-found", detail="no file name, package or header says it")
# Sub-libraries that name the cuBLASLt which they dlopen, and so the CUDA major that they were built for.
_NAMES_CUBLAS = ("libcudnn_ops_infer", "libcudnn_adv", "libcudnn_engines_precompiled")
_RODATA = 16 << 20
ELF_HEADER = 64  # bytes, of a 64-bit file


class _File(msgspec.Struct):
    path: str
    real_path: str
    part: str  # "" for libcudnn itself, "_ops" ...
    version: str  # as the name has it: "", "9" or "9.19.0"


def find_cudnn(
    patient: TargetEnv,
    environ: Mapping[str, str],
    root: Path = Path("/"),
    packages: Fact[tuple[Package, ...]] | None = None,
    frameworks: Sequence[Framework] = (),
    more: Iterable[tuple[str, str]] = (),
) -> tuple[CudnnCopy, ...]:
    """The copies, in the order of `places.library_folders`.

    Args:
        packages: what `probe_packages` found; read where left out.
        frameworks: whose search paths lead to more folders.
        more: (folder, way) that the loader met and this search does not know ($ORIGIN, an empty entry, hwcaps).
    """
    owners = installed(probe_packages(patient) if packages is None else packages)
    folders: dict[str, tuple[str, list[str]]] = {}  # real path -> path as first met, ways
    preloaded = [p for p in environ.get("LD_PRELOAD", "").replace(":", " ").split() if "libcudnn" in p and "/" in p]
    for folder, way in [
        *((os.path.dirname(p), LD_PRELOAD) for p in preloaded),
        *more,
        *library_folders(patient, environ, root, ("libcudnn",), frameworks),
    ]:
        ways = folders.setdefault(os.path.realpath(folder), (folder, []))[1]
        if way not in ways:
            ways.append(way)
    copies: dict[str, CudnnCopy] = {}
    for folder, ways in folders.values():
        files = _files(folder)
        for major in sorted({_major(f) for f in files} - {0}):
            copy = _copy(major, [f for f in files if _major(f) == major], ways, owners, root)
            met = copies.get(copy.real_path)
            if met:
                copy = msgspec.structs.replace(met, found_by=tuple(dict.fromkeys((*met.found_by, *ways))))
            copies[copy.real_path] = copy
    return tuple(copies.values())


def with_answers(copies: Iterable[CudnnCopy], answers: Mapping[str, Answer]) -> tuple[CudnnCopy, ...]:
    """The copies with what they said in a child process, which outranks every other reading.

    Args:
        answers: by `real_path`.
    """
    return tuple(_with_answer(copy, answers.get(copy.real_path)) for copy in copies)


def not_loaded(copies: Iterable[CudnnCopy]) -> tuple[CudnnCopy, ...]:
    """The copies of an examination without live work, which loads none of them."""
    why = Absent(reason="not-examined", detail="without live work no library of the environment is loaded")
    return tuple(msgspec.structs.replace(copy, asked=why) for copy in copies)


def _with_answer(copy: CudnnCopy, answer: Answer | None) -> CudnnCopy:
    if answer is None:
        return copy
    asked = known(answer.asked, "child process")
    if not isinstance(answer.version, Known):
        return msgspec.structs.replace(copy, asked=asked)
    flavour = copy.cuda_flavour
    if isinstance(flavour, Absent) and isinstance(answer.cudart, Known):
        flavour = known(int(answer.cudart.value.split(".")[0]), answer.cudart.source)
    return msgspec.structs.replace(
        copy,
        asked=asked,
        version=answer.version,
        version_readings=(answer.version, *copy.version_readings),
        cudart=answer.cudart,
        cuda_flavour=flavour,
    )


def _files(folder: str) -> list[_File]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    files = []
    for name in sorted(n for n in names if "cudnn" in n.lower()):
        match = _LINUX.fullmatch(name) or _WINDOWS.fullmatch(name)
        if match:
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            if os.path.isfile(real) and not _foreign(real):
                files.append(_File(path, real, (match["part"] or "").lower(), match["version"] or ""))
    return files


def _foreign(path: str) -> bool:
    """Whether a library is for another machine (a cross-compilation target): no program here could load it."""
    try:
        read_dynamic(path)
    except ForeignElfError:
        return True
    except (OSError, ElfError):
        return False  # damaged: it stands in the way of a sound one
    return False


def _major(file: _File) -> int:
    if file.version:
        return int(file.version.split(".")[0])
    named = _LINUX.fullmatch(os.path.basename(file.real_path))  # a development link says nothing, its target does
    if named and named["version"]:
        return int(named["version"].split(".")[0])
    try:
        soname = _LINUX.fullmatch(read_dynamic(file.real_path).soname)
    except (OSError, ElfError):
        return 0
    return int(soname["version"].split(".")[0]) if soname and soname["version"] else 0


def _copy(
    major: int, files: Sequence[_File], ways: Sequence[str], packages: Sequence[Package], root: Path
) -> CudnnCopy:
    main = _best([f for f in files if not f.part], major)
    if main and os.path.dirname(main.real_path) != os.path.realpath(os.path.dirname(main.path)):
        files = [f for f in _files(os.path.dirname(main.real_path)) if _major(f) == major]  # a link from elsewhere
    subs = [_best([f for f in files if f.part == part], major) for part in sorted({f.part for f in files} - {""})]
    parts = [f for f in subs if f is not None]
    first = main or parts[0]
    directory = os.path.dirname(first.real_path)
    owner = owner_of(first.path, first.real_path, packages, root)
    readings = _readings(first, owner, directory, _core(parts))
    flavour = owner.flavour if isinstance(owner.flavour, Known) else _flavour(parts, owner.flavour)
    return CudnnCopy(
        path=first.path,
        real_path=first.real_path,
        directory=directory,
        major=major,
        soname=_name_in_wheel(first) or _soname("", major, first.path),
        kind=_kind(main, directory, owner),
        found_by=tuple(ways),
        version=readings[0] if readings else _NO_VERSION,
        version_readings=tuple(readings),
        cudart=Absent(reason="not-examined", detail="only the library itself says it"),
        package=owner.package,
        claimed_by=owner.claimed_by,
        cuda_flavour=flavour,
        sublibraries=tuple(_sublibrary(f, major, owner) for f in parts),
        size=os.stat(main.real_path).st_size if main else 0,
        needed=_needed(main.real_path) if main else 0,
    )


def _best(files: Sequence[_File], major: int) -> _File | None:
    """Of the names of one library the one that the loader asks for, libX.so.N; else the longest version."""
    exact = [f for f in files if f.version == str(major)]
    ranked = sorted(files, key=lambda f: [int(n) for n in f.version.split(".") if n])
    return exact[0] if exact else ranked[-1] if ranked else None


def _soname(part: str, major: int, path: str) -> str:
    return f"cudnn{part}64_{major}.dll" if path.lower().endswith(".dll") else f"libcudnn{part}.so.{major}"


def _name_in_wheel(file: _File) -> str:
    """The name that auditwheel gave to a bundled copy, which only the libraries of that wheel ask for."""
    name = os.path.basename(file.real_path)
    return name if re.match(r"libcudnn-[0-9a-f]{8}\.so", name) else ""


def unlisted(copies: Iterable[CudnnCopy], found: Iterable[Resolution]) -> list[tuple[str, str]]:
    """(folder, way) of each libcudnn that the loader finds and that is not among the copies."""
    known = {path for c in copies for path in (c.path, c.real_path)}
    wins = [
        (r.path.value, r.real_path.value, r.step)
        for r in found
        if isinstance(r.path, Known) and isinstance(r.real_path, Known) and r.wanted.startswith("libcudnn.so")
    ]
    return list(dict.fromkeys((os.path.dirname(p), step) for p, real, step in wins if real not in known))


def _kind(main: _File | None, directory: str, owner: Owner) -> Literal["full", "jit", "shimless"]:
    if main is None:
        return "shimless"
    jit = "cudnn_jit" in directory.split(os.sep) or (
        isinstance(owner.package, Known) and "-jit-" in owner.package.value
    )
    return "jit" if jit else "full"


def _sublibrary(file: _File, major: int, owner: Owner) -> SubLibrary:
    size = os.stat(file.real_path).st_size
    version = _file_version(file) or owner.version_by_size(file.real_path, size)
    if isinstance(version, Absent):
        version = exported_version(file.real_path, file.part) or version
    return SubLibrary(
        name=_soname(file.part, major, file.path),
        path=file.path,
        real_path=file.real_path,
        version=version,
        size=size,
        needed=_needed(file.real_path),
    )


def _needed(path: str) -> int:
    """Bytes that the file must have; 0 where it does not say. A shorter one than an ELF header needs that."""
    try:
        return bytes_needed(path)
    except (OSError, ElfError):
        return ELF_HEADER if os.path.getsize(path) < ELF_HEADER else 0


def _file_version(file: _File) -> Known[str] | None:
    """The version in a file's full name: libcudnn.so.9.19.0."""
    match = _LINUX.fullmatch(os.path.basename(file.real_path))
    if match and (match["version"] or "").count(".") == 2:
        return known(match["version"], f"file name {os.path.basename(file.real_path)}")
    return None


def _readings(file: _File, owner: Owner, directory: str, core: _File | None) -> list[Known[str]]:
    """Most trusted first: what the library itself exports, who installed the file, the file's own name, the header
    beside it."""
    found = [
        core and exported_version(core.real_path, core.part),
        owner.version,
        _file_version(file),
        _header(directory),
    ]
    return [f for f in found if isinstance(f, Known)]


def _core(parts: Sequence[_File]) -> _File | None:
    """The part whose version cudnnGetVersion tells: the graph library of cuDNN 9, ops_infer of cuDNN 8."""
    return next((f for name in ("_graph", "_ops_infer") for f in parts if f.part == name), None)


def exported_version(path: str, part: str) -> Known[str] | None:
    """The version that a sub-library holds in an exported variable, `cudnn_graph_version` or `cudnn_ops_infer_version`
    (wheels nvidia-cudnn-cu12 9.1.0.70 and nvidia-cudnn-jit-cu12 9.27.0.42, readelf --dyn-syms, 2026-12-01): one byte
    each for major, minor and patch. Read from the file; nothing of it runs."""
    for symbol in (f"cudnn{part}_version", f"cudnn{part}_infer_version"):
        try:
            number = read_number(path, symbol)
        except (OSError, ElfError):
            return None
        if number is not None and 5 <= number >> 16 < 100:
            version = f"{number >> 16}.{number >> 8 & 255}.{number & 255}"
            return known(version, f"{symbol} in {os.path.basename(path)}")
    return None


def _header(directory: str) -> Known[str] | None:
    """CUDNN_MAJOR, _MINOR and _PATCHLEVEL of a cudnn_version.h that lies beside, as in NVIDIA's archives."""
    for name in ("cudnn_version.h", "cudnn.h"):  # before 8 the macros are in cudnn.h
        path = os.path.join(os.path.dirname(directory), "include", name)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(1 << 17)
        except OSError:
            continue
        numbers = [re.search(rf"#define CUDNN_{n}\s+(\d+)", text) for n in ("MAJOR", "MINOR", "PATCHLEVEL")]
        if all(numbers):
            return known(".".join(n[1] for n in numbers if n), path)
    return None


def _flavour(parts: Sequence[_File], otherwise: Absent) -> Fact[int]:
    """CUDA major by the name of the cuBLASLt that a sub-library opens."""
    for file in parts:
        name = os.path.basename(file.path)
        if name.startswith(_NAMES_CUBLAS):
            try:
                match = re.search(rb"libcublasLt\.so\.(\d+)\0", read_section(file.real_path, ".rodata", _RODATA))
            except (OSError, ElfError):
                continue
            if match:
                return known(int(match[1]), f"libcublasLt.so.{match[1].decode()} named in {name}")
    return otherwise
