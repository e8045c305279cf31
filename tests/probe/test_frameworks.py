"""What frameworks were built for, from the forms in which their wheels state it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.facts import Framework
from cudnn_doctor.probe.frameworks import probe_frameworks
from cudnn_doctor.probe.packages import probe_packages
from tests.probe.elf_builder import library, needs_gcc
from tests.probe.site import patient, wheel

BUILD_INFO = "tensorflow/python/platform/build_info.py"
# Of the wheel tensorflow 2.17.0 cp311 manylinux, as it stands there.
TF_2_17 = (
    "import collections\n\nbuild_info = collections.OrderedDict([('cpu_compiler', '/usr/lib/llvm-17/bin/clang'), "
    "('cuda_compute_capabilities', ['sm_60', 'sm_70', 'sm_80', 'sm_89', 'compute_90']), ('cuda_version', '12.3'), "
    "('cudnn_version', '8'), ('is_cuda_build', True), ('is_rocm_build', False), ('is_tensorrt_build', True)])\n"
)
TF_2_17_REQUIRES = [
    "keras >=3.2.0",
    "nvidia-cublas-cu12 ==12.3.4.1 ; extra == 'and-cuda'",
    "nvidia-cuda-runtime-cu12 ==12.3.101 ; extra == 'and-cuda'",
    "nvidia-cudnn-cu12 ==8.9.7.29 ; extra == 'and-cuda'",
]


def frameworks(site: Path) -> tuple[Framework, ...]:
    who = patient(site, site)
    return probe_frameworks(who, probe_packages(who))


def only(site: Path) -> dict[str, Any]:
    """The one framework's facts as plain values; Absent is None."""
    (found,) = frameworks(site)
    names = ("cuda_build", "built_cuda", "built_cudnn", "compute_capabilities", "cudnn_soname")
    return {name: value_or(getattr(found, name), None) for name in names}


def facts(
    cuda_build: bool | None, built_cuda: str | None, built_cudnn: str | None, capabilities: Any, soname: str | None
) -> dict[str, Any]:
    return {
        "cuda_build": cuda_build,
        "built_cuda": built_cuda,
        "built_cudnn": built_cudnn,
        "compute_capabilities": capabilities,
        "cudnn_soname": soname,
    }


def test_tensorflow_2_17(tmp_path: Path) -> None:
    wheel(tmp_path, "tensorflow", "2.17.0", {BUILD_INFO: TF_2_17.encode()}, TF_2_17_REQUIRES)
    (found,) = frameworks(tmp_path)
    source = f"{tmp_path}/{BUILD_INFO}"
    assert found == Framework(
        name="tensorflow",
        distribution="tensorflow",
        version="2.17.0",
        location=f"{tmp_path}/tensorflow",
        cuda_build=Known(value=True, source=source),
        built_cuda=Known(value="12.3", source=source),
        built_cudnn=Known(value="8", source=source),
        compute_capabilities=Known(value=("sm_60", "sm_70", "sm_80", "sm_89", "compute_90"), source=source),
        requires=tuple(TF_2_17_REQUIRES[1:]),
        cudnn_soname=Known(value="libcudnn.so.8", source=f"major in {source}"),
        cudnn_need="opened",
    )


@pytest.mark.parametrize(
    ("name", "text", "requires", "expected"),
    [
        (  # 1.15 to 2.2, Linux: module attributes, "10" for 10.x
            "tensorflow",
            "is_rocm_build = False\nis_cuda_build = True\ncuda_version_number = '10.1'\ncudnn_version_number = '7'\n",
            [],
            facts(True, "10.1", "7", None, "libcudnn.so.7"),
        ),
        (  # Windows: tails of DLL names
            "tensorflow",
            "import collections\nbuild_info = collections.OrderedDict([('cuda_version', '64_112'), "
            "('cudnn_version', '64_8'), ('is_cuda_build', True)])\n",
            [],
            facts(True, "11.2", "8", None, "libcudnn.so.8"),
        ),
        (
            "tensorflow-gpu",
            "cuda_version_number = '64_100'\ncudnn_version_number = '64_7'\n",
            [],
            facts(True, "10.0", "7", None, "libcudnn.so.7"),
        ),
        (  # a CPU build
            "tensorflow-cpu",
            "import collections\nbuild_info = collections.OrderedDict([('is_cuda_build', False)])\n",
            [],
            facts(False, None, None, None, None),
        ),
        (  # 2.22.0rc0 states none of the versions: the requirements give the majors
            "tensorflow",
            "import collections\nbuild_info = collections.OrderedDict([('is_cuda_build', True)])\n",
            [
                "nvidia-cudnn-cu12<10.0,>=9.10.2.21; extra == 'and-cuda'",
                "nvidia-cuda-runtime-cu12<13.0,>=12.5.82; extra == 'and-cuda'",
            ],
            facts(True, "12", "9", None, "libcudnn.so.9"),
        ),
        ("tensorflow", "def broken(:\n", [], facts(None, None, None, None, None)),
        ("tensorflow", "build_info = make()\nx = 1\n", [], facts(None, None, None, None, None)),
        ("tensorflow", "x = " + "(" * 5000 + "\0", [], facts(None, None, None, None, None)),
    ],
)
def test_forms_of_tensorflows_build_info(
    tmp_path: Path, name: str, text: str, requires: list[str], expected: dict[str, Any]
) -> None:
    wheel(tmp_path, name, "2.0.0", {BUILD_INFO: text.encode()}, requires)
    assert only(tmp_path) == expected


