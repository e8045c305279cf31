"""CUDA toolkits and libraries, each once."""

from __future__ import annotations

from pathlib import Path

from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.facts import Toolkit
from cudnn_doctor.probe.cuda_libs import probe_cuda
from tests.probe.machine import link, put
from tests.probe.site import patient, wheel
from tests.probe.test_ldcache import X86, cache_file

LIB = "/usr/local/cuda-12.4/targets/x86_64-linux/lib"


def toolkit(root: Path) -> None:
    put(
        root,
        {
            "/usr/local/cuda-12.4/version.json": '{"cuda": {"name": "CUDA SDK", "version": "12.4.20240301"},\n'
            ' "cuda_cudart": {"name": "CUDA Runtime", "version": "12.4.127"}}',
            "/usr/local/cuda-12.4/bin/nvcc": "",
            f"{LIB}/libcublas.so.12.4.5.8": b"x",
            f"{LIB}/libcublasLt.so.12.4.5.8": b"x",
            f"{LIB}/libcudart_static.a": b"x",
        },
    )
    link(root, f"{LIB}/libcublas.so.12", "libcublas.so.12.4.5.8")
    link(root, f"{LIB}/libcublas.so", "libcublas.so.12")
    link(root, "/usr/local/cuda-12.4/lib64", "targets/x86_64-linux/lib")
    link(root, "/usr/local/cuda", "cuda-12.4")


def test_a_toolkit_and_its_link_are_one(tmp_path: Path) -> None:
    toolkit(tmp_path)
    put(tmp_path, {"/usr/local/cuda-10.2/version.txt": "CUDA Version 10.2.89\n"})
    put(tmp_path, {"/usr/local/cuda-11.8/bin/nvcc": "", "/usr/local/cuda-samples/readme": ""})
    found = probe_cuda(patient(tmp_path), {"CUDA_HOME": f"{tmp_path}/usr/local/cuda"}, tmp_path).toolkits
    real = f"{tmp_path}/usr/local/cuda"
    assert found == (
        Toolkit(
            path=real,
            real_path=f"{real}-12.4",
            version=Known(value="12.4.20240301", source=f"{real}-12.4/version.json"),
            found_by="CUDA_HOME",
        ),
        Toolkit(
            path=f"{real}-10.2",
            real_path=f"{real}-10.2",
            version=Known(value="10.2.89", source=f"{real}-10.2/version.txt"),
            found_by="/usr/local/cuda",
        ),
        Toolkit(
            path=f"{real}-11.8",
            real_path=f"{real}-11.8",
            version=Known(value="11.8", source="folder name"),
            found_by="/usr/local/cuda",
        ),
    )


def test_nvcc_on_the_path_leads_to_its_toolkit(tmp_path: Path) -> None:
    toolkit(tmp_path)
    link(tmp_path, "/usr/bin/nvcc", "../local/cuda-12.4/bin/nvcc")
    environ = {"PATH": f"/nowhere:{tmp_path}/usr/bin"}
    (found,) = probe_cuda(patient(tmp_path), environ, tmp_path / "elsewhere").toolkits
    assert (found.real_path, found.found_by) == (f"{tmp_path}/usr/local/cuda-12.4", "nvcc on PATH")


def test_libraries_of_toolkits_wheels_and_the_cache(tmp_path: Path) -> None:
    toolkit(tmp_path)
    site = tmp_path / "site"
    wheel(site, "nvidia-cublas-cu12", "12.3.4.1", {"nvidia/cublas/lib/libcublas.so.12": b"x"})
    wheel(site, "nvidia-cublas", "13.1.0.3", {"nvidia/cu13/lib/libcublas.so.13": b"x"})
    wheel(site, "nvidia-cuda-nvrtc-cu11", "11.8.89", {"nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2": b"x"})
    put(
        tmp_path,
        {
            "/opt/rt/libcudart.so.11.0": b"x",
            "/etc/ld.so.cache": cache_file([(X86, "libcudart.so.11.0", "/opt/rt/libcudart.so.11.0")]),
        },
    )
    found = {
        (lib.name, lib.major, lib.found_by): (lib.path.removeprefix(str(tmp_path)), lib.version)
        for lib in probe_cuda(patient(tmp_path, site), {}, tmp_path).libraries
    }
    unknown = Absent(reason="not-found", detail="neither its name nor a package says it")
    assert found == {
        ("libcublas", 12, "site-packages"): (
            "/site/nvidia/cublas/lib/libcublas.so.12",
            Known(value="12.3.4.1", source="metadata of nvidia-cublas-cu12"),
        ),
        ("libcublas", 13, "site-packages"): (
            "/site/nvidia/cu13/lib/libcublas.so.13",
            Known(value="13.1.0.3", source="metadata of nvidia-cublas"),
        ),
        ("libnvrtc", 11, "site-packages"): (
            "/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2",
            Known(value="11.8.89", source="metadata of nvidia-cuda-nvrtc-cu11"),
        ),
        ("libcublas", 12, "CUDA toolkit"): (
            "/usr/local/cuda/lib64/libcublas.so.12",
            Known(value="12.4.5.8", source="file name libcublas.so.12.4.5.8"),
        ),
        ("libcublasLt", 12, "CUDA toolkit"): (
            "/usr/local/cuda/lib64/libcublasLt.so.12.4.5.8",
            Known(value="12.4.5.8", source="file name libcublasLt.so.12.4.5.8"),
        ),
        ("libcudart", 11, "ld.so.cache"): ("/opt/rt/libcudart.so.11.0", unknown),
    }


def test_windows_names(tmp_path: Path) -> None:
    files = {
        f"nvidia/x/bin/{n}": b"x"
        for n in ("cublas64_12.dll", "cublasLt64_12.dll", "cudart64_110.dll", "nvrtc64_120_0.dll")
    }
    wheel(tmp_path, "nvidia-cublas-cu12", "12.3.4.1", files)
    found = probe_cuda(patient(tmp_path, tmp_path), {}, tmp_path / "root").libraries
    assert {(lib.name, lib.major) for lib in found} == {
        ("libcublas", 12),
        ("libcublasLt", 12),
        ("libcudart", 11),
        ("libnvrtc", 12),
    }


def test_nothing_at_all(tmp_path: Path) -> None:
    found = probe_cuda(patient(tmp_path), {}, tmp_path)
    assert (found.toolkits, found.libraries) == ((), ())
