"""Facts in the forms of tools: image tags, CMake, package managers, interpreters, frameworks of all kinds."""

from __future__ import annotations

import pytest

from cudnn_doctor.logs.document import build
from cudnn_doctor.logs.scan import Raw
from tests.explain.test_facts import facts

FORMS = [
    # images: the framework's own name their release, NVIDIA's have releases of their own
    (
        "FROM pytorch/pytorch:1.9.0-cuda11.1-cudnn8-runtime",
        {"framework": "pytorch", "framework_version": "1.9.0", "cuda": "11.1", "cudnn_loaded": "8"},
    ),
    (
        "image: paddlepaddle/paddle:2.4.2-gpu-cuda11.7-cudnn8.4-trt8.4",
        {"framework": "paddle", "framework_version": "2.4.2", "cuda": "11.7", "cudnn_loaded": "8.4"},
    ),
    ("docker run nvcr.io/nvidia/pytorch:21.03-py3", {}),
    (
        "FROM nvidia/cuda:11.8.0-cudnn8-devel-ubuntu20.04",
        {"cuda": "11.8.0", "cudnn_loaded": "8", "os": "ubuntu20.04"},
    ),
    ("chainer/chainer:v7.2.0-python3", {"framework": "chainer", "framework_version": "7.2.0"}),
    # interpreters
    (">>> torch.version.cuda\n'11.3'", {"cuda": "11.3"}),
    ("print(torch.version.cuda)  # 11.7", {"cuda": "11.7"}),
    # CMake tells what is built with
    ('-- Found CUDA: /opt/cuda (found suitable version "10.2", minimum required is "7.0")', {"cuda": "10.2"}),
    ('-- Found CUDAToolkit: /opt/cuda/include (found version "12.3.52")', {"cuda": "12.3"}),
    ('-- Found CUDNN: /usr/lib/libcudnn.so (found suitable version "8.2.0")', {"cudnn_built": "8.2.0"}),
    ("-- Found cuDNN: ver. 7.0.5 found (include: /usr/include)", {"cudnn_built": "7.0.5"}),
    (
        "--   NVIDIA CUDA:               YES (ver 11.2, CUFFT)\n--   cuDNN:                     YES (ver 8.1.0)",
        {"cuda": "11.2", "cudnn_built": "8.1.0"},
    ),
    (
        "--   CUDA              :   Yes (ver. 8.0)\n--   cuDNN             :   Yes (ver. 6.0.21)",
        {"cuda": "8.0", "cudnn_built": "6.0.21"},
    ),
    (
        "- CUDA Runtime 11.3\n- CuDNN 8.2  (built against CUDA 11.2)\n- Built with CuDNN 8.0.5",
        {"cuda": "11.3", "cudnn_loaded": "8.2", "cudnn_built": "8.0.5"},
    ),
    # codes
    (
        "CUDA Driver Version : 12020\nCUDA Runtime Version : 11020\ncuDNN Build Version : 8100\ncuDNN Version : 8101",
        {"cuda": "11.2", "cudnn_loaded": "8101", "cudnn_built": "8100"},
    ),
    ("CUDA-version: 11010 (11020), cuDNN: 8.0.5", {"framework": "darknet", "cuda": "11.1", "cudnn_loaded": "8.0.5"}),
    # two cuDNN in one sentence
    (
        "Mixed dnn version. The header is version 7005 while the library is version 7102.",
        {"framework": "theano", "cudnn_built": "7005", "cudnn_loaded": "7102"},
    ),
    (
        "[cudnn init] libcudnn v6 with header v5 unmatched!",
        {"framework": "paddle", "cudnn_loaded": "6", "cudnn_built": "5"},
    ),
    (
        "The installed Paddle is compiled with CUDNN 8.2, but CUDNN version in your machine is 8.1, which may",
        {"framework": "paddle", "cudnn_loaded": "8.1", "cudnn_built": "8.2"},
    ),
    ("linked against cuDNN 8.0.2 but loaded cuDNN 8.0.5", {"cudnn_loaded": "8.0.5", "cudnn_built": "8.0.2"}),
    ("I built it with cuDNN 6.0.21 myself", {"cudnn_loaded": "6.0.21"}),
    # package managers
    (
        "Requirement already satisfied: torch>=1.8 in /opt/conda/lib/python3.8/site-packages (from x) (1.12.1)",
        {"framework": "pytorch", "framework_version": "1.12.1"},
    ),
    ("Requirement already satisfied: nvidia-cudnn-cu11 in ./lib (8.5.0.96)", {"cudnn_loaded": "8.5.0.96"}),
    ("Successfully installed nvidia-cudnn-cu12-8.9.2.26", {"cudnn_loaded": "8.9.2.26"}),
    (
        "<artifactId>nd4j-cuda-10.2-platform</artifactId>\n<version>1.0.0-beta7</version>",
        {"framework": "deeplearning4j", "framework_version": "1.0.0-beta7", "cuda": "10.2"},
    ),
    ("com.microsoft.onnxruntime:onnxruntime_gpu:1.15.1", {"framework": "onnxruntime", "framework_version": "1.15.1"}),
    ("mxnet-cu110==2.0.0", {"framework": "mxnet", "framework_version": "2.0.0", "cuda": "11.0"}),
    ("cupy-cuda112==9.0.0", {"framework": "cupy", "framework_version": "9.0.0", "cuda": "11.2"}),
    (
        "(@v1.9) pkg> st\n  [587475ba] Flux v0.14.6\n  [052768ef] CUDA v5.1.1",
        {"framework": "flux", "framework_version": "0.14.6"},
    ),
    ("Flux v1.0 is slow in this image model", {}),
    ("Caffe (BVLC, 1.0.0-rc5)", {"framework": "caffe", "framework_version": "1.0.0-rc5"}),
    # a package made for a CUDA says less than the person
    ("libcudnn8  8.6.0.163-1+cuda11.8\nCUDA 11.6", {"cudnn_loaded": "8.6.0.163", "cuda": "11.6"}),
    # files and folders, where they agree
    ("export LD_LIBRARY_PATH=/usr/local/cuda-11.2/lib64", {"cuda": "11.2"}),
    ("/usr/local/cuda-11.2/lib64:/usr/local/cuda-11.6/lib64", {}),
    (
        r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v11.2\bin\cudnn64_8.dll",
        {"cuda": "11.2", "os": "windows"},
    ),
    ("libcudnn.so.8 -> libcudnn.so.8.0.5", {"cudnn_loaded": "8.0.5"}),
    ("libcudnn.so.8.0.5 and libcudnn.so.8.2.1", {}),
    ("libcudnn.so.8.0.5: cannot open shared object file", {}),
    # what a log opened has a name and no version
    ("I dso_loader.cc:44] Successfully opened dynamic library libcudnn.so.8", {"framework": "tensorflow"}),
    ("I dso_loader.cc:44] Successfully opened dynamic library cudart64_110.dll", {"framework": "tensorflow"}),
    # drivers
    (
        "Using CUDA 12.1 driver version 530.30.02 with kernel driver version 450.51.06.",
        {"cuda": "12.1", "driver": "450.51.06"},
    ),
    (
        "ERROR: This container was built for NVIDIA Driver Release 455.32 or later, but\n"
        "version 440.33.01 was detected and compatibility mode is UNAVAILABLE.",
        {"driver": "440.33.01"},
    ),
    ("GeForce Experience updated it to 496.13", {"driver": "496.13"}),
    # the driver's ceiling
    (
        "==============NVSMI LOG==============\nDriver Version  : 510.39.01\nCUDA Version  : 11.6\nAttached GPUs  : 1",
        {"driver": "510.39.01"},
    ),
    ("Driver version: 510.39\nCUDA version: 11.6", {"driver": "510.39", "cuda": "11.6"}),
    ('nvidia-smi in the pod shows "CUDA Version: 12.4"', {}),
    ("CUDA 11.6 (from nvidia-smi)", {}),
    ("nvidia-smi works, CUDA 10.1", {"cuda": "10.1"}),
    # questions
    ("Do I have to go back to CUDA 7.5?", {}),
    ("should I install CUDA 11.8 or go back to CUDA 10.2?", {}),
    ("I went back to CUDA 10.2", {"cuda": "10.2"}),
    # small names are words as well
    ("the gpu is a t4, on paper a4", {}),
    ("an nvidia l4 of the cloud", {"gpu": "nvidia l4"}),
    ("on a k80", {"gpu": "k80"}),
    # systems that only the place of a line shows
    ("Apr 08 11:02:13 nas systemd[1]: Started it.", {"os": "linux"}),
    (r"PS D:\work> python train.py", {"os": "windows"}),
]


@pytest.mark.parametrize(("text", "stated"), FORMS)
def test_form(text: str, stated: dict[str, str]) -> None:
    assert facts(text) == stated


def test_line_broken_by_a_terminal_is_put_together() -> None:
    long = "the packages on this machine, as the administrator listed them for me today: torch==1.13.1 and cuDNN 8.5.0"
    cut = long[:79], long[79:]
    filler = "x" * 79
    text = "\n".join([filler, "short", filler, "short", *cut])
    assert cut[0].endswith(" to")
    assert cut[1].startswith("rch==")
    assert facts(text) == {"framework": "pytorch", "framework_version": "1.13.1", "cudnn_loaded": "8.5.0"}


def test_lines_broken_between_words_stay_apart() -> None:
    lines = ["a" * 70, "b" * 69, "c" * 70, "d" * 68, "e" * 70, "f" * 66]
    document = build([("test", [Raw(i + 1, line.encode()) for i, line in enumerate(lines)])])
    assert [line.cut for line in document.lines] == [None] * 6
