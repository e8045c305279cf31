"""Every name and number of the headers is answered: CUDA runtime of both eras, driver, cuDNN, cuBLAS, cuFFT, cuSOLVER,
cuSPARSE, cuRAND, NCCL, NVML, the Xid catalogue, signals."""

from __future__ import annotations

from collections import Counter

import pytest

from cudnn_doctor.commands.explain_text import answer
from cudnn_doctor.diagnose.codes import UnknownCodeError, explain_code, is_code
from cudnn_doctor.knowledge.code_tables import codes
from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.knowledge.status import cuda_errors, names

COUNTS = {  # of the headers that each table names
    "cuda-runtime": 139, "cuda-runtime-10": 93, "cublas": 10, "cufft": 18, "cusolver": 25, "cusparse": 12, "curand": 13,
    "nccl": 9, "nvml": 32, "xid": 172, "signal": 10, "exit": 15,
}  # fmt: skip
WORDS = dict.fromkeys(("cuda-runtime", "cuda-runtime-10"), "CUDA error") | {"xid": "Xid", "exit": "exit code"}
ALL = [c for c in codes() if c.family != "exit"]


def test_the_tables_are_whole() -> None:
    assert Counter(c.family for c in codes()) == COUNTS
    assert len(cuda_errors()) == 107  # 106 of cuda.h 13.5, and cudaErrorInsufficientDriver
    assert sorted(c.code for c in codes() if c.family == "xid") == list(range(1, 173))


def test_each_name_and_number_is_answered() -> None:
    causes = {row["id"] for row in knowledge("causes")}
    for code in ALL:
        assert code.text.endswith("."), code.name
        assert set(code.causes) <= causes, code.name
        assert code.source, code.name
        if code.family != "xid":
            assert is_code(code.name), code.name
            assert code.name in [m.name for m in explain_code(code.name).meanings] or code.code == 0, code.name
        word = f"{WORDS.get(code.family, code.family)} {code.code}"
        meanings = explain_code(word).meanings
        assert meanings, word
        if code.family not in ("cuda-runtime", "cuda-runtime-10"):
            assert code.name in [m.name for m in meanings], word
    for name in names():
        assert explain_code(name).meanings, name


def test_names_of_the_driver_and_the_runtime_are_numbered_as_in_their_headers() -> None:
    by_name = {(c.family, c.name): c.code for c in codes()}
    assert by_name["cuda-runtime", "cudaErrorIllegalAddress"] == 700
    assert by_name["cuda-runtime-10", "cudaErrorIllegalAddress"] == 77
    assert by_name["cuda-runtime", "cudaErrorInvalidDeviceFunction"] == 98
    assert by_name["cuda-runtime-10", "cudaErrorInvalidDeviceFunction"] == 8
    assert by_name["cublas", "CUBLAS_STATUS_EXECUTION_FAILED"] == 13
    assert by_name["cufft", "CUFFT_INTERNAL_ERROR"] == 5
    assert by_name["cusolver", "CUSOLVER_STATUS_INTERNAL_ERROR"] == 7
    assert by_name["nccl", "ncclRemoteError"] == 6
    assert by_name["nvml", "NVML_ERROR_GPU_IS_LOST"] == 15


@pytest.mark.parametrize(
    ("typed", "of", "name"),
    [
        ("77", "CUDA runtime up to 10.0", "cudaErrorIllegalAddress"),
        ("59", "CUDA runtime up to 10.0", "cudaErrorAssert"),
        ("48", "CUDA runtime up to 10.0", "cudaErrorNoKernelImageForDevice"),
        ("30", "CUDA runtime up to 10.0", "cudaErrorUnknown"),
        ("98", "CUDA runtime, 10.1 and newer", "cudaErrorInvalidDeviceFunction"),
        ("0x2bc", "CUDA", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("CUDA error 35", "CUDA", "cudaErrorInsufficientDriver"),
        ("CUDA error: 700", "CUDA", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("Xid 31", "Xid in the kernel log", "FIFO_ERROR_MMU_ERR_FLT"),
        ("xid: 79", "Xid in the kernel log", "GPU_HAS_FALLEN_OFF_THE_BUS"),
        ("-11", "Signal", "SIGSEGV"),
        ("137", "Exit code of a process", "SIGKILL"),
        ("exit code 134", "Exit code of a process", "SIGABRT"),
        ("139", "Exit code of a process", "SIGSEGV"),
        ("signal 9", "Signal", "SIGKILL"),
        ("SIGBUS", "Signal", "SIGBUS"),
        ("IllegalAddress", "CUDA", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("ILLEGAL_ADDRESS", "CUDA", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("MAPPING_ERROR", "cuDNN 5 to 8", "CUDNN_STATUS_MAPPING_ERROR"),
        ("cublas 13", "cuBLAS", "CUBLAS_STATUS_EXECUTION_FAILED"),
        ("NCCL error 2", "NCCL", "ncclSystemError"),
        ("nvml 9", "NVML (nvidia-smi)", "NVML_ERROR_DRIVER_NOT_LOADED"),
        ("cudnn status 2007", "cuDNN 9", "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH"),
    ],
)
def test_codes_as_people_type_them(typed: str, of: str, name: str) -> None:
    assert is_code(typed)
    assert (of, name) in [(m.of, m.name) for m in explain_code(typed).meanings]


def test_a_number_that_means_two_things_asks_which_cuda() -> None:
    notes = explain_code("CUDA error 8").notes
    assert notes[0] == (
        "The runtime renumbered with CUDA 10.1: up to 10.0 8 is cudaErrorInvalidDeviceFunction, since then "
        "CUDA_ERROR_PROFILER_ALREADY_STOPPED."
    )
    assert explain_code("CUDA error 35").notes == ()  # the same in both
    assert "CUDA 10.1 and newer have no 77" in explain_code("77").notes[0]


def test_not_supported_has_its_real_causes() -> None:
    for typed in ("9", "3000"):
        found = explain_code(typed)
        assert found.causes[0].cause == "gpu-too-old-for-build"
        assert "data type, layout, sizes" in found.meanings[0].text


@pytest.mark.parametrize("typed", ["CUDA_ERROR_FOO", "cudaErrorNoSuchThing", "Xid 999", "-99", "0xffffff", "4711"])
def test_what_is_plainly_a_code_is_never_a_missing_file(typed: str) -> None:
    with pytest.raises(UnknownCodeError) as error:
        answer([typed], "text")
    assert "No such file" not in str(error.value)


@pytest.mark.parametrize("typed", ["train.log", "log", "out.txt", "20071", "/var/log/x", "MyLogFile", "my-run_3"])
def test_names_of_files_are_no_codes(typed: str) -> None:
    assert not is_code(typed)


def test_several_words_are_one_code() -> None:
    assert "SIGKILL" in answer(["exit", "code", "137"], "text")
