"""Installed distributions, and wheels that overwrite each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.facts import Overwrite, Package
from cudnn_doctor.probe.packages import (
    installed,
    probe_overwrites,
    probe_packages,
    record,
    requirement_name,
    sha256_of,
)
from tests.probe.site import patient, wheel

LIB = "nvidia/cudnn/lib"


def test_only_relevant_distributions_with_their_requirements(tmp_path: Path) -> None:
    requires = ["nvidia-cudnn-cu12==9.1.0.70; platform_system == 'Linux'", "sympy"]
    wheel(tmp_path, "torch", "2.6.0", requires=requires)
    wheel(tmp_path, "numpy", "2.0.0")
    wheel(tmp_path, "nvidia-cudnn-cu12", "9.1.0.70")
    packages = probe_packages(patient(tmp_path, tmp_path))
    assert packages == Known(
        value=(
            Package(name="nvidia-cudnn-cu12", version="9.1.0.70", location=str(tmp_path), requires=(), installer="pip"),
            Package(name="torch", version="2.6.0", location=str(tmp_path), requires=tuple(requires), installer="pip"),
        ),
        source=f"metadata in {tmp_path}",
    )


def test_the_first_folder_on_the_path_counts(tmp_path: Path) -> None:
    wheel(tmp_path / "user", "torch", "2.5.0")
    wheel(tmp_path / "system", "torch", "2.6.0")
    found = installed(probe_packages(patient(tmp_path, tmp_path / "user", tmp_path / "system")))
    assert [p.version for p in found] == ["2.5.0"]


def test_two_of_one_name_in_one_folder_are_both_shown(tmp_path: Path) -> None:
    wheel(tmp_path, "torch", "2.5.0")
    wheel(tmp_path, "torch", "2.6.0")
    assert [p.version for p in installed(probe_packages(patient(tmp_path, tmp_path)))] == ["2.5.0", "2.6.0"]


def test_eggs_lost_metadata_and_conda(tmp_path: Path) -> None:
    site = tmp_path / "lib"
    egg = site / "tensorflow_gpu-1.15.0-py3.7.egg-info"
    egg.mkdir(parents=True)
    (egg / "PKG-INFO").write_text("Name: tensorflow-gpu\nVersion: 1.15.0\n")
    (egg / "requires.txt").write_text("six\n\n[and-cuda]\nnvidia-cudnn-cu12\n\n[:python_version < '3']\nenum34\n")
    (site / "jaxlib-0.4.20-py3.9.egg-info").write_text("Name: jaxlib\nVersion: 0.4.20+cuda12.cudnn89\n")
    (site / "nvidia_cublas_cu12-12.1.3.1.dist-info").mkdir()
    meta = tmp_path / "conda-meta"
    meta.mkdir()
    for name in ("cudnn-8.9.2.26-cuda12_0.json", "cuda-version-12.4-hbda6634_3.json", "zlib-1.2.13-h5eee18b_0.json"):
        (meta / name).write_text("{}")
    found = {p.name: p for p in installed(probe_packages(patient(tmp_path, site)))}
    assert found["tensorflow-gpu"].requires == (
        "six",
        "nvidia-cudnn-cu12 ; extra == 'and-cuda'",
        "enum34 ; (python_version < '3')",
    )
    assert found["jaxlib"].version == "0.4.20+cuda12.cudnn89"
    assert found["nvidia-cublas-cu12"].version == "12.1.3.1"
    assert (found["cudnn"].version, found["cudnn"].installer) == ("8.9.2.26", "conda")
    assert found["cuda-version"].version == "12.4"
    assert "zlib" not in found


def test_no_package_folder(tmp_path: Path) -> None:
    assert probe_packages(patient(tmp_path)) == Absent(reason="not-found", detail=f"no package folder in {tmp_path}")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("nvidia-cudnn-cu12==9.1.0.70; platform_system == 'Linux'", "nvidia-cudnn-cu12"),
        ("nvidia_cudnn.cu12 <10.0,>=9.0", "nvidia-cudnn-cu12"),
        ("cuda-toolkit[cublas,cudart]==13.0.2", "cuda-toolkit"),
        ("six", "six"),
        ("", ""),
    ],
)
def test_requirement_names(line: str, name: str) -> None:
    assert requirement_name(line) == name


def test_record_and_hash(tmp_path: Path) -> None:
    wheel(tmp_path, "nvidia-cudnn-cu12", "9.1.0.70", {f"{LIB}/libcudnn.so.9": b"shim"})
    (package,) = installed(probe_packages(patient(tmp_path, tmp_path)))
    files = record(package)
    assert files == {f"{LIB}/libcudnn.so.9": (sha256_of(f"{tmp_path}/{LIB}/libcudnn.so.9"), 4)}


def two_wheels(site: Path, first: dict[str, bytes], second: dict[str, bytes]) -> tuple[Overwrite, ...]:
    wheel(site, "nvidia-cudnn-cu12", "9.10.2.21", first)
    wheel(site, "nvidia-cudnn-cu13", "9.19.0.56", second)
    who = patient(site, site)
    return probe_overwrites(who, probe_packages(who))


def test_wheels_of_one_folder_told_apart_by_size(tmp_path: Path) -> None:
    init = {"nvidia/__init__.py": b"", f"{LIB}/../include/cudnn.h": b"1"}
    first = {f"{LIB}/libcudnn.so.9": b"a" * 10, f"{LIB}/libcudnn_ops.so.9": b"a" * 20, **init}
    second = {f"{LIB}/libcudnn.so.9": b"b" * 11, f"{LIB}/libcudnn_ops.so.9": b"b" * 22, **init}
    assert two_wheels(tmp_path, first, second) == (
        Overwrite(
            packages=("nvidia-cudnn-cu12 9.10.2.21", "nvidia-cudnn-cu13 9.19.0.56"),
            directory=f"{tmp_path}/{LIB}",
            files=2,
            on_disk=Known(value="nvidia-cudnn-cu13 9.19.0.56", source="file sizes against RECORD"),
        ),
    )


def test_equal_sizes_are_told_apart_by_the_hash_of_the_smallest(tmp_path: Path) -> None:
    (found,) = two_wheels(
        tmp_path,
        {f"{LIB}/libcudnn.so.9": b"a" * 10, f"{LIB}/libcudnn_ops.so.9": b"a" * 20},
        {f"{LIB}/libcudnn.so.9": b"b" * 10, f"{LIB}/libcudnn_ops.so.9": b"b" * 20},
    )
    assert found.on_disk == Known(value="nvidia-cudnn-cu13 9.19.0.56", source="sha256 of libcudnn.so.9 against RECORD")


def test_a_mixture_belongs_to_nobody(tmp_path: Path) -> None:
    first = {f"{LIB}/libcudnn.so.9": b"a" * 10, f"{LIB}/libcudnn_ops.so.9": b"a" * 20}
    second = {f"{LIB}/libcudnn.so.9": b"b" * 11, f"{LIB}/libcudnn_ops.so.9": b"b" * 22}
    wheel(tmp_path, "nvidia-cudnn-cu12", "9.10.2.21", first)
    wheel(tmp_path, "nvidia-cudnn-cu13", "9.19.0.56", second, write=False)
    (tmp_path / LIB / "libcudnn_ops.so.9").write_bytes(second[f"{LIB}/libcudnn_ops.so.9"])
    who = patient(tmp_path, tmp_path)
    (found,) = probe_overwrites(who, probe_packages(who))
    assert found.on_disk == Absent(
        reason="not-found",
        detail="no single distribution: 1 files of nvidia-cudnn-cu12 9.10.2.21, 1 of nvidia-cudnn-cu13 9.19.0.56, "
        "0 of neither (file sizes against RECORD)",
    )


def test_frameworks_in_one_folder_and_harmless_neighbours(tmp_path: Path) -> None:
    wheel(tmp_path, "onnxruntime", "1.20.0", {"onnxruntime/capi/onnxruntime_pybind11_state.so": b"cpu"})
    wheel(tmp_path, "onnxruntime-gpu", "1.20.0", {"onnxruntime/capi/onnxruntime_pybind11_state.so": b"cuda"})
    wheel(tmp_path, "tensorflow", "2.17.0", {"tensorflow/libtensorflow_framework.so.2": b"1"})
    wheel(
        tmp_path,
        "tensorflow-cpu",
        "2.17.0",
        {"tensorflow/libtensorflow_framework.so.2": b"22"},
    )
    wheel(
        tmp_path, "nvidia-cublas-cu12", "12.1", {"nvidia/cublas/lib/libcublas.so.12": b"1", "nvidia/__init__.py": b""}
    )
    wheel(
        tmp_path, "nvidia-cublas-cu11", "11.1", {"nvidia/cublas/lib/libcublas.so.11": b"2", "nvidia/__init__.py": b""}
    )
    wheel(tmp_path, "nvidia-cudnn-jit-cu12", "9.27.0.42", {"nvidia/cudnn_jit/lib/libcudnn.so.9": b"3"})
    wheel(tmp_path, "nvidia-cudnn-cu12", "9.27.0.42", {f"{LIB}/libcudnn.so.9": b"4"})
    who = patient(tmp_path, tmp_path)
    found = probe_overwrites(who, probe_packages(who))
    assert {o.packages for o in found} == {
        ("onnxruntime 1.20.0", "onnxruntime-gpu 1.20.0"),
        ("tensorflow 2.17.0", "tensorflow-cpu 2.17.0"),
    }
