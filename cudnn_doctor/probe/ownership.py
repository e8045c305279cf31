"""Which package put a file there, and so which version it is: a wheel by its RECORD, a deb, a conda package."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cudnn_doctor.model.base import Absent, Fact, Known, known
from cudnn_doctor.model.facts import Package
from cudnn_doctor.probe.packages import distributions_above, record, sha256_of
from cudnn_doctor.probe.root_files import at

_HASHED = 4 << 20  # bytes: the shim has 0.13 MB, so that two owners can be told apart by its hash
# Distributions that carry a cuDNN of their own, and where.
_BUNDLERS = {"torch": "torch/lib/", "ctranslate2": "ctranslate2.libs/", "onnxruntime-gpu": "onnxruntime/"}
_NOBODY = Absent(reason="not-found", detail="no wheel, deb or conda package claims the file")


class Owner(msgspec.Struct, frozen=True):
    """The package of a copy; `sizes` are its RECORD's, by absolute real path."""

    package: Fact[str] = _NOBODY
    version: Fact[str] = _NOBODY  # "9.19.0" of wheel 9.19.0.56
    flavour: Known[int] | Absent = _NOBODY
    sizes: dict[str, int] = {}
    claimed_by: str = ""  # the package whose file should be here, and is not

    def version_by_size(self, path: str, size: int) -> Fact[str]:
        """Version of another file of the copy: the package's, if the package put a file of this size there."""
        if path not in self.sizes or not isinstance(self.version, Known):
            return Absent(reason="not-found", detail="its name has no version")
        if self.sizes[path] != size:
            what = f"not the file that {self.version.source} lists: {size} bytes, not {self.sizes[path]}"
            return Absent(reason="not-found", detail=what)
        return known(self.version.value, f"size in RECORD, {self.version.source}")


def owner_of(path: str, real_path: str, packages: Sequence[Package], root: Path) -> Owner:
    """The owner of a libcudnn. Only a copy in a system folder costs a look into dpkg's lists."""
    by_wheel = _wheel(path, packages) or _wheel(real_path, packages)
    by_wheel = by_wheel or _wheel(real_path, distributions_above(real_path))
    return by_wheel or _conda(real_path, packages) or _deb(path, real_path, root) or Owner()


def _wheel(path: str, packages: Sequence[Package]) -> Owner | None:
    place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    claims: list[tuple[Package, dict[str, tuple[str, int]], str]] = []
    for package in packages:
        if package.name.startswith("nvidia-cudnn") or package.name in _BUNDLERS:
            relative = os.path.relpath(place, os.path.realpath(package.location)).replace(os.sep, "/")
            if relative.startswith(_BUNDLERS.get(package.name, "nvidia/")):
                files = record(package)
                if relative in files:
                    claims.append((package, files, relative))
    if not claims:
        return None
    size = os.stat(path).st_size
    fitting = [c for c in claims if c[1][c[2]][1] == size]
    if len(fitting) > 1 and size <= _HASHED:
        digest = sha256_of(path)
        fitting = [c for c in fitting if c[1][c[2]][0] == digest] or fitting
    package, files, _ = fitting[0] if fitting else claims[0]
    source = f"metadata of {package.name} {package.version}"
    if not package.name.startswith("nvidia-cudnn"):
        return Owner(package=known(f"{package.name} {package.version}", source))
    if not fitting:
        return Owner(
            package=Absent(reason="not-found", detail=f"{package.name} claims it with another size: foreign file"),
            claimed_by=f"{package.name} {package.version}",
        )
    return Owner(
        package=known(f"{package.name} {package.version}", source),
        version=known(_three(package.version), source),
        flavour=_cu(package.name, source),
        sizes={os.path.realpath(os.path.join(package.location, f)): s for f, (_, s) in files.items()},
    )


def _conda(real_path: str, packages: Sequence[Package]) -> Owner | None:
    for package in packages:
        prefix = os.path.realpath(os.path.dirname(package.location))
        places = (os.path.join(prefix, "lib"), os.path.join(prefix, "Library", "bin"))
        is_cudnn = package.installer == "conda" and package.name in ("cudnn", "libcudnn")
        if is_cudnn and os.path.dirname(real_path) in places:
            source = f"{package.location}/{package.name}-{package.version}"
            return Owner(
                package=known(f"{package.name} {package.version} (conda)", source),
                version=known(_three(package.version), source),
            )
    return None


def _deb(path: str, real_path: str, root: Path) -> Owner | None:
    lists = at(root, "/var/lib/dpkg/info")
    if not any(path.startswith(at(root, top)) for top in ("/usr/lib/", "/lib/", "/usr/local/cuda")):
        return None
    try:
        names = [n for n in os.listdir(lists) if n.startswith(("libcudnn", "cudnn")) and n.endswith(".list")]
    except OSError:
        return None
    ending = f"/{os.path.basename(real_path)}\n".encode()
    for name in sorted(names):
        try:
            with open(os.path.join(lists, name), "rb") as file:
                owns = ending in file.read()
        except OSError:
            continue
        if owns:
            package = name.removesuffix(".list").partition(":")[0]
            version = _dpkg_version(package, root)
            source = f"dpkg package {package}"
            return Owner(
                package=known(f"{package} {version}".strip(), source),
                version=known(_three(version), source) if version else _NOBODY,
                flavour=_cu(f"{package} {version}", source),
            )
    return None


def _dpkg_version(package: str, root: Path) -> str:
    try:
        with open(at(root, "/var/lib/dpkg/status"), "rb") as file:
            status = file.read()
    except OSError:
        return ""
    start = status.find(b"\nPackage: " + package.encode() + b"\n")
    if start < 0 and not status.startswith(b"Package: " + package.encode() + b"\n"):
        return ""
    paragraph = status[max(start, 0) : status.find(b"\n\n", max(start, 0))]
    match = re.search(rb"^Version: *(\S+)", paragraph, re.MULTILINE)
    return match[1].decode(errors="replace") if match else ""


def _three(version: str) -> str:
    """The three numbers that cuDNN counts: "9.19.0" of "9.19.0.56" or "8.9.7.29-1+cuda12.2"."""
    return ".".join(re.split(r"[.\-+]", version.partition(":")[2] or version)[:3])


def _cu(name: str, source: str) -> Known[int] | Absent:
    match = re.search(r"(?:-cu|cuda-?)(\d+)", name)
    return known(int(match[1]), source) if match else _NOBODY
