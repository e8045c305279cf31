"""Which copy wins, for frameworks laid out as their wheels are and against real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Framework, Resolution, TargetEnv
from cudnn_doctor.probe.cudnn_copies import find_cudnn
from cudnn_doctor.probe.frameworks import probe_frameworks
from cudnn_doctor.probe.loader import PLAIN, resolutions, resolve
from cudnn_doctor.probe.packages import probe_packages
from cudnn_doctor.probe.target_env import find_target_env
from tests.native.wheel import real_cudnn
from tests.probe.elf_builder import library, needs_gcc
from tests.probe.site import patient, wheel
from tests.probe.test_frameworks import BUILD_INFO, TF_2_17, TF_2_17_REQUIRES
from tests.probe.test_ldcache import X86, cache_file

pytestmark = needs_gcc

# What torch/__init__.py does in four releases, cut to what matters; names, quotes and order are those of the wheels.
_SEARCH_2_1 = """
def _preload_cuda_deps(lib_folder, lib_name):
    assert platform.system() == 'Linux', 'Should only be called on Linux'
    import glob
    lib_path = None
    for path in sys.path:
        nvidia_path = os.path.join(path, 'nvidia')
        if not os.path.exists(nvidia_path):
            continue
        candidate_lib_paths = glob.glob(os.path.join(nvidia_path, lib_folder, 'lib', lib_name))
        if candidate_lib_paths and not lib_path:
            lib_path = candidate_lib_paths[0]
        if lib_path:
            break
    if not lib_path:
        raise ValueError(f"{lib_name} not found in the system path {sys.path}")
    ctypes.CDLL(lib_path)
"""
TORCH_2_1 = (
    _SEARCH_2_1
    + """
# See Note [Global dependencies]
def _load_global_deps() -> None:
    lib_name = 'libtorch_global_deps' + ('.dylib' if platform.system() == 'Darwin' else '.so')
    lib_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib', lib_name)
    try:
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
    except OSError as err:
        cuda_libs: Dict[str, str] = {
            'cublas': 'libcublas.so.*[0-9]',
            'cudnn': 'libcudnn.so.*[0-9]',
        }
        is_cuda_lib_err = [lib for lib in cuda_libs.values() if(lib.split('.')[0] in err.args[0])]
        if not is_cuda_lib_err:
            raise err
        for lib_folder, lib_name in cuda_libs.items():
            _preload_cuda_deps(lib_folder, lib_name)
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
"""
)
TORCH_2_6 = (
    _SEARCH_2_1
    + """
def _load_global_deps() -> None:
    lib_name = f"libtorch_global_deps{lib_ext}"
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
        try:
            with open("/proc/self/maps") as f:
                _maps = f.read()
            if "nvidia/cuda_runtime/lib/libcudart.so" not in _maps:
                return
            _preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")
        except Exception:
            pass
    except OSError as err:
        cuda_libs: _Dict[str, str] = {
            "cublas": "libcublas.so.*[0-9]",
            "cudnn": "libcudnn.so.*[0-9]",
            "cuda_runtime": "libcudart.so.*[0-9]",
        }
        for lib_folder, lib_name in cuda_libs.items():
            _preload_cuda_deps(lib_folder, lib_name)
"""
)
_SEARCH_2_11 = """
def _get_cuda_dep_paths(path: str, lib_folder: str, lib_name: str) -> list[str]:
    from torch.version import cuda as cuda_version
    nvidia_lib_paths = glob.glob(
        os.path.join(path, "nvidia", lib_folder, "lib", lib_name)
    )
    if cuda_version is not None:
        maj_cuda_version = cuda_version.split(".")[0]
        nvidia_lib_paths += glob.glob(
            os.path.join(path, "nvidia", f"cu{maj_cuda_version}", "lib", lib_name)
        )
    lib_paths = glob.glob(os.path.join(path, lib_folder, "lib", lib_name))
    return nvidia_lib_paths + lib_paths
def _preload_cuda_lib(lib_folder: str, lib_name: str, required: bool = True) -> None:  # type: ignore[valid-type]
    lib_path = None
    for path in sys.path:
        candidate_lib_paths = _get_cuda_dep_paths(path, lib_folder, lib_name)
        if candidate_lib_paths:
            lib_path = candidate_lib_paths[0]
            break
    if not lib_path and required:
        raise ValueError(f"{lib_name} not found in the system path {sys.path}")
    if lib_path:
        ctypes.CDLL(lib_path)
