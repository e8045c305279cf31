"""The shipped matrix against what its sources say, and the loader."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from cudnn_doctor.matrix import load as matrix_module
from cudnn_doctor.matrix.load import load_matrix, matrix_file
from cudnn_doctor.matrix.rows import TABLES, TensorFlowRow
from cudnn_doctor.matrix.tables import MatrixError
from cudnn_doctor.model.versions import capability

MATRIX = load_matrix()


def test_every_row_says_where_it_comes_from_and_when_it_was_looked_at() -> None:
    for table in TABLES:
        rows = MATRIX.table(table)
        assert rows, table
        for row in rows:
            assert row.source, (table, row.key)
            assert all(row.source), (table, row.key)
            assert date(2026, 11, 1) <= row.checked_on <= date(2100, 1, 1), (table, row.key)
            assert row.key


@pytest.mark.parametrize(
    ("version", "python", "cuda", "cudnn"),
    [  # tensorflow/docs site/en/install/source.md, table "GPU" for Linux
        ("1.0", "2.7 3.3-3.6", "8.0", "5.1"),
        ("1.4", "2.7 3.3-3.6", "8.0", "6.0"),
        ("1.5", "2.7 3.3-3.6", "9.0", "7"),
        ("1.13", "2.7 3.3-3.7", "10.0", "7.4"),
        ("2.1", "2.7 3.5-3.7", "10.1", "7.6"),
        ("2.3", "3.5-3.8", "10.1", "7.6"),
        ("2.4", "3.6-3.8", "11.0", "8.0"),
        ("2.5", "3.6-3.9", "11.2", "8.1"),
        ("2.6", "3.6-3.9", "11.2", "8.1"),
        ("2.9", "3.7-3.10", "11.2", "8.1"),
        ("2.10", "3.7-3.10", "11.2", "8.1"),
        ("2.12", "3.8-3.11", "11.8", "8.6"),
        ("2.14", "3.9-3.11", "11.8", "8.7"),
        ("2.15", "3.9-3.11", "12.2", "8.9"),
        ("2.17", "3.9-3.12", "12.3", "8.9"),
        ("2.18", "3.9-3.12", "12.5", "9.3"),
        ("2.20", "3.9-3.13", "12.5", "9.3"),
        ("2.21", "3.10-3.13", "12.5", "9.3"),
    ],
)
def test_tested_builds_of_tensorflow(version: str, python: str, cuda: str, cudnn: str) -> None:
    row = MATRIX.framework("tensorflow", version)
    assert isinstance(row, TensorFlowRow)
    assert (row.python, row.cuda, row.cudnn) == (python, cuda, cudnn)


def test_windows_ends_at_tensorflow_2_10() -> None:
    rows = {r.version: r for r in MATRIX.tensorflow}
    assert (rows["1.12"].windows_cuda, rows["1.12"].windows_cudnn) == ("9.0", "7.2")
    assert (rows["2.10"].windows_python, rows["2.10"].windows_cuda, rows["2.10"].windows_cudnn) == (
        "3.7-3.10",
        "11.2",
        "8.1",
    )
    assert [r.version for r in MATRIX.tensorflow if r.windows_cuda][-1] == "2.10"


def test_every_minor_of_tensorflow_is_there() -> None:
    minors = [f"1.{n}" for n in range(16)] + [f"2.{n}" for n in range(23)]
    assert [r.version for r in MATRIX.tensorflow if r.version.count(".") == 1] == minors
    assert [r.version for r in MATRIX.tensorflow if r.pre] == ["2.22"]


@pytest.mark.parametrize(
    ("version", "capabilities"),
    [  # build_info.py of the wheels
        ("2.3", "sm_35 sm_37 sm_52 sm_60 sm_61 compute_70"),
        ("2.4", "sm_35 sm_50 sm_60 sm_70 sm_75 compute_80"),
        ("2.14", "sm_35 sm_50 sm_60 sm_70 sm_75 compute_80"),
        ("2.15", "sm_50 sm_60 sm_70 sm_75 compute_80"),
        ("2.16", "sm_50 sm_60 sm_70 sm_80 compute_90"),
        ("2.21", "sm_60 sm_70 sm_80 sm_89 compute_90"),
        ("2.2", "sm_35 sm_37 sm_52 sm_60 sm_61 compute_70"),  # fatbin headers
        ("2.22", "sm_60 sm_70 sm_80 sm_89 compute_90"),  # fatbin headers
    ],
)
def test_code_in_the_wheels(version: str, capabilities: str) -> None:
    row = MATRIX.framework("tensorflow", version)
    assert row is not None
    assert " ".join(row.capabilities) == capabilities


@pytest.mark.parametrize(
    ("framework", "version", "pin"),
    [  # METADATA of the wheels
        ("tensorflow", "2.14.1", "nvidia-cudnn-cu11==8.7.0.84"),
        ("tensorflow", "2.15.0.post1", "nvidia-cudnn-cu12==8.9.4.25"),
        ("tensorflow", "2.17.1", "nvidia-cudnn-cu12==8.9.7.29"),
        ("tensorflow", "2.19.0", "nvidia-cudnn-cu12==9.3.0.75"),
        ("tensorflow", "2.20.0", "nvidia-cudnn-cu12>=9.3.0.75,<10.0"),
        ("tensorflow", "2.22.0rc0", "nvidia-cudnn-cu12>=9.10.2.21,<10.0"),
        ("torch", "2.3.1", "nvidia-cudnn-cu12==8.9.2.26"),
        ("torch", "2.6.0", "nvidia-cudnn-cu12==9.1.0.70"),
        ("torch", "2.9.1", "nvidia-cudnn-cu12==9.10.2.21"),
        ("torch", "2.11.0", "nvidia-cudnn-cu13==9.19.0.56"),
        ("torch", "2.15.0", "nvidia-cudnn-cu13==9.26.0.51"),
        ("torch", "1.12.1", ""),
        ("jax", "0.5.3", "nvidia-cudnn-cu12>=9.1,<10.0"),
        ("jax", "0.12.0", "nvidia-cudnn-cu13>=9.12.0.46,<10.0"),
    ],
)
def test_what_the_wheels_require(framework: str, version: str, pin: str) -> None:
    row = MATRIX.framework(framework, version)
    assert row is not None
    assert row.cudnn_pin == pin


@pytest.mark.parametrize(
    ("distribution", "version", "system", "machine", "gpu"),
    [
        ("tensorflow", "1.14.0", "linux", "x86_64", False),
        ("tensorflow-gpu", "1.14.0", "windows", "x86_64", True),
        ("tensorflow", "1.15.0", "linux", "x86_64", True),
        ("tensorflow", "1.15.2", "linux", "x86_64", False),
        ("tensorflow", "1.15.5", "linux", "x86_64", False),
        ("tensorflow", "2.0.4", "linux", "x86_64", False),
        ("tensorflow-gpu", "2.0.4", "linux", "x86_64", True),
        ("tensorflow", "2.1.0", "linux", "x86_64", True),
        ("tensorflow", "2.10.1", "windows", "x86_64", True),
        ("tensorflow", "2.11.0", "windows", "x86_64", False),
        ("tensorflow", "2.21.0", "linux", "x86_64", True),
        ("tensorflow", "2.21.0", "linux", "aarch64", False),
        ("tensorflow-cpu", "2.17.0", "linux", "x86_64", False),
    ],
)
def test_which_distributions_are_gpu_builds(
    distribution: str, version: str, system: str, machine: str, gpu: bool
) -> None:
    row = MATRIX.build(distribution, version, system, machine)
    assert row is not None
    assert row.gpu is gpu


def test_a_distribution_that_nobody_looked_at_has_no_row() -> None:
    assert MATRIX.build("tensorflow", "2.99.0", "linux", "x86_64") is None
    assert MATRIX.build("acme-tensorflow", "2.15.0", "linux", "x86_64") is None


DRIVERS = {  # NVIDIA's release notes: CUDA, first driver on Linux, on Windows
    "9.0": ("384.81", "385.54"), "9.1": ("390.46", "391.29"), "9.2": ("396.26", "397.44"),
    "10.0": ("410.48", "411.31"), "10.1": ("418.39", "418.96"), "10.2": ("440.33", "441.22"),
    "11.0": ("450.51.05", "451.48"), "11.1": ("455.23", "456.38"), "11.2": ("460.27.03", "460.82"),
    "11.3": ("465.19.01", "465.89"), "11.4": ("470.42.01", "471.11"), "11.5": ("495.29.05", "496.04"),
    "11.6": ("510.39.01", "511.23"), "11.7": ("515.43.04", "516.01"), "11.8": ("520.61.05", "520.06"),
    "12.0": ("525.60.13", "527.41"), "12.1": ("530.30.02", "531.14"), "12.2": ("535.54.03", "536.25"),
    "12.3": ("545.23.06", "545.84"), "12.4": ("550.54.14", "551.61"), "12.5": ("555.42.02", "555.85"),
    "12.6": ("560.28.03", "560.76"), "12.8": ("570.26", "570.65"), "12.9": ("575.51.03", "576.02"),
    "13.0": ("580.65.06", ""), "13.1": ("590.44.01", ""), "13.2": ("595.45.04", ""), "13.3": ("610.43.02", ""),
    "13.4": ("615", ""), "13.5": ("620", ""),
}  # fmt: skip


def test_drivers_of_the_toolkits() -> None:
    assert {r.cuda: (r.linux, r.windows) for r in MATRIX.cuda} == DRIVERS
    assert MATRIX.cuda_row("12.5.1") is MATRIX.cuda_row("12.5")
    assert MATRIX.cuda_row("12.7") is None  # never released as a toolkit


def test_minor_version_compatibility() -> None:
    rows = {r.major: (r.linux, r.windows) for r in MATRIX.minor_compat}
    assert rows == {"11": ("450.80.02", "452.39"), "12": ("525.60.13", "527.41"), "13": ("580.65.06", "580")}


def test_branches_serve_each_toolkit_once() -> None:
    assert {b.branch: b.cuda for b in MATRIX.branches if int(b.branch) >= 525 and b.kind != "jetpack"} == {
        "525": "12.0", "530": "12.1", "535": "12.2", "545": "12.3", "550": "12.4", "555": "12.5", "560": "12.6",
        "565": "12.7", "570": "12.8", "575": "12.9", "580": "13.0", "590": "13.1", "595": "13.2", "610": "13.3",
        "615": "13.4", "620": "13.5",
    }  # fmt: skip
    assert [b.branch for b in MATRIX.branches if b.kind == "long-term"] == ["580", "620"]


def test_forward_compatibility() -> None:
    # NVIDIA's matrix: row cuda-compat package, C in the column of the base driver.
    rows = {r.cuda: r.base for r in MATRIX.forward_compat}
    assert rows["13.4"] == ("535", "570", "580", "590", "595", "610")
    assert rows["13.0"] == ("535", "570")
    assert rows["12.8"] == ("535",)
    assert "12.2" not in rows


@pytest.mark.parametrize(
    ("cc", "cuda", "cudnn", "last_branch"),
    [
        ("3.0", ("4.2", "10.2"), ("7.0", "8.7"), "470"),
        ("3.7", ("6.5", "11.8"), ("7.0", "8.7"), "470"),
        ("5.2", ("6.5", "12.9"), ("7.0", "9.10"), "580"),
        ("7.0", ("9.0", "12.9"), ("7.0", "9.10"), "580"),
        ("7.5", ("10.0", ""), ("7.3", ""), ""),
        ("9.0", ("11.8", ""), ("8.6", ""), ""),
        ("12.0", ("12.8", ""), ("9.7", ""), ""),
    ],
)
def test_gpus(cc: str, cuda: tuple[str, str], cudnn: tuple[str, str], last_branch: str) -> None:
    row = MATRIX.gpu(cc)
    assert row is not None
    assert (row.cuda_min, row.cuda_max) == cuda
    assert (row.cudnn_min, row.cudnn_max) == cudnn
    assert row.last_branch == last_branch


def test_wheels_of_cudnn() -> None:
    counts = {w.distribution: (len(w.versions), w.versions[-1], w.yanked) for w in MATRIX.cudnn_wheels}
    assert counts == {
        "nvidia-cudnn-cu11": (30, "9.10.2.21", ("8.9.4.19",)),
        "nvidia-cudnn-cu12": (58, "9.28.0.42", ("9.25.0.15",)),
        "nvidia-cudnn-cu13": (29, "9.28.1.4", ("9.25.0.15",)),
        "nvidia-cudnn-jit-cu12": (26, "9.27.0.42", ()),
        "nvidia-cudnn-jit-cu13": (26, "9.27.0.42", ()),
    }


def test_capability_codes() -> None:
    assert [capability(c) for c in ("sm_90a", "compute_120", "86", "sm_100f", "sm_35")] == [
        "9.0",
        "12.0",
        "8.6",
        "10.0",
        "3.5",
    ]


def test_newest() -> None:
    assert MATRIX.newest("tensorflow") == "2.22.0rc0"
    assert MATRIX.newest("torch") == "2.15.0"
    assert MATRIX.newest("jax") == "0.12.0.1"
    assert MATRIX.newest("mxnet") == ""
    assert MATRIX.newest_cudnn() == "9.28.1.4"
    assert MATRIX.is_newer("tensorflow", "2.23.0")
    assert not MATRIX.is_newer("tensorflow", "2.9.3")
    assert not MATRIX.is_newer("mxnet", "99.0")


def test_jax_is_asked_by_plugin() -> None:
    assert MATRIX.framework("jax", "0.9.0", distribution="cuda12").cudnn_pin == "nvidia-cudnn-cu12>=9.8,<10.0"  # type: ignore[union-attr]
    assert MATRIX.framework("jax", "0.9.0", distribution="cuda13").cudnn_pin == "nvidia-cudnn-cu13>=9.12.0.46,<10.0"  # type: ignore[union-attr]
    assert MATRIX.framework("jax", "0.4.30", distribution="cuda13") is None


def test_age() -> None:
    assert MATRIX.checked_on == "2026-11-30"
    checked = date(2026, 11, 30)
    assert MATRIX.age_note(checked + timedelta(days=180)) is None
    note = MATRIX.age_note(checked + timedelta(days=181))
    assert note is not None
    assert "2026-11-30, 181 days ago" in note
    assert "--matrix FILE" in note


def test_the_wheel_carries_it_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "checkout" / "cudnn_doctor"
    (package / "knowledge").mkdir(parents=True)
    monkeypatch.setattr(matrix_module, "HERE", package / "knowledge")
    with pytest.raises(MatrixError, match="installation is incomplete"):
        matrix_file()
    (tmp_path / "checkout" / "compat_matrix.yaml").write_text("top")
    assert matrix_file() == tmp_path / "checkout" / "compat_matrix.yaml"
    (package / "compat_matrix.yaml").write_text("wheel")
    assert matrix_file() == package / "compat_matrix.yaml"
