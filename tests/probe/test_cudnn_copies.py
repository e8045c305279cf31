"""Every copy of cuDNN, each once, with what its files and packages say. Layouts as wheels, debs, archives make them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cudnn_doctor.live.questions import Answer
from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.facts import CudnnCopy, TargetEnv
from cudnn_doctor.model.live import Termination
from cudnn_doctor.probe.cudnn_copies import find_cudnn, with_answers
from tests.probe.elf_builder import library, needs_gcc
from tests.probe.machine import link, put
from tests.probe.site import patient, wheel
from tests.probe.test_ldcache import X86, cache_file

PARTS = ("adv", "cnn", "engines_precompiled", "engines_runtime_compiled", "graph", "heuristic", "ops")
DEBIAN = "/usr/lib/x86_64-linux-gnu"


def cudnn_wheel(site: Path, name: str = "nvidia-cudnn-cu12", version: str = "9.1.0.70", fill: bytes = b"x") -> Path:
    folder = "nvidia/cudnn_jit/lib" if "jit" in name else "nvidia/cudnn/lib"
    parts = ("engines_runtime_compiled", "graph") if "jit" in name else PARTS
    files = {f"{folder}/libcudnn.so.9": fill * 100, f"{folder}/__init__.py": b""}
    files |= {f"{folder}/libcudnn_{part}.so.9": fill * (200 + i) for i, part in enumerate(parts)}
    wheel(site, name, version, files)
    return site / folder


def debian(root: Path, version: str = "9.14.0") -> None:
    files = {f"{DEBIAN}/libcudnn{part}.so.{version}": b"x" for part in ("", *(f"_{p}" for p in PARTS))}
    put(root, files)
    for part in ("", *(f"_{p}" for p in PARTS)):
        link(root, f"{DEBIAN}/libcudnn{part}.so.9", f"libcudnn{part}.so.{version}")
        link(root, f"{DEBIAN}/libcudnn{part}.so", f"libcudnn{part}.so.9")
    link(root, "/lib", "usr/lib")
    put(
        root,
        {
            f"{DEBIAN}/libcudnn_static.a": b"x",
            "/var/lib/dpkg/info/libcudnn9-cuda-13.list": "".join(f"{f}\n" for f in files),
            "/var/lib/dpkg/status": "Package: adduser\nVersion: 3.0\n\nPackage: libcudnn9-cuda-13\n"
            f"Status: hold ok installed\nVersion: {version}.64-1\n\nPackage: zlib1g\nVersion: 1.3\n",
            "/etc/ld.so.cache": cache_file([(X86, "libcudnn.so.9", "/lib/x86_64-linux-gnu/libcudnn.so.9")]),
        },
    )


def nobody(root: Path) -> TargetEnv:
    return patient(root / "env")


def test_a_wheel(tmp_path: Path) -> None:
    site = tmp_path / "site"
    lib = cudnn_wheel(site)
    (copy,) = find_cudnn(patient(tmp_path, site), {}, tmp_path / "root")
    source = "metadata of nvidia-cudnn-cu12 9.1.0.70"
    version = Known(value="9.1.0", source=source)
    assert msgspec.structs.replace(copy, sublibraries=()) == CudnnCopy(
        path=f"{lib}/libcudnn.so.9",
        real_path=f"{lib}/libcudnn.so.9",
        directory=str(lib),
        major=9,
        soname="libcudnn.so.9",
        kind="full",
        found_by=("site-packages",),
        version=version,
        version_readings=(version,),
        cudart=Absent(reason="not-examined", detail="only the library itself says it"),
        package=Known(value="nvidia-cudnn-cu12 9.1.0.70", source=source),
        cuda_flavour=Known(value=12, source=source),
        sublibraries=(),
        size=100,
    )
    assert [(s.name, s.size, s.version) for s in copy.sublibraries] == [
        (f"libcudnn_{part}.so.9", 200 + i, Known(value="9.1.0", source=f"size in RECORD, {source}"))
        for i, part in enumerate(PARTS)
    ]


@needs_gcc
def test_a_library_that_was_cut_off(tmp_path: Path) -> None:
    """Its own headers say how long it was; a file shorter than an ELF header needs that at least."""
    lib = cudnn_wheel(tmp_path)
    for name in ("libcudnn_ops.so.9", "libcudnn_cnn.so.9"):
        library(lib / name)
    whole = (lib / "libcudnn_ops.so.9").read_bytes()
    (lib / "libcudnn_ops.so.9").write_bytes(whole[:2000])
    (lib / "libcudnn_adv.so.9").write_bytes(b"")
    (copy,) = find_cudnn(patient(tmp_path, tmp_path), {}, tmp_path / "root")
    sizes = {s.name: (s.size, s.needed) for s in copy.sublibraries}
    assert sizes["libcudnn_ops.so.9"] == (2000, len(whole))
    assert sizes["libcudnn_cnn.so.9"] == (len(whole), len(whole))
    assert sizes["libcudnn_adv.so.9"] == (0, 64)
    assert sizes["libcudnn_graph.so.9"][1] == 0  # no ELF file: nothing says what it needs


def test_a_foreign_sub_library_in_a_wheels_folder(tmp_path: Path) -> None:
    lib = cudnn_wheel(tmp_path)
    (lib / "libcudnn_ops.so.9").write_bytes(b"another")
    (copy,) = find_cudnn(patient(tmp_path, tmp_path), {}, tmp_path / "root")
    (ops,) = (s for s in copy.sublibraries if s.name == "libcudnn_ops.so.9")
    assert ops.version == Absent(
        reason="not-found",
        detail="not the file that metadata of nvidia-cudnn-cu12 9.1.0.70 lists: 7 bytes, not 206",
    )


def test_two_wheels_in_one_folder_belong_to_the_last(tmp_path: Path) -> None:
    cudnn_wheel(tmp_path, "nvidia-cudnn-cu12", "9.10.2.21", b"a")
    cudnn_wheel(tmp_path, "nvidia-cudnn-cu13", "9.19.0.56", b"b")
    (copy,) = find_cudnn(patient(tmp_path, tmp_path), {}, tmp_path / "root")
    assert copy.package == Known(value="nvidia-cudnn-cu13 9.19.0.56", source="metadata of nvidia-cudnn-cu13 9.19.0.56")
    assert copy.cuda_flavour.value == 13  # type: ignore[union-attr]


def test_the_jit_wheel_is_a_copy_of_its_own(tmp_path: Path) -> None:
    cudnn_wheel(tmp_path)
    cudnn_wheel(tmp_path, "nvidia-cudnn-jit-cu12", "9.27.0.42")
    full, jit = find_cudnn(patient(tmp_path, tmp_path), {}, tmp_path / "root")
    assert [(c.kind, c.version.value, len(c.sublibraries)) for c in (full, jit)] == [  # type: ignore[union-attr]
        ("full", "9.1.0", 7),
        ("jit", "9.27.0", 2),
    ]


def test_debian_counts_once_although_four_links_lead_there(tmp_path: Path) -> None:
    debian(tmp_path)
    environ = {"LD_LIBRARY_PATH": f"{tmp_path}{DEBIAN}:/nowhere:"}
    (copy,) = find_cudnn(nobody(tmp_path), environ, tmp_path)
    assert copy.path == f"{tmp_path}{DEBIAN}/libcudnn.so.9"
    assert copy.real_path == f"{tmp_path}{DEBIAN}/libcudnn.so.9.14.0"
    assert copy.found_by == ("LD_LIBRARY_PATH", "ld.so.cache", "default directories")
    assert copy.version_readings == (
        Known(value="9.14.0", source="dpkg package libcudnn9-cuda-13"),
        Known(value="9.14.0", source="file name libcudnn.so.9.14.0"),
    )
    assert copy.package == Known(value="libcudnn9-cuda-13 9.14.0.64-1", source="dpkg package libcudnn9-cuda-13")
    assert copy.cuda_flavour == Known(value=13, source="dpkg package libcudnn9-cuda-13")
    assert {s.version for s in copy.sublibraries} >= {Known(value="9.14.0", source="file name libcudnn_ops.so.9.14.0")}


def test_toolkit_folders_that_are_one_and_two_majors_in_one_folder(tmp_path: Path) -> None:
    lib = "/usr/local/cuda-12.4/targets/x86_64-linux/lib"
    put(
        tmp_path,
        {f"{lib}/libcudnn.so.9.3.0": b"9", f"{lib}/libcudnn.so.8.9.7": b"8", f"{lib}/libcudnn_ops_infer.so.8": b"8"},
    )
    link(tmp_path, f"{lib}/libcudnn.so.9", "libcudnn.so.9.3.0")
    link(tmp_path, f"{lib}/libcudnn.so.8", "libcudnn.so.8.9.7")
    link(tmp_path, "/usr/local/cuda-12.4/lib64", "targets/x86_64-linux/lib")
    link(tmp_path, "/usr/local/cuda", "cuda-12.4")
    copies = find_cudnn(nobody(tmp_path), {"CUDA_HOME": f"{tmp_path}/usr/local/cuda"}, tmp_path)
    assert [(c.major, c.version.value, len(c.sublibraries)) for c in copies] == [  # type: ignore[union-attr]
        (8, "8.9.7", 1),
        (9, "9.3.0", 0),
    ]
    assert {c.found_by for c in copies} == {("CUDA toolkit",)}


def test_runtime_only_static_only_and_shimless(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "/opt/a/libcudnn.so.9.3.0": b"x",  # no link at all: no program finds it, and still it is there
            "/opt/b/libcudnn_static.a": b"x",
            "/opt/b/libcudnn_static_v9.a": b"x",
            "/opt/c/libcudnn_ops.so.9": b"x",
            "/opt/c/libcudnn_graph.so.9": b"x",
        },
    )
    environ = {"LD_LIBRARY_PATH": ":".join(f"{tmp_path}/opt/{n}" for n in "abc")}
    found = find_cudnn(nobody(tmp_path), environ, tmp_path)
    assert [(c.path, c.kind, c.soname, len(c.sublibraries)) for c in found] == [
        (f"{tmp_path}/opt/a/libcudnn.so.9.3.0", "full", "libcudnn.so.9", 0),
        (f"{tmp_path}/opt/c/libcudnn_graph.so.9", "shimless", "libcudnn.so.9", 2),
    ]


def test_links_from_another_folder_lead_to_the_same_copy(tmp_path: Path) -> None:
    site = tmp_path / "site"
    lib = cudnn_wheel(site)
    link(tmp_path, "/opt/links/libcudnn.so.9", f"{lib}/libcudnn.so.9")
    (copy,) = find_cudnn(patient(tmp_path, site), {"LD_LIBRARY_PATH": f"{tmp_path}/opt/links"}, tmp_path)
    assert copy.found_by == ("LD_LIBRARY_PATH", "site-packages")
    assert copy.directory == str(lib)
    assert copy.package.value == "nvidia-cudnn-cu12 9.1.0.70"  # type: ignore[union-attr]


def test_preload_and_conda_and_the_header(tmp_path: Path) -> None:
    env = tmp_path / "conda"
    put(env, {"/lib/libcudnn.so.8.9.2": b"x", "/conda-meta/cudnn-8.9.2.26-cuda12_0.json": "{}"})
    link(env, "/lib/libcudnn.so.8", "libcudnn.so.8.9.2")
    header = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 20\n#define CUDNN_PATCHLEVEL 1\n"
    put(tmp_path, {"/opt/cudnn/lib/libcudnn.so.9": b"x", "/opt/cudnn/include/cudnn_version.h": header})
    who = patient(env, env / "lib/python3.12/site-packages")
    environ = {"LD_PRELOAD": f"{tmp_path}/opt/cudnn/lib/libcudnn.so.9"}
    preloaded, conda = find_cudnn(who, environ, tmp_path)
    assert preloaded.found_by == ("LD_PRELOAD",)
    assert preloaded.version == Known(value="9.20.1", source=f"{tmp_path}/opt/cudnn/include/cudnn_version.h")
    assert conda.found_by == ("conda",)
    assert conda.package.value == "cudnn 8.9.2.26 (conda)"  # type: ignore[union-attr]
    assert [r.value for r in conda.version_readings] == ["8.9.2", "8.9.2"]


def test_windows_names(tmp_path: Path) -> None:
    names = ["cudnn64_9.dll", "cudnn_ops64_9.dll", "cudnn_engines_runtime_compiled64_9.dll", "nvcudnn_x.dll"]
    files = {f"nvidia/cudnn/bin/{n}": n.encode() for n in names}
    wheel(tmp_path, "nvidia-cudnn-cu12", "9.10.2.21", files)
    (copy,) = find_cudnn(patient(tmp_path, tmp_path), {}, tmp_path / "root")
    assert (copy.soname, copy.kind, copy.version.value) == ("cudnn64_9.dll", "full", "9.10.2")  # type: ignore[union-attr]
    assert [s.name for s in copy.sublibraries] == ["cudnn_engines_runtime_compiled64_9.dll", "cudnn_ops64_9.dll"]


@needs_gcc
def test_the_cuda_flavour_by_the_cublas_that_a_sub_library_names(tmp_path: Path) -> None:
    lib = tmp_path / "opt"
    library(lib / "libcudnn.so.8", soname="libcudnn.so.8")
    library(lib / "libcudnn_ops_infer.so.8", text='const char *f(void) { return "libcublasLt.so.11"; }\n')
    (copy,) = find_cudnn(nobody(tmp_path), {"LD_LIBRARY_PATH": str(lib)}, tmp_path / "root")
    assert copy.cuda_flavour == Known(value=11, source="libcublasLt.so.11 named in libcudnn_ops_infer.so.8")


@needs_gcc
def test_a_library_of_another_machine_is_no_copy_and_a_development_link_alone_is_one(tmp_path: Path) -> None:
    sound = library(tmp_path / "one/libcudnn.so", soname="libcudnn.so.7")
    foreign = bytearray(sound.read_bytes())
    foreign[18] = 8  # MIPS
    put(tmp_path, {"/two/libcudnn.so.9": bytes(foreign)})
    environ = {"LD_LIBRARY_PATH": f"{tmp_path}/one:{tmp_path}/two"}
    (copy,) = find_cudnn(nobody(tmp_path), environ, tmp_path / "root")
    assert (copy.path, copy.major, copy.soname) == (f"{tmp_path}/one/libcudnn.so", 7, "libcudnn.so.7")


@pytest.mark.parametrize("answered", [True, False])
def test_answers_outrank_every_other_reading(tmp_path: Path, answered: bool) -> None:
    cudnn_wheel(tmp_path)
    (copy,) = find_cudnn(patient(tmp_path, tmp_path), {}, tmp_path / "root")
    asked = "cudnnGetVersion in a child process"
    gone = Absent(reason="error", detail="killed by SIGABRT")
    answer = Answer(
        version=Known(value="9.14.0", source=asked) if answered else gone,
        cudart=Known(value="13.0", source=asked) if answered else gone,
        asked="ok" if answered else "killed by SIGABRT",
        fate=Termination(kind="completed"),
    )
    (merged,) = with_answers([copy], {copy.real_path: answer})
    assert merged.asked == Known(value=answer.asked, source="child process")
    if answered:
        assert merged.version == answer.version
        assert [r.value for r in merged.version_readings] == ["9.14.0", "9.1.0"]
        assert merged.cudart == answer.cudart
    else:
        assert merged == msgspec.structs.replace(copy, asked=merged.asked)
    assert with_answers([copy], {}) == (copy,)


def test_names_that_mean_nothing_and_links_in_a_circle(tmp_path: Path) -> None:
    names = [f"libcudnn.so.{'9' * 40}", "libcudnn.so.9.x", "libcudnn.so.", "xlibcudnn.so.9", "libcudnn_Ops.so.9"]
    put(tmp_path, {f"/opt/{name}": b"x" for name in names})
    link(tmp_path, "/opt/libcudnn.so.9", "libcudnn.so.8")
    link(tmp_path, "/opt/libcudnn.so.8", "libcudnn.so.9")
    (tmp_path / "opt/libcudnn.so.7").mkdir()
    assert find_cudnn(nobody(tmp_path), {"LD_LIBRARY_PATH": f"{tmp_path}/opt"}, tmp_path) == ()
