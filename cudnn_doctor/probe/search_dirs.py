"""The folders in which CUDA libraries lie, in one order for all: nearest to the user's will first.

Each comes with the name of the way that leads there, which becomes `found_by` of what is found in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from glob import escape, glob
from pathlib import Path

from cudnn_doctor.model.facts import Framework, TargetEnv
from cudnn_doctor.probe.elf import ElfError, read_dynamic
from cudnn_doctor.probe.ldcache import read_ld_cache
from cudnn_doctor.probe.root_files import at

LD_LIBRARY_PATH, LD_PRELOAD, CACHE = "LD_LIBRARY_PATH", "LD_PRELOAD", "ld.so.cache"
SITE, CONDA, TOOLKIT, WINDOWS_PATH = "site-packages", "conda", "CUDA toolkit", "PATH"
DEFAULT, USUAL = "default directories", "usual folders"  # the linker's own; others that people use
_TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_DIR", "CUDNN_PATH", "CUDNN_HOME")
_DEFAULTS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
_TRIPLETS = ("x86_64-linux-gnu", "aarch64-linux-gnu")


def library_folders(
    patient: TargetEnv,
    environ: Mapping[str, str],
    root: Path,
    prefixes: tuple[str, ...],
    frameworks: Sequence[Framework] = (),
) -> Iterator[tuple[str, str]]:
    """(folder, way) pairs of existing folders; a folder can come by several ways.

    Args:
        prefixes: how names of the libraries begin that are looked for; only these count in ld.so.cache.
        frameworks: whose DT_RPATH and DT_RUNPATH lead to more folders.
    """
    seen: set[tuple[str, str]] = set()
    for folder, way in _candidates(patient, environ, root, prefixes, frameworks):
        if (folder, way) not in seen and os.path.isdir(folder):
            yield folder, way
        seen.add((folder, way))


def _candidates(
    patient: TargetEnv,
    environ: Mapping[str, str],
    root: Path,
    prefixes: tuple[str, ...],
    frameworks: Sequence[Framework],
) -> Iterator[tuple[str, str]]:
    for folder in environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":") if os.name != "nt" else ():
        if folder:
            yield folder, LD_LIBRARY_PATH
    for site in patient.site_packages:
        for pattern in ("nvidia/*/lib", "nvidia/*/bin", "nvidia/*/bin/x86_64", "torch/lib", "*.libs"):
            for folder in sorted(glob(os.path.join(escape(site), pattern))):
                yield folder, SITE
    for framework in frameworks:
        for library in framework_libraries(framework):
            for folder in _search_path(library):
                yield folder, f"RPATH of {library}"
    if os.path.isdir(os.path.join(patient.prefix, "conda-meta")):
        yield os.path.join(patient.prefix, "lib"), CONDA
        yield os.path.join(patient.prefix, "Library", "bin"), CONDA
    for toolkit, _ in toolkit_roots(environ, root):
        for name in ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "bin", "bin/x64"):
            yield os.path.join(toolkit, name), TOOLKIT
    for name, path in read_ld_cache(root):
        if name.startswith(prefixes):
            yield os.path.dirname(at(root, path)), CACHE
    for folder in _DEFAULTS:
        yield at(root, folder), DEFAULT
        for triplet in _TRIPLETS:
            yield at(root, f"{folder}/{triplet}"), DEFAULT
    for folder in ("/usr/local/lib", "/usr/local/lib64"):
        yield at(root, folder), USUAL
    for folder in environ.get("PATH", "").split(os.pathsep) if os.name == "nt" else ():
        if folder:
            yield folder, WINDOWS_PATH


def toolkit_roots(environ: Mapping[str, str], root: Path) -> Iterator[tuple[str, str]]:
    """(folder, way) of CUDA toolkits, existing ones only; links and their targets both come."""
    for variable in _TOOLKIT_VARIABLES:
        value = environ.get(variable, "")
        if value and os.path.isdir(value):
            yield value, variable
    for pattern in ("/usr/local/cuda*", "/opt/cuda*", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"):
        for folder in sorted(glob(escape(str(root).rstrip("/")) + pattern)):
            if os.path.isdir(folder):
                yield folder, pattern.replace("*", "")
    for folder in environ.get("PATH", "").split(os.pathsep):
        nvcc = os.path.join(folder, "nvcc")
        if folder and os.path.isfile(nvcc):
            yield os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "nvcc on PATH"


def framework_libraries(framework: Framework) -> tuple[str, ...]:
    """The libraries of a framework whose code asks for cuDNN, in the order in which they come to it."""
    where = framework.location
    names = {
        "tensorflow": (
            "libtensorflow_framework.so.2",
            "libtensorflow_framework.so.1",
            "libtensorflow_framework.so",
            "python/_pywrap_tensorflow_internal.so",
        ),
        "torch": ("lib/libtorch_python.so", "lib/libtorch_cuda.so"),
        "jax": ("xla_cuda_plugin.so", "xla_extension.so"),
        "mxnet": ("libmxnet.so",),
        "onnxruntime": ("capi/libonnxruntime_providers_cuda.so", "capi/libonnxruntime_providers_tensorrt.so"),
        "ctranslate2": ("_ext.*.so", "../ctranslate2.libs/libctranslate2-*"),  # only _ext has the DT_RPATH
        "paddle": ("base/libpaddle.so", "fluid/libpaddle.so", "fluid/core_avx.so"),
        "cupy": ("../cupy_backends/cuda/libs/cudnn.*.so",),
    }[framework.name]
    return tuple(p for name in names for p in sorted(glob(os.path.join(escape(where), name))))


def _search_path(library: str) -> tuple[str, ...]:
    """DT_RPATH and DT_RUNPATH of a library with $ORIGIN filled in, without what is not there."""
    try:
        dynamic = read_dynamic(library)
    except (OSError, ElfError):
        return ()
    origin = os.path.dirname(library)
    written = dict.fromkeys((*dynamic.rpath, *dynamic.runpath))
    return tuple(
        folder
        for folder in (w.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for w in written if w)
        if os.path.isdir(folder)
    )