"""
TORCH_2_11 = (
    _SEARCH_2_11
    + """
def _preload_cuda_deps(err: OSError | None = None) -> None:
    cuda_libs: list[tuple[str, str]] = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cudnn", "libcudnn.so.*[0-9]"),
    ]
    if err is not None and not [
        lib for _, lib in cuda_libs if lib.split(".", 1)[0] in err.args[0]
    ]:
        raise err
    for lib_folder, lib_name in cuda_libs:
        _preload_cuda_lib(lib_folder, lib_name)
    _preload_cuda_lib("nvtx", "libnvToolsExt.so.*[0-9]", required=False)
def _load_global_deps() -> None:
    lib_name = f"libtorch_global_deps{lib_ext}"
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
        try:
            with open("/proc/self/maps") as f:
                _maps = f.read()
            if "libcudart.so" not in _maps:
                return
            _preload_cuda_deps()
        except Exception:
            pass
    except OSError as err:
        _preload_cuda_deps(err)
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
"""
)
TORCH_2_14 = (
    TORCH_2_11.replace("None = None)", "None = None, required: bool = True)")
    .replace("(lib_folder, lib_name)\n    _pre", "(lib_folder, lib_name, required=required)\n    _pre")
    .replace("_preload_cuda_deps()", "_preload_cuda_deps(required=False)")
)
JAX = '_load("cudnn", ["libcudnn.so.9"])\n'
TF_RUNPATH = ["$ORIGIN/", "$ORIGIN/../../nvidia/cudnn/lib", "$ORIGIN/../nvidia/cudnn/lib"]
WHEEL_PARTS = ("graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled")


def cudnn(folder: Path, major: int = 9, *, shim: str = "runpath", parts: tuple[str, ...] = WHEEL_PARTS) -> Path:
    """A cuDNN with the search paths of NVIDIA's wheels: `shim` is how libcudnn.so.N names its folder."""
    library(folder / f"libcudnn.so.{major}", soname=f"libcudnn.so.{major}", **{shim: ["$ORIGIN"]})  # type: ignore[arg-type]
    runpath = ["$ORIGIN", "$ORIGIN/../../cublas/lib", "$ORIGIN/../../cuda_nvrtc/lib"]
    for part in parts:
        library(folder / f"libcudnn_{part}.so.{major}", soname=f"libcudnn_{part}.so.{major}", runpath=runpath)
    return folder


def torch(site: Path, init: str, *, rpath: bool = True, cudart_in: str = "nvidia/cuda_runtime/lib") -> None:
    wheel(site, "torch", "2.11.0", requires=["nvidia-cudnn-cu12==9.1.0.70"])
    (site / "torch/lib").mkdir(parents=True)
    (site / "torch/version.py").write_text("__version__ = '2.11.0'\ncuda = '12.4'\n")
    (site / "torch/__init__.py").write_text(init)
    cudart = library(site / cudart_in / "libcudart.so.12", soname="libcudart.so.12")
    paths = ["$ORIGIN", f"$ORIGIN/../../{cudart_in}", *(["$ORIGIN/../../nvidia/cudnn/lib"] if rpath else [])]
    library(site / "torch/lib/libtorch_global_deps.so", needed=[("", cudart)], rpath=paths)
    linked = library(site / "build/libcudnn.so.9", soname="libcudnn.so.9")
    cuda = library(site / "torch/lib/libtorch_cuda.so", soname="libtorch_cuda.so", needed=[("", linked)], rpath=paths)
    python = library(
        site / "torch/lib/libtorch_python.so", soname="libtorch_python.so", needed=[("", cuda)], rpath=paths
    )
    library(site / "torch/_C.cpython-312-x86_64-linux-gnu.so", needed=[("", python)], rpath=["$ORIGIN/lib"])


def look(
    who: TargetEnv, environ: Mapping[str, str], root: Path
) -> tuple[tuple[CudnnCopy, ...], tuple[Framework, ...], tuple[Resolution, ...]]:
    packages = probe_packages(who)
    found = probe_frameworks(who, packages)
    copies = find_cudnn(who, environ, root, packages, found)
    return copies, found, resolutions(who, found, copies, environ, root)


