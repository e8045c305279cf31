"""GPU names: nvidia-smi's own spellings and people's; all right, or refused with what they may mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.matrix.question import QuestionError, find_gpu

MATRIX = load_matrix()
REFUSED = "?"  # must be refused


def read() -> list[tuple[str, str]]:
    lines = (Path(__file__).parent / "gpu_names.txt").read_text().splitlines()
    rows = [line.partition(" = ") for line in lines if line and not line.startswith("#")]
    return [(name, cc) for cc, _, names in rows for name in names.split(", ")]


NAMES = read()


def capability(name: str) -> str:
    try:
        return find_gpu(MATRIX, name, "--gpu").cc
    except QuestionError:
        return REFUSED


def test_two_hundred_names() -> None:
    assert len(NAMES) >= 200
    assert len(set(NAMES)) == len(NAMES)
    wrong = [(name, cc, capability(name)) for name, cc in NAMES if capability(name) != cc]
    assert wrong == []


@given(st.sampled_from(NAMES), st.data())
def test_case_spaces_dashes_and_vendor_do_not_matter(row: tuple[str, str], data: st.DataObject) -> None:
    name, cc = row
    changed = data.draw(st.sampled_from([name.lower(), name.upper(), name.title(), name.swapcase()]))
    if data.draw(st.booleans()):
        changed = changed.replace(" ", data.draw(st.sampled_from(["-", "_", "  "])))
    if data.draw(st.booleans()) and "nvidia" not in changed.lower() and cc != REFUSED:
        changed = data.draw(st.sampled_from(["NVIDIA ", "nvidia-", "NVIDIA(R) "])) + changed
    assert capability(changed) == cc, changed


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("RTX 4000", ["may mean", "RTX 4000 Ada (8.9)"]),
        ("A4090", ["no GPU of that name"]),
        ("RTX 4095", ["The 40 series has RTX 4050, 4060, 4070, 4080, 4090"]),
        ("MI300X", ["a device of AMD"]),
        ("RX 7900 XTX", ["a device of AMD"]),
        ("Arc A770", ["a device of Intel"]),
        ("Apple M2", ["a device of Apple"]),
        ("TPU v4", ["a device of Google"]),
        ("sm_73", ["compute capability 7.3 is not in the matrix"]),
        ("H900", ["no GPU of that name"]),
    ],
)
def test_refusals_say_why_and_guess_nothing(name: str, words: list[str]) -> None:
    with pytest.raises(QuestionError) as error:
        find_gpu(MATRIX, name, "--gpu")
    for word in words:
        assert word in str(error.value)
    assert "Nearest" not in str(error.value)


@given(st.text(max_size=30))
def test_any_text_is_a_gpu_or_is_refused(name: str) -> None:
    assert capability(name) in {g.cc for g in MATRIX.gpus} | {REFUSED}
