"""Framework, cuDNN and GPU against each other: the rules, with the cases that other tools get wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_doctor.matrix.compat import (
    built_cudnn,
    cautions,
    cudnn_for_cuda,
    cudnn_for_gpu,
    expected_files,
    files_judgement,
    loader_rule,
    official_table,
    same_flavour,
    service,
    wheel_for_gpu,
)
from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.model.versions import capability, numbers

MATRIX = load_matrix()


@pytest.mark.parametrize(
    ("framework", "version", "built", "loaded", "verdict", "rule"),
    [  # "Loaded runtime CuDNN library: ... but source was compiled with: ..." of public logs, and what works
        ("tensorflow", "2.18.0", "9.3", "9.1.0", "problem", "loader:minor"),
        ("tensorflow", "2.12.0", "8.6", "8.5.0", "problem", "loader:minor"),
        ("tensorflow", "2.12.0", "8.6.0", "8.6.0", "ok", "loader:minor"),
        ("tensorflow", "2.21.0", "9.3", "9.28.0", "ok", "loader:minor"),
        ("tensorflow", "2.15.1", "8.9", "8.9.4", "ok", "loader:minor"),
        ("tensorflow", "1.13.1", "7.4", "7.6.5", "ok", "loader:minor"),
        ("tensorflow", "1.12.0", "7.2.1", "7.0.5", "problem", "loader:minor"),
        ("tensorflow", "1.7.0", "7.0", "7.1.2", "problem", "loader:exact"),  # tensorflow#36148
        ("tensorflow", "1.4.1", "6.0", "6.0.21", "ok", "loader:exact"),
        ("tensorflow", "1.2.1", "5.1", "5.0.5", "problem", "loader:exact"),
        ("tensorflow", "2.17.0", "8.9", "9.1.0", "problem", "loader:major"),
        ("tensorflow", "2.18.0", "9", "9.1.0", "unknown", "loader:minor"),
        ("tensorflow", "2.18.0", "9", "8.9.7", "problem", "loader:major"),
        ("tensorflow", "2.18.0", "", "9.1.0", "unknown", "loader"),
        ("torch", "2.11.0", "9.19.0", "9.10.2", "problem", "loader:minor"),
        ("torch", "2.11.0", "9.19.0", "9.19.1", "ok", "loader:minor"),
        ("jax", "0.6.0", "9.8", "9.1.0", "problem", "loader:minor"),
        ("onnxruntime", "1.20.0", "9.5", "9.1.0", "ok", "loader:major"),
        ("onnxruntime", "1.20.0", "9", "8.9.7", "problem", "loader:major"),
        ("chainer", "7.8", "7.6", "7.6.5", "unknown", "loader"),
    ],
)
def test_what_the_loader_accepts(
    framework: str, version: str, built: str, loaded: str, verdict: str, rule: str
) -> None:
    judgement = loader_rule(MATRIX, framework, version, built, loaded)
    assert (judgement.verdict, judgement.rule) == (verdict, rule)
    assert judgement.checked_on == "2026-11-30"
    assert judgement.source


@given(st.integers(7, 9), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_the_loader_rule_from_cudnn_7_on(major: int, built: int, loaded: int, patch: int) -> None:
    judgement = loader_rule(MATRIX, "tensorflow", "2.18.0", f"{major}.{built}", f"{major}.{loaded}.{patch}")
    assert judgement.verdict == ("ok" if loaded >= built else "problem")


@given(st.integers(23, 400), st.integers(0, 9), st.text("0123456789", min_size=1, max_size=3))
def test_a_release_newer_than_every_row_is_never_a_problem(minor: int, patch: int, cudnn: str) -> None:
    judgement = loader_rule(MATRIX, "tensorflow", f"2.{minor}.{patch}", "12.7", f"9.{int(cudnn)}.0")
    assert judgement.verdict == "unknown"


def test_built_cudnn_is_refined_not_replaced() -> None:
    assert built_cudnn(MATRIX, "tensorflow", "2.18.0", "9") == "9.3"
    assert built_cudnn(MATRIX, "tensorflow", "2.18.0", "9.5.1") == "9.5.1"
    assert built_cudnn(MATRIX, "tensorflow", "2.18.0", "8") == "8"  # a build of somebody's own
    assert built_cudnn(MATRIX, "tensorflow", "2.18.0") == "9.3"
    assert built_cudnn(MATRIX, "tensorflow", "2.99.0", "9") == "9"
    assert built_cudnn(MATRIX, "mxnet", "1.9.1") == ""


def test_facts_from_public_logs_say_so() -> None:
    assert "public reports" in loader_rule(MATRIX, "tensorflow", "2.0.0", "7.6", "7.4.1").source
    assert "public reports" not in loader_rule(MATRIX, "tensorflow", "2.18.0", "9.3", "9.1.0").source


# ---------------------------------------------------------------- what else is refused


@pytest.mark.parametrize(
    ("version", "cudnn", "capabilities", "found"),
    [
        ("2.11.0", "9.19.0", ("7.0", "9.0"), True),  # one weak GPU is enough
        ("2.10.0", "9.11.0", ("6.1",), True),
        ("2.10.0", "9.10.2", ("6.1",), False),
        ("2.9.1", "9.19.0", ("7.0",), False),  # that release does not look
        ("2.11.0", "9.19.0", ("7.5",), False),
        ("2.11.0", "9.19.0", (), False),  # no GPU known: nothing to say
    ],
)
def test_torch_refuses_cudnn_9_11_on_old_gpus(
    version: str, cudnn: str, capabilities: tuple[str, ...], found: bool
) -> None:
    judgements = cautions(MATRIX, "torch", version, cudnn=cudnn, capabilities=capabilities)
    assert [j.rule for j in judgements] == (["caution:torch-sm75"] if found else [])


def test_jax_refuses_cudnn_9_10_0() -> None:
    def rules(version: str = "0.7.0", **facts: object) -> list[str]:
        return [j.rule for j in cautions(MATRIX, "jax", version, **facts)]  # type: ignore[arg-type]

    assert rules(cudnn="9.10.0") == ["caution:jax-9.10.0"]
    assert rules(cudnn="9.10.0", built="9.10.0") == []
    assert rules(cudnn="9.10.1") == []
    assert rules(cudnn="9.8.0", cublas="12.9.1", gpus=2) == ["caution:jax-multi-gpu-matmul"]
    assert rules(cudnn="9.8.0", cublas="12.9.1", gpus=1) == []
    assert rules(cudnn="9.8.0", cublas="12.8.3", gpus=2) == []
    assert rules("0.9.1", cudnn="9.12.0", cublas="12.9.1", capabilities=("10.0",)) == ["caution:jax-tmem"]
    assert rules("0.9.1", cudnn="9.12.0", cublas="13.2.0", capabilities=("10.0",)) == []
    assert rules("0.9.1", cudnn="9.12.0", cublas="12.9.1", capabilities=("12.0",)) == []
    assert rules("0.9.0", cudnn="9.12.0", cublas="12.9.1", capabilities=("10.0",)) == []  # began with 0.9.1
    assert rules("0.6.1", cudnn="9.10.0") == []  # began with 0.6.2


# ---------------------------------------------------------------- official table


def test_the_official_table_is_information() -> None:
    same = official_table(MATRIX, "2.18.0", cuda="12.5.1", cudnn="9.3.0")
    assert (same.verdict, same.text) == ("ok", "TensorFlow 2.18 was tested with CUDA 12.5 and cuDNN 9.3")
    other = official_table(MATRIX, "2.21.0", cuda="12.5", cudnn="9.28.0")
    assert (other.verdict, other.severity) == ("problem", "note")
    assert other.text.endswith("here is cuDNN 9.28.0")
    assert official_table(MATRIX, "1.5.0", cudnn="7.0.5").verdict == "ok"  # the table names the major alone
    assert official_table(MATRIX, "2.22.0").verdict == "unknown"
    assert official_table(MATRIX, "2.15.0", system="windows").verdict == "unknown"
    assert official_table(MATRIX, "2.10.0", cuda="11.2", cudnn="8.1.0", system="windows").verdict == "ok"


# ---------------------------------------------------------------- GPUs


TF_2_21 = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")


@pytest.mark.parametrize(
    ("codes", "cc", "how"),
    [
        (TF_2_21, "5.2", "none"),
        (TF_2_21, "6.1", "native"),
        (TF_2_21, "7.5", "native"),
        (TF_2_21, "8.6", "native"),
        (TF_2_21, "9.0", "native"),  # compute_90 is machine code and PTX
        (TF_2_21, "12.0", "ptx"),
        (("sm_90a",), "9.0", "native"),
        (("sm_90a", "sm_100a"), "10.3", "none"),  # code of the "a" kind does not move
        (("sm_100f",), "10.3", "native"),
        (("compute_90a",), "12.0", "none"),
        (("sm_120",), "12.1", "native"),
        (("sm_121",), "12.0", "none"),
        ((), "9.0", "none"),
    ],
)
def test_how_code_serves_a_gpu(codes: tuple[str, ...], cc: str, how: str) -> None:
    assert service(codes, cc) == how


CODES = st.sampled_from(["sm_35", "sm_60", "sm_70", "sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])


@given(st.lists(CODES, max_size=5), st.sampled_from([g.cc for g in MATRIX.gpus]))
def test_machine_code_alone_never_crosses_a_major(codes: list[str], cc: str) -> None:
    expected = any(numbers(capability(c))[0] == numbers(cc)[0] and numbers(capability(c)) <= numbers(cc) for c in codes)
    assert service(codes, cc) == ("native" if expected else "none")


def test_a_wheel_on_a_gpu() -> None:
    native = wheel_for_gpu(MATRIX, "TensorFlow 2.21", TF_2_21, "8.9")
    assert (native.verdict, native.source) == ("ok", "the wheel")
    ptx = wheel_for_gpu(MATRIX, "TensorFlow 2.21", TF_2_21, "12.0")
    assert (ptx.verdict, ptx.severity, ptx.rule) == ("problem", "warning", "wheel-gpu:ptx")
    none = wheel_for_gpu(MATRIX, "TensorFlow 2.21", TF_2_21, "5.2")
    assert (none.verdict, none.severity, none.rule) == ("problem", "error", "wheel-gpu:none")
    assert wheel_for_gpu(MATRIX, "x", (), "9.0").verdict == "unknown"
    row = MATRIX.framework("torch", "2.6.0")
    assert row is not None
    assert "libtorch_python.so" in wheel_for_gpu(MATRIX, "torch", row.capabilities, "9.0", row).source


@pytest.mark.parametrize(
    ("version", "flavour", "cc", "verdict", "rule"),
    [  # fatbin headers of libcudnn_ops of these wheels
        ("9.10.2", 12, "7.0", "ok", "cudnn-gpu"),
        ("9.11.0", 12, "7.0", "problem", "cudnn-gpu:none"),
        ("9.28.0", 12, "6.1", "problem", "cudnn-gpu:none"),
        ("9.10.2", 12, "7.5", "ok", "cudnn-gpu"),  # sm_70 runs on 7.5
        ("9.28.0", 12, "7.5", "ok", "cudnn-gpu"),
        ("8.7.0", 11, "3.7", "ok", "cudnn-gpu"),
        ("8.8.1", 11, "3.7", "problem", "cudnn-gpu:none"),
        ("8.5.0", 11, "9.0", "problem", "cudnn-gpu:ptx"),
        ("8.6.0", 11, "9.0", "ok", "cudnn-gpu"),
        ("9.3.0", 12, "12.0", "problem", "cudnn-gpu:ptx"),
        ("9.7.1", 12, "12.0", "ok", "cudnn-gpu"),
        ("9.10.2", 11, "12.0", "problem", "cudnn-gpu:none"),  # its header says 12.0, the code is not there
        ("9.28.0", 13, "12.1", "ok", "cudnn-gpu"),
        ("9.28.0", 13, "10.3", "ok", "cudnn-gpu"),
        ("9.28.0", 13, "11.0", "problem", "cudnn-gpu:none"),
        ("7.6.5", None, "7.0", "ok", "cudnn-gpu"),
        ("7.6.5", None, "8.6", "problem", "cudnn-gpu:none"),
        ("8.1.0", None, "8.9", "ok", "cudnn-gpu"),  # sm_86 runs on 8.9
        ("8.1.0", None, "3.0", "unknown", "cudnn-gpu"),
        ("9.99.0", 12, "9.0", "unknown", "cudnn-gpu"),
        ("9.28.0", 13, "13.0", "unknown", "cudnn-gpu"),
    ],
)
def test_cudnn_on_a_gpu(version: str, flavour: int | None, cc: str, verdict: str, rule: str) -> None:
    judgement = cudnn_for_gpu(MATRIX, version, cc, flavour=flavour)
    assert (judgement.verdict, judgement.rule) == (verdict, rule)


def test_thor_is_served_on_arm_alone() -> None:
    assert cudnn_for_gpu(MATRIX, "9.28.1", "11.0", flavour=13, machine="aarch64").verdict == "ok"
    assert cudnn_for_gpu(MATRIX, "9.28.0", "11.0", flavour=12, machine="aarch64").verdict == "problem"


def test_the_hint_names_the_last_or_the_first() -> None:
    assert cudnn_for_gpu(MATRIX, "9.28.0", "7.0", flavour=12).text.endswith("the last cuDNN for it is 9.10")
    assert cudnn_for_gpu(MATRIX, "9.3.0", "12.0", flavour=12).text.endswith("cuDNN serves it from 9.7 on")


@pytest.mark.parametrize(
    ("version", "cuda", "flavour", "verdict"),
    [
        ("9.10.2", "11.8", None, "ok"),  # a peer says that 9.10.2 needs CUDA 12
        ("8.9.7", "13.0", None, "problem"),  # a peer says "compatible"
        ("8.9.7", "12.3", 12, "ok"),
        ("9.19.0", "13.0", 13, "ok"),
        ("9.19.0", "12.8", 12, "ok"),
        ("9.19.0", "12.8", 13, "problem"),
        ("9.19.0", "11.8", None, "problem"),
        ("7.6.5", "10.2", None, "ok"),
        ("7.6.5", "11.0", None, "problem"),
        ("7.6.5", "9.1", None, "problem"),
        ("9.99.0", "13.0", None, "unknown"),
        ("9.28.0", "14.0", None, "unknown"),
    ],
)
def test_cudnn_with_cuda(version: str, cuda: str, flavour: int | None, verdict: str) -> None:
    assert cudnn_for_cuda(MATRIX, version, cuda, flavour=flavour).verdict == verdict


def test_two_cuda_majors_in_one_program() -> None:
    assert same_flavour(MATRIX, "TensorFlow 2.21", "12.5", "9.28.0", 12).verdict == "ok"
    nine = same_flavour(MATRIX, "TensorFlow 2.21", "12.5", "9.28.0", 13)
    assert (nine.verdict, nine.severity) == ("problem", "warning")
    eight = same_flavour(MATRIX, "TensorFlow 2.14", "11.8", "8.9.7", 12)
    assert (eight.verdict, eight.severity) == ("problem", "error")  # 8 aborts without its own cuBLAS


# ---------------------------------------------------------------- files


def test_sub_libraries_by_version() -> None:
    assert expected_files(MATRIX, "8.9.7") == (
        "libcudnn_adv_infer.so.8", "libcudnn_adv_train.so.8", "libcudnn_cnn_infer.so.8", "libcudnn_cnn_train.so.8",
        "libcudnn_ops_infer.so.8", "libcudnn_ops_train.so.8",
    )  # fmt: skip
    nine = set(expected_files(MATRIX, "9.20.0") or ())
    assert nine == {
        f"libcudnn_{n}.so.9"
        for n in ("adv", "cnn", "engines_precompiled", "engines_runtime_compiled", "graph", "heuristic", "ops")
    }
    assert set(expected_files(MATRIX, "9.21.0") or ()) - nine == {"libcudnn_engines_tensor_ir.so.9"}
    assert set(expected_files(MATRIX, "9.22.0") or ()) - nine == {
        "libcudnn_engines_tensor_ir.so.9",
        "libcudnn_ext.so.9",
    }
    assert len(expected_files(MATRIX, "9.28.1") or ()) == 9
    assert expected_files(MATRIX, "9.27.0", "jit") == ("libcudnn_engines_runtime_compiled.so.9", "libcudnn_graph.so.9")
    assert expected_files(MATRIX, "7.6.5") == ()
    assert expected_files(MATRIX, "9.29.0") is None
    assert expected_files(MATRIX, "9.11.0", "jit") is None
    assert (expected_files(MATRIX, "9.3.0", system="windows") or ())[0] == "cudnn_adv64_9.dll"


def test_missing_sub_libraries_are_named() -> None:
    there = list(expected_files(MATRIX, "9.21.0") or ())
    assert files_judgement(MATRIX, "9.21.0", "full", there).verdict == "ok"
    missing = files_judgement(MATRIX, "9.22.0", "full", there)
    assert (missing.verdict, missing.text) == ("problem", "cuDNN 9.22.0 (full) lacks libcudnn_ext.so.9")
    assert files_judgement(MATRIX, "9.99.0", "full", there).verdict == "unknown"