def winners(all_of_them: tuple[Resolution, ...], soname: str = "libcudnn.so.9") -> dict[str, tuple[str, str]]:
    return {r.consumer: (value_or(r.path, ""), r.step) for r in all_of_them if r.wanted == soname}


def test_torch_2_11_preloads_the_wheel_and_is_deaf_to_ld_library_path(tmp_path: Path) -> None:
    site = tmp_path / "site"
    wheels, other = cudnn(site / "nvidia/cudnn/lib"), cudnn(tmp_path / "other")
    library(site / "nvidia/cublas/lib/libcublasLt.so.12", soname="libcublasLt.so.12")
    torch(site, TORCH_2_11)
    _, _, found = look(patient(tmp_path, site), {"LD_LIBRARY_PATH": str(other)}, tmp_path / "root")
    assert winners(found) == {
        PLAIN: (f"{other}/libcudnn.so.9", "LD_LIBRARY_PATH"),
        "torch": (f"{wheels}/libcudnn.so.9", "preloaded by torch/__init__.py"),
    }
    (mine,) = (r for r in found if r.consumer == "torch")
    assert mine.shadowed == (f"{other}/libcudnn.so.9",)


def test_torch_2_14_preloads_pythonpaths_copy_and_passes_over_what_is_not_there(tmp_path: Path) -> None:
    """2.14 writes `_preload_cuda_deps(required=False)`: without the cuBLAS wheel cuDNN is opened, along sys.path."""
    site, first = tmp_path / "site", tmp_path / "pythonpath"
    cudnn(site / "nvidia/cudnn/lib")
    other = cudnn(first / "nvidia/cudnn/lib")
    torch(site, TORCH_2_14)
    who = patient(tmp_path, first, site)
    assert winners(look(who, {}, tmp_path / "root")[2])["torch"] == (
        f"{other}/libcudnn.so.9",
        "preloaded by torch/__init__.py",
    )


def test_torch_that_preloads_in_an_unknown_way_is_not_called_known(tmp_path: Path) -> None:
    site = tmp_path / "site"
    cudnn(site / "nvidia/cudnn/lib")
    torch(site, TORCH_2_14.replace("for path in sys.path:", "for path in _folders():"))
    (mine,) = (r for r in look(patient(tmp_path, site), {}, tmp_path / "root")[2] if r.consumer == "torch")
    assert mine.path == Absent(
        reason="error",
        detail=f"{site}/torch/__init__.py opens libraries of the wheels in a way that is not known here",
    )
    assert mine.stopped_at == ""


def test_torch_with_a_damaged_cudnn_names_the_file_that_ends_the_search(tmp_path: Path) -> None:
    site = tmp_path / "site"
    wheels = cudnn(site / "nvidia/cudnn/lib")
    (wheels / "libcudnn.so.9").write_bytes(b"")
    torch(site, TORCH_2_1)
    (mine,) = (r for r in look(patient(tmp_path, site), {}, tmp_path / "root")[2] if r.consumer == "torch")
    assert mine.path == Absent(reason="error", detail=f"{wheels}/libcudnn.so.9: file too short")
    assert mine.stopped_at == f"{wheels}/libcudnn.so.9"


def test_torch_2_11_without_the_cublas_wheel_preloads_nothing_and_goes_by_rpath(tmp_path: Path) -> None:
    site = tmp_path / "site"
    wheels, other = cudnn(site / "nvidia/cudnn/lib"), cudnn(tmp_path / "other")
    torch(site, TORCH_2_11)
    _, _, found = look(patient(tmp_path, site), {"LD_LIBRARY_PATH": str(other)}, tmp_path / "root")
    assert winners(found)["torch"] == (
        f"{wheels}/libcudnn.so.9",
        f"DT_RPATH of {site}/torch/lib/libtorch_cuda.so",
    )


