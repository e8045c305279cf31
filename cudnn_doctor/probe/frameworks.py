"""What the installed frameworks were built for, read from their files; none is imported.

Where each fact is written: TensorFlow in tensorflow/python/platform/build_info.py, PyTorch in torch/version.py and the
architecture string of libtorch_python.so, JAX in its plugin's requirements and the local version of old jaxlibs,
ONNX Runtime in capi/build_and_package_info.py, Paddle in version/__init__.py, CuPy in .data/_wheel.json. The rest comes
from the requirements (pins) and from what the binaries name (DT_NEEDED, strings that they dlopen).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from glob import escape, glob
from typing import Any, Literal

from cudnn_doctor.model.base import Absent, Fact, Known, known, value_or
from cudnn_doctor.model.facts import Framework, Package, TargetEnv
from cudnn_doctor.probe.elf import ElfError, read_dynamic, read_section
from cudnn_doctor.probe.packages import installed, requirement_name

Name = Literal["tensorflow", "torch", "jax", "mxnet", "onnxruntime", "ctranslate2", "paddle", "cupy"]
Described = Mapping[str, Any]  # fields of Framework that a reader could tell

_TF_BINARIES = ("python/_pywrap_tensorflow_internal.so", "libtensorflow_framework.so.1", "libtensorflow_framework.so")
# libcudnn.so.9, or libcudnn-74a4c495.so.9.1.0: what auditwheel calls the copy that it puts into a wheel
_LIBCUDNN = re.compile(r"libcudnn(-[0-9a-f]{8})?\.so\.(?P<major>\d+)")
_RODATA = 16 << 20  # bytes of a .rodata section that are searched for a string
_NOT_STATED = Absent(reason="not-found", detail="no file of the distribution states it")


def probe_frameworks(patient: TargetEnv, packages: Fact[tuple[Package, ...]]) -> tuple[Framework, ...]:
    """The frameworks among the packages, in the order of the model's names."""
    found: dict[tuple[str, str], Framework] = {}
    for name, distributions, folder, read in _READERS:
        if name == "jax" and any(name == seen for seen, _ in found):
            continue  # the plugin speaks for jaxlib
        for package in installed(packages):
            if package.location not in patient.site_packages or not re.fullmatch(distributions, package.name):
                continue
            location = _location(package, folder)
            if location and (name, location) not in found:
                found[name, location] = _framework(name, package, location, read, packages)
    return tuple(found.values())


def _framework(
    name: Name,
    package: Package,
    location: str,
    read: Callable[[str, Package], Described],
    packages: Fact[tuple[Package, ...]],
) -> Framework:
    requires = package.requires
    if name == "jax":  # the plugin names its partner, and only `jax` itself may pin a version of both
        pjrt = package.name.replace("plugin", "pjrt")
        requires += tuple(r for p in installed(packages) if p.name == pjrt for r in p.requires)
    wanted = tuple(r for r in requires if requirement_name(r).startswith(("nvidia-", "cuda-toolkit", "jax-cuda")))
    fields = {
        "version": package.version,
        "cuda_build": _NOT_STATED,
        "built_cuda": _NOT_STATED,
        "built_cudnn": _NOT_STATED,
        "compute_capabilities": _NOT_STATED,
        "cudnn_soname": _NOT_STATED,
        **read(location, package),
    }
    if value_or(fields["cuda_build"], True):
        if isinstance(fields["built_cudnn"], Absent):
            fields["built_cudnn"] = _pinned(wanted, r"nvidia-cudnn(?:-cu\d+)?")
        if isinstance(fields["built_cuda"], Absent):
            fields["built_cuda"] = _pinned(wanted, r"nvidia-cuda-runtime(?:-cu\d+)?|cuda-toolkit")
        cudnn, soname = fields["built_cudnn"], fields["cudnn_soname"]
        if isinstance(soname, Absent) and isinstance(cudnn, Known):
            fields["cudnn_soname"] = known(_soname(cudnn.value.split(".")[0]), f"major in {cudnn.source}")
        elif isinstance(cudnn, Absent) and isinstance(soname, Known):
            fields["built_cudnn"] = known(_major_of(soname.value), soname.source)
    fields.setdefault("cudnn_need", _NEEDS.get(name, "opened"))
    return Framework(name=name, distribution=package.name, location=location, requires=wanted, **fields)


