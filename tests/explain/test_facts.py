"""Stated facts in the wordings of people, templates, package lists and tools of all kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudnn_doctor.logs.document import build
from cudnn_doctor.logs.gpu_names import capability
from cudnn_doctor.logs.patterns import load
from cudnn_doctor.logs.scan import Raw
from cudnn_doctor.logs.signatures import find
from cudnn_doctor.logs.stated import extract
from cudnn_doctor.logs.values import dotted, major
from tests.explain.plain import answer
from tests.explain.scoring import same

LOGS = Path(__file__).parent / "logs"


def facts(text: str) -> dict[str, str]:
    document = build([("test", [Raw(i + 1, line.encode()) for i, line in enumerate(text.split("\n"))])])
    events = find(document, load().signatures)
    found = extract(document, events, list(range(len(document.lines))), load().names).facts
    return {key: stated.value for key, stated in found.items()}


DRIVER = """NVIDIA driver 396.26|Driver Version: 396.26|driver=396.26|nvidia driver version: 396.26|396.26 driver
Driver: NVIDIA 396.26|drivers 396.26|nvidia-driver 396.26|Driver v396.26|the driver is 396.26|GPU driver version: 396.26
Nvidia Driver Version = 396.26|NVIDIA-SMI 396.26|Treiber 396.26|驱动版本:396.26|显卡驱动 396.26|ドライバ 396.26
драйвер 396.26|nvidia driver (396.26)|driver ver. 396.26|* Driver: 396.26|**Nvidia Driver Version**: 396.26
NVRM version: NVIDIA UNIX x86_64 Kernel Module  396.26  Wed|NVIDIA GeForce 396.26 driver|Game Ready Driver 396.26
driver 396.26 (rolled back from 400.10)|kernel reported version is: 396.26.0"""
CUDA = """CUDA 10.1|CUDA: 10.1|CUDA Version: 10.1|CUDA version - 10.1|cuda-10.1|cuda_10.1|cuda10.1|CUDA v10.1
CUDA Toolkit 10.1|CUDA Toolkit v10.1|cudatoolkit=10.1|cudatoolkit 10.1.243 h6bb024c_0|CUDA=10.1|CUDA (10.1)
CUDA/cuDNN version: 10.1/7.6|CUDA/cuDNN version: CUDA 10.1 cuDNN 7.6|CUDA 10.1.243|CUDA版本 10.1|CUDA 版本:10.1
CUDAバージョン10.1|CUDA used to build PyTorch: 10.1|cuda 10.1 update 2|CUDA и 10.1|CUDA: V10.1|CUDA SDK 10.1
nvidia/cuda:10.1-cudnn7-devel-ubuntu18.04|**CUDA Version**: 10.1|CUDA, version 10.1|<td>CUDA</td><td>10.1</td>"""
CUDNN = """cuDNN 7.6.5|cuDNN: 7.6.5|cudnn v7.6.5|cuDNN version 7.6.5|cudnn-7.6.5|cudnn=7.6.5|CuDNN 7.6.5.32
CUDNN Version: 7.6.5|CUDA/cuDNN version: 10.1/7.6.5|CUDA/cuDNN version: 10.1, 7.6.5|CUDA 10.1 / CUDNN 7.6.5
cuDNN (7.6.5)|libcudnn7 7.6.5.32-1+cuda10.1|nvidia-cudnn-cu10==7.6.5.32|cudnn 7605|cudnn_version: 7605|cuDNN版本 7.6.5
cuDNN: v7.6.5 for CUDA 10.1|cudnn7.6.5|cudnn 7.6.5 cuda10.1_0|CUDA/CuDNN: 10.1/7.6.5|cuda 10.1 and cudnn 7.6.5
cuDNN SDK 7.6.5|cuDNN used: 7.6.5|- CUDA/cuDNN version: Cuda 10.1/cuDNN 7.6.5|cuDNN version : 7.6.5"""
VERSION = """TensorFlow 2.3.1|tensorflow==2.3.1|tensorflow-gpu 2.3.1|TF 2.3.1|tf2.3.1|TensorFlow version: 2.3.1
TensorFlow version (use command below): 2.3.1|tensorflow v2.3.1|TensorFlow (2.3.1)|tensorflow-gpu==2.3.1
tf.__version__ 2.3.1|- TensorFlow version: 2.3.1|tensorflow: 2.3.1|TensorFlow GPU 2.3.1|tensorflow gpu version 2.3.1
tensorflow_gpu-2.3.1-cp37-cp37m-win_amd64.whl|PyTorch 2.3.1|torch==2.3.1|PyTorch version: 2.3.1|pytorch-2.3.1
torch.__version__ = 2.3.1|jax 2.3.1|jaxlib 2.3.1|mxnet-cu101 2.3.1|mxnet-cu101==2.3.1|MXNet version 2.3.1
paddlepaddle-gpu==2.3.1|onnxruntime-gpu 2.3.1|ONNX Runtime 2.3.1|keras 2.2.4 with tensorflow 2.3.1
Tensorflow-GPU:2.3.1|pytorch 2.3.1 py3.7_cuda10.1.243_cudnn7.6.3_0|pytorch 版本 2.3.1|TensorFlow は 2.3.1
torch 2.3.1+cu121|tensorflow                2.3.1|TF-GPU 2.3.1|tensorflow/tensorflow:2.3.1-gpu"""
WORDINGS = [
    (key, value, wording)
    for key, value, wordings in (
        ("driver", "396.26", DRIVER),
        ("cuda", "10.1", CUDA),
        ("cudnn_loaded", "7.6.5", CUDNN),
        ("framework_version", "2.3.1", VERSION),
    )
    for line in wordings.split("\n")
    for wording in line.split("|")
] + [("framework_version", "2.3.1", ">>> tf.__version__\n'2.3.1'")]


@pytest.mark.parametrize(("key", "value", "wording"), WORDINGS)
def test_version_in_any_wording(key: str, value: str, wording: str) -> None:
    assert same(key, value, facts(wording)[key])


@pytest.mark.parametrize(
    ("wording", "value"),
    [
        ("Ubuntu 18.04", "ubuntu 18.04"),
        ("ubuntu18.04", "ubuntu18.04"),
        ("ubuntu1804", "ubuntu1804"),
        ("OS Platform and Distribution (e.g., Linux Ubuntu 16.04): Ubuntu 18.04", "ubuntu 18.04"),
        ("Ubuntu 18.04.5 LTS", "ubuntu 18.04.5"),
        ("Windows 10", "windows 10"),
        ("win10", "win10"),
        ("Microsoft Windows 10 Pro", "windows 10 pro"),
        ("Windows-10-10.0.19041", "windows-10"),
        ("Windows Subsystem for Linux 2", "windows subsystem for linux 2"),
        ("WSL2", "wsl2"),
        ("Arch Linux", "arch linux"),
        ("CentOS 7", "centos 7"),
        ("macOS 10.13", "macos 10.13"),
        ("- Linux\n- Ubuntu 20.04", "ubuntu 20.04"),  # the one that says more
    ],
)
def test_system(wording: str, value: str) -> None:
    assert facts(wording)["os"] == value


GPUS = {
    "GTX1080Ti": "6.1",
    "RTX2080ti": "7.5",
    "2x 2080Ti": "7.5",
    "Tesla V100-SXM2-16GB": "7.0",
    "GeForce RTX 2080 with Max-Q Design": "7.5",
    "Quadro P5000": "6.1",
    "GTX TITAN X": "5.2",
    "TITAN Xp": "6.1",
    "Titan RTX": "7.5",
    "Titan V": "7.0",
    "Tesla T4": "7.5",
    "NVIDIA GeForce 940MX": "5.0",
    "GTX 860M": "5.0",
    "GeForce MX150": "6.1",
    "A10G": "8.6",
    "L40S": "8.9",
    "RTX A6000": "8.6",
    "RTX 6000 Ada": "8.9",
    "RTX PRO 6000 Blackwell": "12.0",
    "GH200": "9.0",
    "Jetson TX2": "6.2",
    "RTX 4070 Ti SUPER": "8.9",
    "RTX 4090 D": "8.9",
    "RTX 5070 Ti Laptop": "12.0",
    "GTX 1650 Max-Q": "7.5",
    "3090ti": "8.6",
    "gtx-1080": "6.1",
    "Quadro K2200": "5.0",
    "GeForce GTX 1660 Super": "7.5",
    "V100 32GB": "7.0",
    "GTX 970": "5.2",
    "GT 730": "3.5",
    "Quadro RTX 8000": "7.5",
    "Jetson AGX Xavier": "7.2",
    "A40-48Q": "8.6",
    "B200": "10.0",
    "RTX\u2122 3060": "8.6",
    "GeForce\u00ae GTX 1050": "6.1",
    "K80": "3.7",
    "GTX 780": "3.5",
    "2080": "7.5",
}


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize("form", ["My card is a {}, CUDA 11.", "| GPU | {} |", "- GPU model and memory: {}"])
def test_gpu_and_its_capability(name: str, form: str) -> None:
    document = build([("test", [Raw(1, form.format(name).encode())])])
    gpu = extract(document, [], [0], load().names).facts["gpu"]
    letters = "".join(c for c in name.lower() if c.isascii() and c.isalnum())
    assert "".join(c for c in gpu.value if c.isalnum()) in letters
    assert capability(gpu.value, load()) == GPUS[name]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("| NVIDIA-SMI 470.57  Driver Version: 470.57  CUDA Version: 11.4 |", "cuda"),  # the driver's ceiling
        ("It requires CUDA 11.2", "cuda"),
        ("needs cuDNN 8.1 or later", "cudnn_loaded"),
        ("works with CUDA 10.0 according to the documentation", "cuda"),
        ("with cuda:0 and cuda:1", "cuda"),
        ("CUDA capability 8.6", "cuda"),
        ("a model with 1080 hidden units", "gpu"),
        ("batch 32 of 2080 images", "gpu"),
        ("needs a driver of at least 450.80", "driver"),
    ],
)
def test_demand_or_number_is_no_statement(text: str, key: str) -> None:
    assert key not in facts(text)


def test_template_puts_the_value_below_its_heading() -> None:
    told = facts(
        "### CUDA version\n\n11.2\n\n### cuDNN version\n\n8.1.1\n\n**GPU**\n\nRTX 3090\n\n### TensorFlow\n\n2.5.0"
    )
    assert (told["cuda"], told["cudnn_loaded"], told["gpu"]) == ("11.2", "8.1.1", "rtx 3090")


def test_table_with_a_header_row() -> None:
    told = facts("| OS | GPU | CUDA | cuDNN |\n|---|---|---|---|\n| Ubuntu 20.04 | RTX 3090 | 11.2 | 8.1 |")
    assert told == {"os": "ubuntu 20.04", "gpu": "rtx 3090", "cuda": "11.2", "cudnn_loaded": "8.1"}


def test_hint_of_a_template_is_no_value() -> None:
    told = facts("- OS (e.g., Linux Ubuntu 16.04):\n- CUDA version (e.g. 9.0): 11.2\n- TensorFlow (e.g. 1.12): 2.5.0")
    assert told == {"cuda": "11.2", "framework": "tensorflow", "framework_version": "2.5.0"}


def test_facts_of_another_person_are_not_merged_in(tmp_path: Path) -> None:
    file = tmp_path / "thread.txt"
    file.write_text(
        "**ann** commented\n\nTensorFlow 2.5.0, CUDA 11.2\n\n"
        "E tensorflow/stream_executor/cuda/cuda_dnn.cc:328] Could not create cudnn handle: "
        "CUDNN_STATUS_INTERNAL_ERROR\n\n"
        "**bob** commented\n\nI have an RTX 2070 with driver 460.91 and cuDNN 8.0.5, no error.\n"
    )
    assert answer([file])["facts"] == {"framework": "tensorflow", "framework_version": "2.5.0", "cuda": "11.2"}


def test_collect_env_of_pytorch() -> None:
    told = answer([LOGS / "collect_env.txt"])["facts"]
    assert told == {
        "framework": "pytorch",
        "framework_version": "2.11.0+cu130",
        "cuda": "13.0",
        "cudnn_loaded": "9.19.0.56",
        "driver": "580.159.04",
        "gpu": "NVIDIA H200",
        "os": "Ubuntu 24.04.3",
    }


def test_nvidia_smi_as_text_and_xml() -> None:
    assert answer([LOGS / "nvidia_smi.txt"])["facts"] == {"driver": "580.159.04", "gpu": "NVIDIA H200"}
    assert answer([LOGS / "nvidia_smi.xml"])["facts"] == {"driver": "580.159.04", "gpu": "NVIDIA H200"}


def test_pip_list() -> None:
    """Which of the frameworks in it is used it does not say."""
    assert answer([LOGS / "pip_list.txt"])["facts"]["cudnn_loaded"] == "9.19.0.56"


def test_conda_list(tmp_path: Path) -> None:
    file = tmp_path / "conda.txt"
    file.write_text(
        "# packages in environment at /home/user/miniconda3/envs/tf:\n"
        "cudatoolkit               10.1.243             h6bb024c_0\n"
        "cudnn                     7.6.5                cuda10.1_0\n"
        "tensorflow-gpu            2.1.0                h0d30ee6_0\n"
    )
    assert answer([file])["facts"] == {
        "framework": "tensorflow",
        "framework_version": "2.1.0",
        "cuda": "10.1.243",
        "cudnn_loaded": "7.6.5",
    }


def test_impossible_statement_is_doubted(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(
        "CUDA 12.1 and cuDNN 8.9\n2018-05-29 10:47:31.840117: F tensorflow/stream_executor/cuda/cuda_dnn.cc:97] Check "
        "failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)Failed to set cuDNN stream.\n"
    )
    assert answer([file])["doubts"] == [
        "CUDA 12.1 is stated in a log of 2018; CUDA 12 came in 2022",
        "cuDNN 8.9 is stated in a log of 2018; cuDNN 8 came in 2020",
    ]
    file.write_text("CUDA 19.1\nRuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR\n")
    assert answer([file])["doubts"] == ["CUDA 19.1 is stated, but no CUDA 19 is known; which is it really?"]


@pytest.mark.parametrize(
    ("text", "form"), [("7201", "7.2.1"), ("91900", "9.19.0"), ("(8, 3, 2)", "8.3.2"), ("7.6.5", "7.6.5"), ("7", "7")]
)
def test_one_dotted_form(text: str, form: str) -> None:
    assert dotted(text) == form
    assert major(text) == form.split(".", maxsplit=1)[0]