def test_torch_2_6_preloads_only_when_its_global_deps_fail(tmp_path: Path) -> None:
    site, user = tmp_path / "site", tmp_path / "user"
    wheels, other = cudnn(user / "nvidia/cudnn/lib"), cudnn(tmp_path / "other")
    library(user / "nvidia/cublas/lib/libcublas.so.12", soname="libcublas.so.12")
    torch(site, TORCH_2_6, rpath=False)
    who, environ = patient(tmp_path, user, site), {"LD_LIBRARY_PATH": str(other)}
    assert winners(look(who, environ, tmp_path / "root")[2])["torch"] == (
        f"{other}/libcudnn.so.9",
        "LD_LIBRARY_PATH",
    )
    (site / "nvidia/cuda_runtime/lib/libcudart.so.12").unlink()
    assert winners(look(who, environ, tmp_path / "root")[2])["torch"] == (
        f"{wheels}/libcudnn.so.9",
        "preloaded by torch/__init__.py",
    )


def test_preloading_by_the_user_wins_over_everything(tmp_path: Path) -> None:
    site = tmp_path / "site"
    cudnn(site / "nvidia/cudnn/lib")
    mine = cudnn(tmp_path / "mine")
    library(site / "nvidia/cublas/lib/libcublasLt.so.12", soname="libcublasLt.so.12")
    torch(site, TORCH_2_11)
    _, _, found = look(patient(tmp_path, site), {"LD_PRELOAD": f"{mine}/libcudnn.so.9"}, tmp_path / "root")
    assert set(winners(found).values()) == {(f"{mine}/libcudnn.so.9", "LD_PRELOAD")}


def tensorflow(site: Path) -> None:
    wheel(site, "tensorflow", "2.17.0", {BUILD_INFO: TF_2_17.encode()}, TF_2_17_REQUIRES)
    framework = library(
        site / "tensorflow/libtensorflow_framework.so.2", soname="libtensorflow_framework.so.2", runpath=TF_RUNPATH
    )
    library(site / "tensorflow/python/_pywrap_tensorflow_internal.so", needed=[("", framework)], runpath=["$ORIGIN/.."])


def test_tensorflow_2_17_follows_ld_library_path_before_its_own_wheel(tmp_path: Path) -> None:
    """As TensorFlow 2.17.0's own CachedDsoLoader::GetCudnnDsoHandle does, called on the real library."""
    site = tmp_path / "site"
    parts = ("ops_infer", "cnn_infer")
    wheels = cudnn(site / "nvidia/cudnn/lib", 8, parts=parts)
    other = cudnn(tmp_path / "other", 8, parts=parts)
    tensorflow(site)
    who = patient(tmp_path, site)
    assert winners(look(who, {}, tmp_path / "root")[2], "libcudnn.so.8") == {
        PLAIN: ("", ""),
        "tensorflow": (
            f"{wheels}/libcudnn.so.8",
            f"DT_RUNPATH of {site}/tensorflow/libtensorflow_framework.so.2",
        ),
    }
    found = look(who, {"LD_LIBRARY_PATH": str(other)}, tmp_path / "root")[2]
    assert winners(found, "libcudnn.so.8")["tensorflow"] == (f"{other}/libcudnn.so.8", "LD_LIBRARY_PATH")


def test_a_wanted_major_that_is_nowhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    cudnn(site / "nvidia/cudnn/lib", 9)
    tensorflow(site)
    _, _, found = look(patient(tmp_path, site), {}, tmp_path / "root")
    (mine,) = (r for r in found if r.consumer == "tensorflow")
    assert mine.wanted == "libcudnn.so.8"
    assert isinstance(mine.path, Absent)
    assert mine.path.detail == f"libcudnn.so.8 is in none of {len(mine.steps)} places"
    assert (f"{site}/nvidia/cudnn/lib", False) in {(s.directory, s.found) for s in mine.steps}


@pytest.mark.parametrize("preloads", [True, False])
def test_jax_preloads_the_wheel_or_goes_by_its_rpath(tmp_path: Path, preloads: bool) -> None:
    site = tmp_path / "site"
    wheels, other = cudnn(site / "nvidia/cudnn/lib"), cudnn(tmp_path / "other")
    init = JAX if preloads else "# an older plugin\n"
    pin = ["nvidia-cudnn-cu12<10.0,>=9.1"]
    wheel(site, "jax-cuda12-plugin", "0.11.2", {"jax_plugins/xla_cuda12/__init__.py": init.encode()}, pin)
    plugin = library(site / "jax_plugins/xla_cuda12/xla_cuda_plugin.so", rpath=["$ORIGIN/../../nvidia/cudnn/lib"])
    _, _, found = look(patient(tmp_path, site), {"LD_LIBRARY_PATH": str(other)}, tmp_path / "root")
    step = "preloaded by jax_plugins/xla_cuda12/__init__.py" if preloads else f"DT_RPATH of {plugin}"
    assert winners(found)["jax"] == (f"{wheels}/libcudnn.so.9", step)


