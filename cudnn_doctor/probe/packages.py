"""Reads the installed distributions that matter to CUDA from their metadata folders.

importlib.metadata would do the same and costs 49 ms; one scandir a package folder and the head of some twenty METADATA
files cost 3 ms. Formats: the core metadata specification, PEP 376 (RECORD, INSTALLER), conda's conda-meta.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import combinations

from cudnn_doctor.model.base import Absent, Fact, Known, known
from cudnn_doctor.model.facts import Overwrite, Package, TargetEnv

_RELEVANT = (
    *("tensorflow", "tf-nightly", "torch", "jax", "nvidia-", "cuda-", "cupy", "onnxruntime", "ort-", "ctranslate2"),
    *("faster-whisper", "mxnet", "paddlepaddle", "keras", "triton", "numba", "pycuda", "tensorrt"),
)
_RELEVANT_IN_CONDA = ("cudnn", "libcudnn", "cuda", "libcublas", "libcuda", "libnv", "pytorch", "libtorch", "nccl")
# Distributions that put libraries of one name into one folder, so that the one installed last wins, have one stem.
_STEMS = ("nvidia-", "tensorflow", "onnxruntime", "cupy", "mxnet", "paddlepaddle")
_VARIANT = r"(-(cu\d+\w*|cuda\d+x?|gpu|cpu|intel|rocm|directml|training|nightly|mkl))+$"
_SAME_AS = {"tf": "tensorflow", "ort": "onnxruntime"}
_LIBRARY = (".dll", ".pyd")  # and whatever has ".so" in its name
_HASHED = 64 << 20  # bytes of the largest file whose hash is taken


def probe_packages(patient: TargetEnv) -> Fact[tuple[Package, ...]]:
    """The relevant distributions, sorted by name. Of one name in several folders the first on sys.path counts."""
    if not patient.site_packages:
        return Absent(reason="not-found", detail=f"no package folder in {patient.prefix}")
    packages: dict[str, list[Package]] = {}
    refused: list[str] = []
    for folder in patient.site_packages:
        here: dict[str, list[Package]] = {}
        try:
            entries = sorted(os.listdir(folder))
        except PermissionError:
            refused.append(folder)
            continue
        except OSError:
            continue
        for entry in entries:
            if entry.endswith((".dist-info", ".egg-info")) and normalised(entry).startswith(_RELEVANT):
                package = _package(folder, entry)
                here.setdefault(package.name, []).append(package)
        for name, found in here.items():
            packages.setdefault(name, found)
    for package in _conda_packages(patient):
        packages.setdefault(package.name, [package])
    if refused and not packages:
        return Absent(reason="no-permission", detail=", ".join(refused))
    return known(
        tuple(p for name in sorted(packages) for p in packages[name]), f"metadata in {', '.join(patient.site_packages)}"
    )


def distributions_above(path: str) -> tuple[Package, ...]:
    """The cuDNN wheels whose metadata lies beside the folder `nvidia` of a file, whether or not that place is on this
    sys.path: another environment's site-packages, a `pip install --target` folder, a folder a wheel."""
    site, found, _ = path.rpartition("/nvidia/")
    try:
        entries = sorted(os.listdir(site)) if found else []
    except OSError:
        return ()
    return tuple(
        _package(site, e) for e in entries if e.endswith(".dist-info") and normalised(e).startswith("nvidia-cudnn")
    )


