"""Status numbers by major, and CUDA's errors against cuda.bindings."""

from __future__ import annotations

import pytest

from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.knowledge.status import (
    category,
    cuda_error,
    cuda_error_named,
    cudnn_status,
    cudnn_statuses,
    cudnn_statuses_named,
)

CAUSES = {row["id"] for row in knowledge("causes")}


def test_seven_is_a_status_up_to_8_only() -> None:
    assert [(s.name, s.majors) for s in cudnn_statuses(7)] == [("CUDNN_STATUS_MAPPING_ERROR", (5, 6, 7, 8))]
    assert [(s.name, s.majors) for s in cudnn_statuses(2007)] == [("CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH", (9,))]
    assert cudnn_status(9, 7) is None
    assert cudnn_status(8, 2007) is None
    assert cudnn_status(10, 2007) is not None  # a later major is read as 9 until it is known


def test_zero_is_success_in_both() -> None:
    assert [s.name for s in cudnn_statuses(0)] == ["CUDNN_STATUS_SUCCESS"] * 2


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("CUDNN_STATUS_MAPPING_ERROR", [7, 4006]),
        ("mapping_error", [7, 4006]),
        ("CUDNN_STATUS_VERSION_MISMATCH", [14, 1002]),
        ("CUDNN_STATUS_ALLOC_FAILED", [2, 4003]),
        ("CUDNN_STATUS_INVALID_VALUE", [5, 2001]),
        ("CUDNN_STATUS_INTERNAL_ERROR", [4, 4000]),
        ("CUDNN_STATUS_NOT_A_STATUS", []),
    ],
)
def test_by_name(name: str, codes: list[int]) -> None:
    assert [s.code for s in cudnn_statuses_named(name)] == codes


def test_categories() -> None:
    status = cudnn_status(9, 2007)
    assert status is not None
    assert status.category == category(9, 2007) == "bad parameter"
    assert category(9, 4999) == "internal error"
    assert category(8, 7) == ""


def test_every_row_is_whole() -> None:
    data = knowledge("status")
    for table in ("cudnn_8", "cudnn_9"):
        rows = data[table]
        assert [r["code"] for r in rows] == sorted({r["code"] for r in rows})
        for row in rows:
            assert row["name"].startswith("CUDNN_STATUS_")
            assert row["meaning"].endswith(".")
            assert set(row.get("causes", ())) <= CAUSES
    for row in data["cuda"]:
        assert set(row.get("causes", ())) <= CAUSES
        assert "meaning" in row or "causes" not in row


def test_cuda_errors_are_those_of_the_bindings() -> None:
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings is not installed")
    for error in driver.CUresult:
        known = cuda_error(int(error))
        assert known is not None, int(error)
        assert known.name == error.name


def test_cuda_errors() -> None:
    assert [e.code for n in ("CUDA_ERROR_ASSERT", "cudaErrorInsufficientDriver") if (e := cuda_error_named(n))] == [
        710,
        35,
    ]
    dead = [c for c in range(1000) if (e := cuda_error(c)) and e.process_dead]
    assert dead == [226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911]
    assert cuda_error(4711) is None