def own(found: tuple[Resolution, ...], copy: Path) -> dict[str, str]:
    """What a copy opens: wanted -> folder below the test's, or "" where nothing is found."""
    mine = [r for r in found if r.consumer == f"{copy}/libcudnn.so.9"]
    return {r.wanted: os.path.basename(os.path.dirname(value_or(r.path, ""))) for r in mine}


def test_sub_libraries_follow_ld_library_path_and_mix(tmp_path: Path) -> None:
    """cuDNN 9.1's libcudnn.so.9 has a DT_RUNPATH, 9.27's a DT_RPATH; all sub-libraries have a DT_RUNPATH."""
    old, new = cudnn(tmp_path / "old", parts=("graph", "engines_precompiled")), cudnn(tmp_path / "new", shim="rpath")
    environ = {"LD_LIBRARY_PATH": f"{old}:{new}"}
    _, _, found = look(patient(tmp_path), environ, tmp_path / "root")
    parts = {name: folder for name, folder in own(found, new).items() if "cudnn" in name}
    assert parts == {
        "libcudnn_graph.so.9": "new",
        "libcudnn_ops.so.9": "new",
        "libcudnn_cnn.so.9": "new",
        "libcudnn_adv.so.9": "new",
        "libcudnn_heuristic.so.9": "new",
        "libcudnn_engines_runtime_compiled.so.9": "new",
        "libcudnn_engines_precompiled.so.9": "old",
    }
    parts = {name: folder for name, folder in own(found, old).items() if "cudnn" in name}
    assert parts["libcudnn_graph.so.9"] == "old"
    assert parts["libcudnn_ops.so.9"] == "new"  # what the old copy lacks it takes from the new one


def test_helper_libraries_and_who_asks_for_them(tmp_path: Path) -> None:
    site = tmp_path / "site"
    lib = cudnn(site / "nvidia/cudnn/lib")
    files = {f"nvidia/cudnn/lib/{p.name}": p.read_bytes() for p in lib.iterdir()}
    wheel(site, "nvidia-cudnn-cu12", "9.1.0.70", files)
    library(site / "nvidia/cublas/lib/libcublasLt.so.12", soname="libcublasLt.so.12")
    _, _, found = look(patient(tmp_path, site), {}, tmp_path / "root")
    steps = {r.wanted: r.step for r in found if r.consumer == f"{lib}/libcudnn.so.9"}
    assert steps["libcublasLt.so.12"] == f"DT_RUNPATH of {lib}/libcudnn_engines_precompiled.so.9"
    assert (steps["libnvrtc.so.12"], steps["libcuda.so.1"], steps["libz.so.1"]) == ("", "", "")


def test_resolve_as_a_function(tmp_path: Path) -> None:
    folder = cudnn(tmp_path / "a", parts=())
    cached = resolve("libcudnn.so.9", {}, [("libcudnn.so.9", f"{folder}/libcudnn.so.9")])
    assert (cached.consumer, cached.step, value_or(cached.real_path, "")) == (
        PLAIN,
        "ld.so.cache",
        f"{folder}/libcudnn.so.9",
    )
    asker = library(tmp_path / "libask.so", rpath=["$ORIGIN/a"])
    asked = resolve("libcudnn.so.9", {}, (), consumer="mine", library=str(asker))
    assert (asked.consumer, asked.step) == ("mine", f"DT_RPATH of {asker}")
    preloads = [f"{folder}/libcudnn.so.9"]
    assert resolve("libcudnn.so.9", {}, (), preloads=preloads).step == f"preloaded: {preloads[0]}"