def normalised(name: str) -> str:
    """The name as PEP 503 writes it: "nvidia-cudnn-cu12"."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(requirement: str) -> str:
    """The distribution that a Requires-Dist line names, normalised."""
    match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
    return normalised(match[1].rstrip("._-")) if match else ""


def record(package: Package) -> dict[str, tuple[str, int]]:
    """RECORD of a distribution: path relative to its location -> (hash as "sha256=...", size). Empty without one."""
    folder = f"{package.name.replace('-', '_')}-{package.version}.dist-info"
    paths = [os.path.join(package.location, folder)]
    if not os.path.isdir(paths[0]):
        paths = [p for p in _metadata_folders(package.location) if _named(p) == (package.name, package.version)]
    for path in paths:
        text = _text(os.path.join(path, "RECORD"))
        rows = (line.rsplit(",", 2) for line in text.splitlines())
        return {r[0].strip('"').replace("\\", "/"): (r[1], int(r[2])) for r in rows if len(r) == 3 and r[2].isdigit()}
    return {}


def sha256_of(path: str) -> str:
    """The hash in RECORD's notation: "sha256=" and URL-safe base64 without padding.

    Raises:
        OSError: not readable.
    """
    import base64
    import hashlib

    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return "sha256=" + base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()


def probe_overwrites(patient: TargetEnv, packages: Fact[tuple[Package, ...]]) -> tuple[Overwrite, ...]:
    """Distributions whose RECORDs claim the same libraries with different content, two and two.

    Only libraries count: shared `__init__.py` and headers harm nobody. Which distribution's files the disk holds is
    told by size, and by the hash of the smallest file where the sizes are equal.
    """
    families: dict[tuple[str, str], list[Package]] = {}
    for package in installed(packages):
        stem = re.sub(_VARIANT, "", package.name)
        stem = _SAME_AS.get(stem, stem)
        if package.location in patient.site_packages and stem.startswith(_STEMS):
            families.setdefault((package.location, stem), []).append(package)
    found = []
    for members in families.values():
        if len(members) > 1:
            claims = [(p, {f: r for f, r in record(p).items() if _is_library(f)}) for p in members]
            for (a, record_a), (b, record_b) in combinations(claims, 2):
                shared = {f for f in record_a.keys() & record_b.keys() if record_a[f] != record_b[f]}
                if shared:
                    found.append(_overwrite(a, b, record_a, record_b, shared))
    return tuple(found)


def _overwrite(
    a: Package, b: Package, record_a: dict[str, tuple[str, int]], record_b: dict[str, tuple[str, int]], shared: set[str]
) -> Overwrite:
    directory = os.path.join(a.location, os.path.commonpath([os.path.dirname(f) for f in shared]))
    labels = {"a": f"{a.name} {a.version}", "b": f"{b.name} {b.version}"}
    votes = {"a": 0, "b": 0, "other": 0}
    tied: list[str] = []
    for file in shared:
        try:
            size = os.stat(os.path.join(a.location, file)).st_size
        except OSError:
            votes["other"] += 1
            continue
        of_a, of_b = size == record_a[file][1], size == record_b[file][1]
        if of_a and of_b:
            tied.append(file)
        else:
            votes["a" if of_a else "b" if of_b else "other"] += 1
    how = "file sizes against RECORD"
    if not (votes["a"] or votes["b"]) and tied:
        smallest = min(tied, key=lambda f: record_a[f][1])
        how = f"sha256 of {os.path.basename(smallest)} against RECORD"
        if record_a[smallest][1] <= _HASHED:
            digest = sha256_of(os.path.join(a.location, smallest))
            winner = next((k for k, r in (("a", record_a), ("b", record_b)) if r[smallest][0] == digest), "other")
            votes[winner] += 1
    winners = [k for k in ("a", "b") if votes[k]]
    on_disk: Fact[str]
    if len(winners) == 1 and not votes["other"]:
        on_disk = known(labels[winners[0]], how)
    else:
        counts = f"{votes['a']} files of {labels['a']}, {votes['b']} of {labels['b']}, {votes['other']} of neither"
        on_disk = Absent(reason="not-found", detail=f"no single distribution: {counts} ({how})")
    return Overwrite(packages=tuple(labels.values()), directory=directory, files=len(shared), on_disk=on_disk)


def _is_library(file: str) -> bool:
    name = file.rpartition("/")[2]
    return name.endswith(_LIBRARY) or ".so" in name


def _package(folder: str, entry: str) -> Package:
    path = os.path.join(folder, entry)
    is_file = os.path.isfile(path)  # distutils wrote an egg-info file
    head = _head(path if is_file else os.path.join(path, "METADATA" if entry.endswith(".dist-info") else "PKG-INFO"))
    name, version = _named(path)
    requires = [value for key, value in head if key == "requires-dist"]
    if entry.endswith(".egg-info") and not is_file and not requires:
        requires = _egg_requires(_text(os.path.join(path, "requires.txt")))
    return Package(
        name=normalised(next((v for k, v in head if k == "name"), name)),
        version=next((v for k, v in head if k == "version"), version),
        location=folder,
        requires=tuple(requires),
        installer="" if is_file else _text(os.path.join(path, "INSTALLER")).strip(),
    )


def _named(path: str) -> tuple[str, str]:
    """Name and version in a metadata folder's own name, for folders whose METADATA is lost."""
    stem = os.path.basename(path).rsplit(".", 1)[0]
    name, _, rest = stem.partition("-")
    return normalised(name), rest.partition("-py")[0]


def _metadata_folders(location: str) -> Sequence[str]:
    try:
        return [os.path.join(location, e) for e in os.listdir(location) if e.endswith(".dist-info")]
    except OSError:
        return ()


def _head(path: str) -> list[tuple[str, str]]:
    """The header fields, keys in lower case; the body after the blank line, a long description, is left unread."""
    text = ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            while "\n\n" not in text and (block := file.read(8192)):
                text += block
    except OSError:
        return []
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines() if not line.startswith((" ", "\t")))
    return [(key.lower(), value.strip()) for key, colon, value in pairs if colon]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _egg_requires(text: str) -> list[str]:
    """requires.txt of setuptools as Requires-Dist lines: sections are `[extra]`, `[extra:marker]` or `[:marker]`."""
    result, suffix = [], ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
            conditions = [f"({marker})"] * bool(marker) + [f"extra == '{extra}'"] * bool(extra)
            suffix = f" ; {' and '.join(conditions)}" if conditions else ""
        else:
            result.append(line + suffix)
    return result


def _conda_packages(patient: TargetEnv) -> list[Package]:
    """CUDA packages of a conda environment, which have no dist-info: named NAME-VERSION-BUILD.json in conda-meta."""
    folder = os.path.join(patient.prefix, "conda-meta")
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return []
    found = []
    for entry in entries:
        name, _, rest = entry.removesuffix(".json").rpartition("-")[0].rpartition("-")
        if entry.endswith(".json") and name.startswith(_RELEVANT_IN_CONDA):
            found.append(Package(name=name, version=rest, location=folder, requires=(), installer="conda"))
    return found


def installed(packages: Fact[tuple[Package, ...]]) -> tuple[Package, ...]:
    """The packages, or none where they could not be read."""
    return packages.value if isinstance(packages, Known) else ()