def _major_of(soname: str) -> str:
    """The major in libcudnn.so.9, libcudnn-74a4c495.so.9.1.0 or cudnn64_9.dll."""
    named = _LIBCUDNN.match(soname)
    return named["major"] if named else re.sub(r"^.*?(\d+)\.dll$", r"\1", soname)


def _soname(major: str) -> str:
    return f"cudnn64_{major}.dll" if os.name == "nt" else f"libcudnn.so.{major}"


def _location(package: Package, folder: str) -> str:
    places = sorted(glob(os.path.join(escape(package.location), folder)))
    if folder.endswith("*"):  # xla_cuda12 and xla_cuda13 side by side
        digits = re.findall(r"cuda(\d+)", package.name)
        places = [p for p in places if not digits or p.endswith(digits[0])]
    return places[0] if places else ""


def _pinned(requires: tuple[str, ...], distribution: str) -> Fact[str]:
    """The version that a requirement pins, or the major alone where it gives a range."""
    for line in requires:
        if re.fullmatch(distribution, requirement_name(line)):
            specifier = line.partition(";")[0]
            source = f"Requires-Dist: {specifier.strip()}"
            exact = re.search(r"==\s*([\d.]+)", specifier)
            at_least = re.search(r"(?:>=|~=)\s*(\d+)", specifier)
            if exact:
                parts = exact[1].strip(".").split(".")
                return known(".".join(parts[: 3 if "cudnn" in distribution else 2]), source)
            if at_least:
                return known(at_least[1], source)
    return _NOT_STATED