def test_the_cache_below_a_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    cudnn(root / "opt/cudnn/lib", parts=())
    (root / "etc").mkdir()
    (root / "etc/ld.so.cache").write_bytes(cache_file([(X86, "libcudnn.so.9", "/opt/cudnn/lib/libcudnn.so.9")]))
    copies, _, found = look(patient(tmp_path), {}, root)
    assert [c.found_by for c in copies] == [("ld.so.cache",)]
    assert winners(found)[PLAIN] == (f"{root}/opt/cudnn/lib/libcudnn.so.9", "ld.so.cache")


CHILD = """
import ctypes, json, os, sys
for name in sys.argv[1:]:
    try: ctypes.CDLL(name)
    except OSError as e: print(e, file=sys.stderr)
print(json.dumps(sorted({l.split()[-1] for l in open("/proc/self/maps") if "libcudnn" in l})))
"""


def really_loaded(environ: Mapping[str, str], *names: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", CHILD, *names], env=dict(environ), capture_output=True, text=True, check=True
    )
    paths: list[str] = json.loads(done.stdout)
    return paths


@pytest.mark.parametrize("case", ["nothing", "library path", "preload", "link", "damaged first"])
def test_a_plain_dlopen_of_this_python_as_a_real_process_does_it(tmp_path: Path, case: str) -> None:
    first, second = cudnn(tmp_path / "first", parts=()), cudnn(tmp_path / "second", parts=())
    environ: dict[str, str] = {}
    if case != "nothing":
        environ["LD_LIBRARY_PATH"] = f"{tmp_path}/gone:{first}:{second}"
    if case == "preload":
        environ["LD_PRELOAD"] = f"{second}/libcudnn.so.9"
    elif case == "link":
        (first / "libcudnn.so.9").rename(first / "libcudnn.so.9.3.0")
        (first / "libcudnn.so.9").symlink_to("libcudnn.so.9.3.0")
    elif case == "damaged first":
        (first / "libcudnn.so.9").write_bytes(b"")
    who = find_target_env(None, {})
    copies = find_cudnn(who, environ)
    found = [r for r in resolutions(who, (), copies, environ) if (r.consumer, r.wanted) == (PLAIN, "libcudnn.so.9")]
    mine = [r.real_path.value for r in found if isinstance(r.real_path, Known)]
    assert mine == really_loaded(environ, "libcudnn.so.9")
    if case != "nothing":  # a machine may have a cuDNN of its own
        assert bool(mine) == (case != "damaged first")


def test_a_real_cudnn_is_found_with_its_version_and_parts() -> None:
    jit = real_cudnn().parent
    who = find_target_env(None, {"PYTHONPATH": str(jit.parents[2])})
    copies, _, found = look(who, {}, Path("/"))
    (copy,) = (c for c in copies if c.directory == os.path.realpath(jit))
    assert (copy.kind, copy.soname) == ("jit", "libcudnn.so.9")
    assert len({r.value for r in copy.version_readings}) == 1  # wheel and header agree
    mine = {r.wanted: value_or(r.real_path, "") for r in found if r.consumer == copy.real_path}
    for part in ("graph", "engines_runtime_compiled"):
        assert mine[f"libcudnn_{part}.so.9"] == f"{copy.directory}/libcudnn_{part}.so.9"


def test_ctranslate2_finds_its_bundled_copy_by_the_rpath_of_its_extension_module(tmp_path: Path) -> None:
    """As in the wheel 4.6.0: libctranslate2 has no search path; _ext's DT_RPATH serves what it loads."""
    site = tmp_path / "site"
    wheel(site, "ctranslate2", "4.6.0")
    libs, name = site / "ctranslate2.libs", "libcudnn-74a4c495.so.9.1.0"
    bundled = library(libs / name, soname=name)
    core = library(
        libs / "libctranslate2-c75cca97.so.4.6.0",
        soname="libctranslate2-c75cca97.so.4.6.0",
        needed=[("", bundled)],
        text='const char *blas(void) { return "libcublas.so.12"; }\n',
    )
    extension = "_ext.cpython-312-x86_64-linux-gnu.so"
    library(site / "ctranslate2" / extension, needed=[("", core)], rpath=["$ORIGIN/../ctranslate2.libs"])
    found = look(patient(tmp_path, site), {}, tmp_path / "root")[2]
    path, step = winners(found, name)["ctranslate2"]
    assert (os.path.realpath(path), step) == (str(bundled), f"DT_RPATH of {site}/ctranslate2/{extension}")