def test_build_info_is_read_and_not_run(tmp_path: Path) -> None:
    text = f"import pathlib\npathlib.Path('{tmp_path}/ran').write_text('')\ncuda_version_number = '10.1'\n"
    wheel(tmp_path, "tensorflow", "1.15.0", {BUILD_INFO: text.encode()})
    assert only(tmp_path)["built_cuda"] == "10.1"
    assert not (tmp_path / "ran").exists()


@needs_gcc
def test_tensorflow_that_links_cudnn(tmp_path: Path) -> None:
    wheel(tmp_path, "tensorflow-gpu", "1.12.0", {"tensorflow/__init__.py": b""})
    cudnn = library(tmp_path / "libcudnn.so.7", soname="libcudnn.so.7")
    linked = library(tmp_path / "tensorflow/python/_pywrap_tensorflow_internal.so", needed=[("libcudnn.so.7", cudnn)])
    (found,) = frameworks(tmp_path)
    assert found.cudnn_soname == Known(value="libcudnn.so.7", source=f"DT_NEEDED of {linked}")
    assert found.cuda_build == Known(value=True, source=f"DT_NEEDED of {linked}")
    assert found.built_cudnn == Known(value="7", source=f"DT_NEEDED of {linked}")


@needs_gcc
def test_torch_as_a_wheel_of_pypi(tmp_path: Path) -> None:
    version = "from typing import Optional\n__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n"
    pin = "nvidia-cudnn-cu13==9.19.0.56; platform_system == 'Linux'"
    wheel(tmp_path, "torch", "2.11.0", {"torch/version.py": version.encode()}, [pin, "sympy"])
    cudnn = library(tmp_path / "libcudnn.so.9", soname="libcudnn.so.9")
    cuda = library(tmp_path / "torch/lib/libtorch_cuda.so", needed=[("libcudnn.so.9", cudnn)])
    flags = "sm_75 sm_80 sm_90a sm_100 compute_120"
    python = library(
        tmp_path / "torch/lib/libtorch_python.so", text=f'const char *flags(void) {{ return "{flags}"; }}\n'
    )
    (found,) = frameworks(tmp_path)
    assert found == Framework(
        name="torch",
        distribution="torch",
        version="2.11.0",
        location=f"{tmp_path}/torch",
        cuda_build=Known(value=True, source=f"{tmp_path}/torch/version.py"),
        built_cuda=Known(value="13.0", source=f"{tmp_path}/torch/version.py"),
        built_cudnn=Known(value="9.19.0", source="Requires-Dist: nvidia-cudnn-cu13==9.19.0.56"),
        compute_capabilities=Known(value=tuple(flags.split()), source=f"string in {python}"),
        requires=(pin,),
        cudnn_soname=Known(value="libcudnn.so.9", source=f"DT_NEEDED of {cuda}"),
    )


def test_torch_for_the_cpu(tmp_path: Path) -> None:
    wheel(tmp_path, "torch", "2.6.0+cpu", {"torch/version.py": b"__version__ = '2.6.0+cpu'\ncuda = None\n"})
    assert only(tmp_path) == facts(False, None, None, None, None)


