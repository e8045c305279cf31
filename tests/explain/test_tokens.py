"""What a case's lines amount to: statuses, order of events, versions against each other, hardware against software."""

from __future__ import annotations

import pytest

from cudnn_doctor.diagnose.diagnose import observed
from cudnn_doctor.diagnose.given import Given
from cudnn_doctor.logs.document import Document, build
from cudnn_doctor.logs.patterns import load
from cudnn_doctor.logs.scan import Raw
from cudnn_doctor.model.observations import Tokens


def derive(text: str) -> Tokens:
    document: Document = build([("test", [Raw(i + 1, n.encode()) for i, n in enumerate(text.strip().split("\n"))])])
    return observed(document, Given(), load()).signs


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR", "mapping-error"),
        ("runtimeerror: cudnn error: cudnn status mapping error", "mapping-error"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED_CUDART", "execution-failed"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH", "stream-mismatch"),
        ("F cuda_dnn.cc:97] Check failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)Failed to set", "mapping-error"),
        ("F cuda_dnn.cc:97] Check failed: status == CUDNN_STATUS_SUCCESS (8 vs. 0)Failed", "execution-failed"),
        ("Check failed: e == CUDNN_STATUS_SUCCESS (4 vs. 0) : CUDNN_STATUS_INTERNAL_ERROR", "internal-error"),
        ("Check failed: status == CUDNN_STATUS_SUCCESS (1001 vs. 0) : x", "not-initialized"),
        ("Check failed: status == CUDNN_STATUS_SUCCESS (2007 vs. 0) : x", "stream-mismatch"),
        ("Check failed: status == CUDNN_STATUS_SUCCESS (5003 vs. 0) : x", "execution-failed"),
        ("Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED", "alloc-failed"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH", "not-supported"),
    ],
)
def test_status_in_one_spelling(line: str, status: str) -> None:
    assert [name for name in derive(line) if name.startswith("status:")] == [f"status:{status}"]


FAULT = "{} E tensorflow/stream_executor/cuda/cuda_driver.cc:1003] CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"
CUDNN = "{} F tensorflow/stream_executor/cuda/cuda_dnn.cc:190] Check failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)"


@pytest.mark.parametrize(
    ("fault", "cudnn", "fault_above", "first"),
    [
        ("2020-05-01 10:00:00.100000:", "2020-05-01 10:00:00.200000:", True, True),
        ("2020-05-01 10:00:00.200000:", "2020-05-01 10:00:00.100000:", True, True),  # threads print late
        ("2020-05-01 10:00:09.000000:", "2020-05-01 10:00:00.000000:", True, False),  # the clock tells, not the place
        ("2020-05-01 10:00:00.000000:", "2020-05-01 10:00:09.000000:", False, True),
        ("", "", True, True),
        ("", "", False, False),
    ],
)
def test_which_came_first(fault: str, cudnn: str, fault_above: bool, first: bool) -> None:
    lines = [FAULT.format(fault).strip(), CUDNN.format(cudnn).strip()]
    assert ("fault-first" in derive("\n".join(lines if fault_above else lines[::-1]))) is first


def test_cudnn_call_that_failed_before_the_stream_was_set() -> None:
    text = """
2020-05-01 10:00:00.100000: E tensorflow/stream_executor/cuda/cuda_dnn.cc:81] CUDNN_STATUS_EXECUTION_FAILED in dnn.cc:1
E dnn.cc:729] CUDNN_STATUS_EXECUTION_FAILED
2020-05-01 10:00:00.200000: F tensorflow/stream_executor/cuda/cuda_dnn.cc:97] Failed to set cuDNN stream."""
    assert "cudnn-failed-before" in derive(text)


def test_pause_of_minutes() -> None:
    a = "2020-05-01 10:00:00.000000: I tensorflow/core/a.cc:1] a"
    b = "2020-05-01 10:05:00.000000: I tensorflow/core/b.cc:1] b"
    assert derive(f"{a}\n{b}")["long-gap"] == [0, 1]
    assert "long-gap" not in derive(f"{a}\n{b.replace('10:05', '10:00')}")
    assert "long-gap" not in derive(f"{a}\n{b.replace('10:05', '18:05')}")  # another run
    assert "long-gap" not in derive("\n".join([a, *["text"] * 6, b]))  # something happened in between


LOADED = "Loaded runtime CuDNN library: {} but source was compiled with: {}.  CuDNN library needs to have matching"


@pytest.mark.parametrize(
    ("loaded", "built", "token"),
    [
        ("7.4.1", "7.6.0", "loaded-older-minor"),
        ("7.6.5", "8.1.0", "loaded-older-major"),
        ("9.1.0", "8.9.4", "loaded-newer-major"),
        ("8.9.7", "8.6.0", "loaded-newer-minor"),
        ("7.0.5", "7.0.3", "loaded-newer-patch"),
        ("7.0.3", "7.0.5", "loaded-older-minor"),
    ],
)
def test_loaded_against_compiled(loaded: str, built: str, token: str) -> None:
    found = derive(LOADED.format(loaded, built))
    assert {t for t in found if t.startswith("loaded-") and t != "loaded-compiled"} == {token}


