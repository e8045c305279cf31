"""Drivers: the toolkit's own, minor-version and forward compatibility, PTX."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_doctor.matrix.compat import driver_for_cuda, driver_for_gpu
from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.model.versions import numbers

MATRIX = load_matrix()


@pytest.mark.parametrize(
    ("cuda", "driver", "verdict", "rule"),
    [
        ("12.5", "555.42.02", "ok", "driver:own"),
        ("12.5.1", "535.54.03", "ok", "driver:minor-version"),
        ("12.9", "525.60.13", "ok", "driver:minor-version"),
        ("12.9", "525.60.11", "problem", "driver:too-old"),
        ("12.5", "470.82.01", "problem", "driver:too-old"),
        ("11.8", "450.80.02", "ok", "driver:minor-version"),
        ("11.8", "450.51.06", "problem", "driver:too-old"),
        ("11.8", "620.70.06", "ok", "driver:own"),  # newer drivers are always good
        ("13.2", "580.65.06", "ok", "driver:minor-version"),
        ("13.0", "575.57.08", "problem", "driver:too-old"),
        ("10.0", "410.48", "ok", "driver:own"),
        ("10.1", "410.48", "problem", "driver:too-old"),  # before 11 there is no minor-version compatibility
        ("8.0", "390.87", "ok", "driver:own"),
        ("8.0", "367.48", "unknown", "driver"),
        ("12.5", "525", "unknown", "driver:minor-version"),  # which 525?
        ("12.5", "535", "ok", "driver:minor-version"),
        ("13.9", "620.70.06", "unknown", "driver"),  # newer than the matrix
        ("13.5", "620.70.06", "ok", "driver:own"),
    ],
)
def test_on_linux(cuda: str, driver: str, verdict: str, rule: str) -> None:
    judgement = driver_for_cuda(MATRIX, cuda, driver)
    assert (judgement.verdict, judgement.rule) == (verdict, rule)


@pytest.mark.parametrize(
    ("cuda", "driver", "verdict", "rule"),
    [
        ("12.5", "555.85", "ok", "driver:own"),
        ("12.5", "527.41", "ok", "driver:minor-version"),
        ("12.5", "516.94", "problem", "driver:too-old"),
        ("13.1", "581.15", "ok", "driver:minor-version"),
        ("13.1", "580", "ok", "driver:minor-version"),
        ("13.1", "576.02", "problem", "driver:too-old"),
    ],
)
def test_on_windows_and_wsl(cuda: str, driver: str, verdict: str, rule: str) -> None:
    judgement = driver_for_cuda(MATRIX, cuda, driver, system="windows")
    assert (judgement.verdict, judgement.rule) == (verdict, rule)


def test_ptx_needs_the_toolkits_own_driver() -> None:
    assert driver_for_cuda(MATRIX, "12.5", "535.54.03").verdict == "ok"
    ptx = driver_for_cuda(MATRIX, "12.5", "535.54.03", ptx=True)
    assert (ptx.verdict, ptx.rule) == ("problem", "driver:ptx")
    assert driver_for_cuda(MATRIX, "12.5", "555.42.06", ptx=True).verdict == "ok"


def test_what_the_driver_says_of_itself_is_the_best_evidence() -> None:
    assert driver_for_cuda(MATRIX, "13.9", "999.1", serves="14.0").verdict == "ok"
    assert driver_for_cuda(MATRIX, "12.2", "535.54.03", serves="12.2").rule == "driver:own"
    assert driver_for_cuda(MATRIX, "12.5", "535.54.03", serves="12.2").rule == "driver:minor-version"


@pytest.mark.parametrize(
    ("driver", "compat", "gpu", "verdict", "rule"),
    [
        ("535.104.05", "580.65.06", "NVIDIA H100 PCIe", "ok", "driver:forward"),
        ("535.104.05", "580.65.06", "NVIDIA GeForce RTX 4090", "problem", "driver:forward"),
        ("535.104.05", "580.65.06", "NVIDIA RTX A6000", "problem", "driver:forward"),
        ("535.104.05", "580.65.06", "", "unknown", "driver:forward"),
        ("550.54.14", "580.65.06", "NVIDIA H100 PCIe", "unknown", "driver:forward"),  # no supported base branch
        ("535.104.05", "570.26", "NVIDIA H100 PCIe", "problem", "driver:too-old"),  # compat of an older toolkit
        ("535.104.05", "", "NVIDIA H100 PCIe", "problem", "driver:too-old"),
    ],
)
def test_forward_compatibility(driver: str, compat: str, gpu: str, verdict: str, rule: str) -> None:
    judgement = driver_for_cuda(MATRIX, "13.0", driver, compat=compat, gpu=gpu)
    assert (judgement.verdict, judgement.rule) == (verdict, rule)


def test_forward_compatibility_is_offered_where_it_can_help() -> None:
    hint = "cuda-compat-13-0 would do on a data-centre GPU"
    assert hint in driver_for_cuda(MATRIX, "13.0", "535.104.05").text
    assert hint in driver_for_cuda(MATRIX, "13.0", "535.104.05", gpu="Tesla T4").text
    assert hint not in driver_for_cuda(MATRIX, "13.0", "535.104.05", gpu="GeForce RTX 4090").text
    assert hint not in driver_for_cuda(MATRIX, "13.0", "550.54.14").text
    assert hint not in driver_for_cuda(MATRIX, "13.0", "537.13", system="windows").text


@given(st.sampled_from([r.cuda for r in MATRIX.cuda]), st.integers(0, 120), st.integers(0, 99))
def test_a_driver_of_a_newer_branch_serves_every_toolkit(cuda: str, minor: int, patch: int) -> None:
    assert driver_for_cuda(MATRIX, cuda, f"621.{minor}.{patch}").verdict == "ok"


@given(st.integers(384, 640), st.integers(0, 120), st.sampled_from([r.cuda for r in MATRIX.cuda]))
def test_a_newer_driver_is_never_worse(branch: int, minor: int, cuda: str) -> None:
    order = {"problem": 0, "unknown": 1, "ok": 2}
    older = driver_for_cuda(MATRIX, cuda, f"{branch}.{minor}.05").verdict
    newer = driver_for_cuda(MATRIX, cuda, f"{branch + 1}.{minor}.05").verdict
    assert order[newer] >= order[older]


@pytest.mark.parametrize(
    ("cc", "driver", "verdict", "rule"),
    [
        ("3.7", "470.256.02", "ok", "driver-gpu"),
        ("3.7", "535.54.03", "problem", "driver-gpu:dropped"),
        ("7.0", "580.159.04", "ok", "driver-gpu"),
        ("7.0", "590.44.01", "problem", "driver-gpu:dropped"),
        ("12.0", "535.54", "problem", "driver-gpu:unknown"),
        ("12.0", "570.26", "ok", "driver-gpu"),
        ("12.0", "570", "unknown", "driver-gpu"),
        ("10.7", "610.43.02", "problem", "driver-gpu:unknown"),
        ("9.0", "620.70.06", "ok", "driver-gpu"),
        ("13.0", "620.70.06", "unknown", "driver-gpu"),
    ],
)
def test_gpus_that_a_driver_knows(cc: str, driver: str, verdict: str, rule: str) -> None:
    judgement = driver_for_gpu(MATRIX, cc, driver)
    assert (judgement.verdict, judgement.rule) == (verdict, rule)


def test_blackwell_on_windows() -> None:
    assert driver_for_gpu(MATRIX, "12.0", "570.65", system="windows").verdict == "ok"
    assert driver_for_gpu(MATRIX, "12.0", "570.26", system="windows").verdict == "problem"


def test_every_toolkit_accepts_its_own_driver() -> None:
    for row in MATRIX.cuda:
        assert driver_for_cuda(MATRIX, row.cuda, row.linux).rule == "driver:own"
        if row.windows:
            assert driver_for_cuda(MATRIX, row.cuda, row.windows, system="windows").rule == "driver:own"
        below = ".".join(map(str, (numbers(row.linux)[0] - 1, 99)))
        assert driver_for_cuda(MATRIX, row.cuda, below).rule != "driver:own"