def test_torch_on_windows_carries_its_cudnn(tmp_path: Path) -> None:
    files = {"torch/version.py": b"__version__ = '2.6.0+cu124'\ncuda = '12.4'\n", "torch/lib/cudnn64_9.dll": b"MZ"}
    wheel(tmp_path, "torch", "2.6.0+cu124", files)
    assert only(tmp_path) == facts(True, "12.4", "9", None, "cudnn64_9.dll")


def test_jax_with_its_plugin(tmp_path: Path) -> None:
    loads = b'def _load_nvidia_libraries():\n  _load("cudnn", ["libcudnn.so.9"])\n'
    requires = ["jax-cuda13-pjrt==0.11.2", "nvidia-cudnn-cu13<10.0,>=9.12.0.46; extra == 'with-cuda'", "numpy"]
    wheel(tmp_path, "jaxlib", "0.11.2", {"jaxlib/__init__.py": b""})
    wheel(tmp_path, "jax-cuda13-plugin", "0.11.2", {"jax_plugins/xla_cuda13/__init__.py": loads}, requires)
    wheel(tmp_path, "jax-cuda13-pjrt", "0.11.2", {"jax_plugins/xla_cuda13/x.so": b""}, ["nvidia-nccl-cu13"])
    (found,) = frameworks(tmp_path)
    assert (found.distribution, found.version) == ("jax-cuda13-plugin", "0.11.2")
    assert found.requires == (*requires[:2], "nvidia-nccl-cu13")
    assert only(tmp_path) == facts(True, "13", "9", None, "libcudnn.so.9")
    assert found.cudnn_soname == Known(value="libcudnn.so.9", source=f"{tmp_path}/jax_plugins/xla_cuda13/__init__.py")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.4.20+cuda12.cudnn89", facts(True, "12", "8.9", None, "libcudnn.so.8")),
        ("0.4.29+cuda12.cudnn91", facts(True, "12", "9.1", None, "libcudnn.so.9")),
        ("0.11.2", facts(False, None, None, None, None)),
    ],
)
def test_jaxlib_without_a_plugin(tmp_path: Path, version: str, expected: dict[str, Any]) -> None:
    wheel(tmp_path, "jaxlib", version, {"jaxlib/__init__.py": b""})
    assert only(tmp_path) == expected


@needs_gcc
def test_onnxruntime_with_a_cuda_provider(tmp_path: Path) -> None:
    info = b"package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\ncuda_version = '13.0'\n"
    wheel(tmp_path, "onnxruntime-gpu", "1.31.1", {"onnxruntime/capi/build_and_package_info.py": info})
    library(
        tmp_path / "onnxruntime/capi/libonnxruntime_providers_cuda.so",
        text='const char *name(void) { return "libcudnn.so.9"; }\n',
    )
    assert only(tmp_path) == facts(True, "13.0", "9", None, "libcudnn.so.9")


def test_the_other_frameworks(tmp_path: Path) -> None:
    paddle = b"full_version = '3.0.0'\ncuda_version = '12.6'\ncudnn_version = '9.5.1'\n"
    cupy = b'{"cuda": "12.x", "packaging": "pip", "cudnn": {"version": "8.9.7", "filenames": ["libcudnn.so.8"]}}'
    wheel(tmp_path, "paddlepaddle-gpu", "3.0.0", {"paddle/version/__init__.py": paddle})
    wheel(tmp_path, "cupy-cuda12x", "13.0.0", {"cupy/.data/_wheel.json": cupy})
    wheel(tmp_path, "mxnet-cu112", "1.9.1", {"mxnet/__init__.py": b""})
    wheel(tmp_path, "onnxruntime", "1.30.0", {"onnxruntime/__init__.py": b""})
    found = {f.name: f for f in frameworks(tmp_path)}
    assert {n: (value_or(f.built_cuda, ""), value_or(f.built_cudnn, "")) for n, f in found.items()} == {
        "mxnet": ("11.2", ""),
        "onnxruntime": ("", ""),
        "paddle": ("12.6", "9.5.1"),
        "cupy": ("12", "8.9.7"),
    }
    assert found["onnxruntime"].cuda_build == Known(value=False, source="name of onnxruntime")
    assert isinstance(found["mxnet"].cudnn_soname, Absent)


def test_a_distribution_without_its_folder_is_no_framework(tmp_path: Path) -> None:
    wheel(tmp_path, "torch", "2.6.0")
    assert frameworks(tmp_path) == ()