def _text(*parts: str) -> str:
    try:
        with open(os.path.join(*parts), encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def _literals(source: str) -> dict[str, Any]:
    """Module-level assignments of plain values, `NAME = collections.OrderedDict([...])` as a dict; nothing is run."""
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    values: dict[str, Any] = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if not isinstance(target, ast.Name) or value is None:
            continue
        is_call = isinstance(value, ast.Call) and len(value.args) == 1
        try:
            literal = ast.literal_eval(value.args[0] if is_call else value)
            values[target.id] = dict(literal) if is_call else literal
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return values


def _linked_cudnn(*paths: str) -> Fact[str]:
    """The libcudnn that the first of the binaries which links one names."""
    for path in paths:
        try:
            needed = [n for n in read_dynamic(path).needed if _LIBCUDNN.match(n)]
        except (OSError, ElfError):
            continue
        if needed:
            return known(needed[0], f"DT_NEEDED of {path}")
    return _NOT_STATED


def _named_cudnn(*paths: str) -> Fact[str]:
    """The libcudnn that the binaries link, else the one that they hold as a string, to dlopen it."""
    linked = _linked_cudnn(*paths)
    if isinstance(linked, Known):
        return linked
    for path in paths:
        match = _in_rodata(path, rb"libcudnn\.so\.\d+(?=\0)")
        if match:
            return known(match.decode(), f"string in {path}")
    return _NOT_STATED


def _in_rodata(path: str, pattern: bytes) -> bytes:
    try:
        match = re.search(pattern, read_section(path, ".rodata", _RODATA))
    except (OSError, ElfError):
        return b""
    return match[0] if match else b""


def _tensorflow(location: str, package: Package) -> Described:
    path = os.path.join(location, "python/platform/build_info.py")
    values = _literals(_text(path))
    info = values.get("build_info", values)  # a dict since 2.3, module attributes before
    # Up to 1.13 TensorFlow links cuDNN; later ones make the name to dlopen from the version, so no string holds it.
    linked = _linked_cudnn(*(os.path.join(location, name) for name in _TF_BINARIES))
    result: dict[str, Any] = {"cudnn_soname": linked}
    cuda = info.get("cuda_version") or info.get("cuda_version_number")
    cudnn = info.get("cudnn_version") or info.get("cudnn_version_number")
    if isinstance(info.get("is_cuda_build"), bool):
        result["cuda_build"] = known(info["is_cuda_build"], path)
    elif "cpu" in package.name:
        result["cuda_build"] = known(False, f"name of {package.name}")
    elif isinstance(linked, Known) or "gpu" in package.name:
        result["cuda_build"] = known(True, linked.source if isinstance(linked, Known) else f"name of {package.name}")
    if cuda:
        result["built_cuda"] = known(_dotted(str(cuda)), path)
    if cudnn:
        result["built_cudnn"] = known(_dotted(str(cudnn)), path)
    capabilities = info.get("cuda_compute_capabilities")
    if capabilities:
        result["compute_capabilities"] = known(tuple(str(c) for c in capabilities), path)
    return result


def _dotted(written: str) -> str:
    """A version as TensorFlow's build_info has it: "12.3"; on Windows the tail of a DLL name, "64_112" or "64_8"."""
    tail = written.rpartition("_")[2]
    if "_" in written and tail.isdigit() and len(tail) == 3:
        return f"{tail[:2]}.{tail[2]}"
    return tail


def _torch(location: str, _: Package) -> Described:
    path = os.path.join(location, "version.py")
    values = _literals(_text(path))
    result: dict[str, Any] = {}
    if isinstance(values.get("__version__"), str):
        result["version"] = values["__version__"].partition("+")[0]
    if "cuda" in values:
        result["cuda_build"] = known(values["cuda"] is not None, path)
    if not isinstance(values.get("cuda"), str):
        return result
    result["built_cuda"] = known(values["cuda"], path)
    libraries = [os.path.join(location, "lib", n) for n in ("libtorch_cuda.so", "libtorch_python.so")]
    result["cudnn_soname"] = _bundled_dll(location) or _named_cudnn(*libraries)
    flags = _in_rodata(libraries[1], rb"(?:sm|compute)_\d+[af]?(?: (?:sm|compute)_\d+[af]?)+(?=\0)")
    if flags:
        result["compute_capabilities"] = known(tuple(flags.decode().split()), f"string in {libraries[1]}")
    return result


def _bundled_dll(location: str) -> Known[str] | None:
    names = sorted(glob(os.path.join(escape(location), "lib", "cudnn64_*.dll")))
    return known(os.path.basename(names[-1]), names[-1]) if names else None


def _jax(location: str, package: Package) -> Described:
    path = os.path.join(location, "__init__.py")
    result: dict[str, Any] = {"cuda_build": known(True, f"name of {package.name}")}
    major = re.search(r"cuda(\d+)", package.name)
    if major:
        result["built_cuda"] = known(major[1], f"name of {package.name}")
    loads = re.search(r"[\"'](libcudnn\.so\.\d+)[\"']", _text(path))
    if loads:
        result["cudnn_soname"] = known(loads[1], path)
    return result


def _jaxlib(_: str, package: Package) -> Described:
    local = re.search(r"\+cuda(\d+)\.cudnn(\d)(\d*)", package.version)  # 0.4.29+cuda12.cudnn91 and older
    if not local:
        return {"cuda_build": known(False, "no jax-cuda plugin is installed")}
    source = f"version of {package.name}"
    return {
        "cuda_build": known(True, source),
        "built_cuda": known(local[1], source),
        "built_cudnn": known(".".join(filter(None, (local[2], local[3]))), source),
    }


def _mxnet(location: str, package: Package) -> Described:
    result: dict[str, Any] = {"cudnn_soname": _named_cudnn(os.path.join(location, "libmxnet.so"))}
    digits = re.search(r"-cu(\d+)(\d)$", package.name)  # mxnet-cu112
    result["cuda_build"] = known(bool(digits), f"name of {package.name}")
    if digits:
        result["built_cuda"] = known(f"{digits[1]}.{digits[2]}", f"name of {package.name}")
    return result


def _onnxruntime(location: str, package: Package) -> Described:
    path = os.path.join(location, "capi/build_and_package_info.py")
    provider = os.path.join(location, "capi/libonnxruntime_providers_cuda.so")
    if not os.path.exists(provider) and not os.path.exists(provider.replace("lib", "", 1).replace(".so", ".dll")):
        return {"cuda_build": known("gpu" in package.name, f"name of {package.name}")}
    cuda = _literals(_text(path)).get("cuda_version")
    linked = _linked_cudnn(provider)  # up to 1.30; from 1.31 on it is opened where it is there, and not needed
    init = _text(location, "__init__.py")
    optional = re.search(r"\"(libcudnn\.so\.\d+)\"", init) if isinstance(linked, Absent) else None
    named = known(optional[1], f"{location}/__init__.py") if optional else _named_cudnn(provider)
    return {
        "cuda_build": known(True, provider),
        "cudnn_soname": named,
        "cudnn_need": "opened" if isinstance(linked, Known) else "optional",
        "call_before": "onnxruntime.preload_dlls()" if "def preload_dlls" in init else "",
        **({"built_cuda": known(str(cuda), path)} if cuda else {}),
    }


def _ctranslate2(location: str, _: Package) -> Described:
    libraries = sorted(glob(os.path.join(escape(location) + ".libs", "libctranslate2-*")))
    blas = next((m for m in (_in_rodata(p, rb"libcublas\.so\.\d+(?=\0)") for p in libraries) if m), b"")
    if not blas:
        return {}
    source = f"{blas.decode()} named in {libraries[0]}"
    return {
        "cuda_build": known(True, source),
        "built_cuda": known(blas.decode().rpartition(".")[2], source),
        "cudnn_soname": _named_cudnn(*libraries),
    }


def _paddle(location: str, package: Package) -> Described:
    path = os.path.join(location, "version/__init__.py")
    values = _literals(_text(path))
    cuda, cudnn = str(values.get("cuda_version", "")), str(values.get("cudnn_version", ""))
    result: dict[str, Any] = {"cuda_build": known("gpu" in package.name, f"name of {package.name}")}
    if cuda[:1].isdigit():
        result |= {"built_cuda": known(cuda, path), "cuda_build": known(True, path)}
    if cudnn[:1].isdigit():
        result["built_cudnn"] = known(cudnn, path)
    return result


def _cupy(location: str, package: Package) -> Described:
    import msgspec

    result: dict[str, Any] = {"cuda_build": known(True, f"name of {package.name}")}
    digits = re.search(r"-cuda(\d+)(\d|x)$", package.name)  # cupy-cuda112, cupy-cuda12x
    if digits:
        version = digits[1] if digits[2] == "x" else f"{digits[1]}.{digits[2]}"
        result["built_cuda"] = known(version, f"name of {package.name}")
    path = os.path.join(location, ".data/_wheel.json")
    try:
        cudnn = msgspec.json.decode(_text(path) or "{}").get("cudnn") or {}
        result["built_cudnn"] = known(str(cudnn["version"]), path)
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
        pass
    return result


# What a framework does without a cuDNN; the others try to open one when they first use a GPU.
_NEEDS: dict[str, Literal["linked", "opened", "optional"]] = {
    "torch": "linked",
    "mxnet": "linked",
    "ctranslate2": "linked",
    "cupy": "optional",  # cupy.cuda.cudnn is imported where it can be; gone from 14 on
}
_TF = r"tensorflow(-gpu|-cpu|-intel|-rocm|-macos|-aarch64|-cpu-aws)?|tf-nightly(-gpu|-cpu)?"
# Distributions by regular expression, the folder below the package folder, what reads it.
_READERS: tuple[tuple[Name, str, str, Callable[[str, Package], Described]], ...] = (
    ("tensorflow", _TF, "tensorflow", _tensorflow),
    ("torch", "torch", "torch", _torch),
    ("jax", r"jax-cuda\d+-plugin", "jax_plugins/xla_cuda*", _jax),
    ("jax", "jaxlib", "jaxlib", _jaxlib),
    ("mxnet", r"mxnet(-cu\d+\w*|-mkl|-native)?", "mxnet", _mxnet),
    ("onnxruntime", r"onnxruntime(-gpu|-training)?|ort-nightly(-gpu)?", "onnxruntime", _onnxruntime),
    ("ctranslate2", "ctranslate2", "ctranslate2", _ctranslate2),
    ("paddle", r"paddlepaddle(-gpu)?", "paddle", _paddle),
    ("cupy", r"cupy(-cuda\d+x?)?", "cupy", _cupy),
)