def test_number_forms_of_old_versions_are_compared_as_versions() -> None:
    text = "Loaded runtime CuDNN library: 7102 (compatibility version 7100) but source was compiled with 7005 (x"
    assert {"loaded-newer-minor", "old-version-message"} <= derive(text).keys()


def test_text_that_claims_another_version_than_the_loaded_one() -> None:
    line = LOADED.format("7.4.1", "7.6.0")
    assert "states-other-cudnn" in derive(f"cuDNN 7.6.5 is installed\n{line}")
    assert "states-other-cudnn" not in derive(f"cuDNN 7.4.1 is installed\n{line}")
    assert "built-is-installed" in derive(f"I installed cuDNN 7.6.0\n{line}")
    assert "two-builds-named" in derive(f"{line}\n{LOADED.format('7.4.1', '7.5.0')}")
    assert "version-line-cut" in derive("Loaded runtime CuDNN library: 7.4.1 but sour")


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("GPU: RTX 3090, CUDA 10.1", "gpu-newer-than-cuda"),
        ("GPU: RTX 3090, tensorflow 1.15.0", "gpu-newer-than-wheel"),
        ("GPU: RTX 5090, PyTorch 2.1.0", "gpu-newer-than-wheel"),
        ("GPU: RTX 2080 Ti, torch 1.0.1 by pip", "gpu-newer-than-wheel"),
        ("GPU: RTX 3080\nSuccessfully opened dynamic library libcudart.so.10.1", "gpu-newer-than-opened"),
        ("GPU: RTX 2080 Ti, CUDA 9.0", "gpu-newer-than-cuda"),
        ("GPU: Tesla K40, CUDA 12.1", "gpu-older-than-build"),
        ("GPU: RTX 5090, cuDNN 8.9.7", "cudnn-older-than-gpu"),
        ("NVIDIA driver 418.39, CUDA 11.2", "driver-below-cuda"),
        ("NVIDIA driver 460.91, CUDA 11.2", "driver-fits-cuda"),
        ("CUDA 10.0 and the archive cuDNN 7.6.5 for CUDA 10.1", "cudnn-for-other-cuda"),
        ("tensorflow 2.4.0 with CUDA 10.1", "flavour-differs"),
        ("GPU: GTX 1080 Ti", "gpu:consumer"),
        ("GPU: Tesla V100", "gpu:datacenter"),
        ("GPU: RTX 2070", "gpu:turing-or-later-consumer"),
        ("GPU: RTX A6000", "gpu:recent"),
        ("GPU: GTX 780", "gpu:old"),
        ("Windows 10", "os:windows"),
        ("the log is in C:\\Users\\me\\train.log", "os:windows"),
        ("Ubuntu 20.04", "os:linux"),
        ("Ubuntu under WSL2", "os:wsl"),
        ("batch size 32 works, batch size 64 fails", "size-threshold"),
        ("| 30%   50C    P2   150W / 250W |  10900MiB / 11177MiB |     99% |", "little-memory-free"),
        ("memory usage: 12058624 bytes free, 6442450944 bytes total.", "little-memory-free"),
        ("NVRM: Xid (PCI:0000:01:00): 31, pid=2211, MMU Fault", "xid:31"),
    ],
)
def test_comparison(text: str, token: str) -> None:
    assert token in derive(text)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("GPU: RTX 3090, CUDA 11.2", "gpu-newer-than-cuda"),
        ("GPU: RTX 3090, CUDA 11.0", "gpu-newer-than-cuda"),  # code of 8.0 runs on 8.6
        ("GPU: RTX 3090, PyTorch 1.8.0", "gpu-newer-than-wheel"),  # there is one for CUDA 11.1
        ("GPU: RTX 3090, pip list: torch 1.8.0+cu111", "gpu-newer-than-wheel"),
        ("GPU: Tesla V100, CUDA 9.0", "gpu-newer-than-cuda"),
        ("GPU: RTX 4090, cuDNN 8.9.2", "cudnn-older-than-gpu"),
        ("GPU: Tesla V100", "gpu:consumer"),
        ("GPU: Radeon RX 580", "gpu:named"),
        ("NVIDIA driver 418.39, CUDA 9.0", "driver-below-cuda"),
        ("CUDA 10.1 and cuDNN 7.6.5 for CUDA 10.1", "cudnn-for-other-cuda"),
        ("batch size 64 works, batch size 32 fails", "size-threshold"),
        ("Ubuntu 20.04: it printed 'failed:\\nno such file'", "os:windows"),
    ],
)
def test_no_false_comparison(text: str, token: str) -> None:
    assert token not in derive(text)


def test_another_major_than_the_wanted_file_is_there() -> None:
    text = "cuDNN 9.1 is installed\nOSError: libcudnn.so.8: cannot open shared object file: No such file or directory"
    assert "installed-other-major" in derive(text)
    assert "installed-other-major" not in derive(text.replace("9.1", "8.9"))


def test_file_that_is_really_missing_is_another_one() -> None:
    text = (
        "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcublas.so.11: cannot open shared object file: No "
        "such file or directory"
    )
    assert {"dlopen-dependency", "helper-named"} <= derive(text).keys()
    own = text.replace("libcublas.so.11", "libcudnn.so.8")
    assert not {"dlopen-dependency", "helper-named"} & derive(own).keys()
