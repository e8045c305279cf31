"""Questions that people ask, with the answers that the wheels, the headers and NVIDIA's tables give (2026-12-01)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudnn_doctor.matrix.answer import answer
from cudnn_doctor.matrix.load import load_matrix

MATRIX = load_matrix()
INDEX = "https://download.pytorch.org/whl"


def read() -> list[tuple[str, str, list[tuple[str, str]]]]:
    """audit.txt: question, verdict, then of each way what changes and what pip is asked for."""
    rows = []
    for line in (Path(__file__).parent / "audit.txt").read_text().splitlines():
        if not line.startswith("#"):
            question, verdict, *ways = line.split(" | ")
            split = [way.partition(": ") for way in ways]
            rows.append((question, verdict, [("" if c == "-" else c, wanted) for c, _, wanted in split]))
    return rows


ANSWERS = read()


def ask(question: str) -> tuple[str, list[tuple[str, str]]]:
    words = question.split()
    options = {words[i][2:]: words[i + 1].replace("_", " ") for i, w in enumerate(words) if w.startswith("--")}
    named = [w for i, w in enumerate(words) if not w.startswith("--") and not (i and words[i - 1].startswith("--"))]
    found = answer(named[0], named[1] if named[1:] else "", MATRIX, **options)  # type: ignore[arg-type]
    ways = []
    for way in found.ways:
        line, _, index = way.command.partition(" --index-url ")
        assert not index or index == f"{INDEX}/{line.rpartition('+')[2].rstrip(chr(34))}"
        requirements = line.partition(" -m pip install ")[2].replace('"', "")
        ways.append((" ".join(way.changes), requirements))
    return found.verdict, ways


@pytest.mark.parametrize(("question", "verdict", "ways"), ANSWERS, ids=[a[0] for a in ANSWERS])
def test_answers(question: str, verdict: str, ways: list[tuple[str, str]]) -> None:
    assert ask(question) == (verdict, ways)


def facts(subject: str, name: str, **options: str) -> dict[str, str]:
    found = answer(subject, name, MATRIX, **options)  # type: ignore[arg-type]
    return {f.label: f.value for f in found.facts}


@pytest.mark.parametrize(
    ("driver", "branch", "torch"),
    [("535.54", "535, ended", "PyTorch 2.14.1 (cu126)"), ("551.61", "550, ended", "PyTorch 2.14.1 (cu126)"),
     ("566.03", "565, ended", "PyTorch 2.14.1 (cu126)"), ("511.65", "510, ended", "PyTorch 2.7.1 (cu118)"),
     ("470", "470, ended", "PyTorch 2.7.1 (cu118)"), ("581.29", "580, long-term", "PyTorch 2.15.0 (cu132)")],
)  # fmt: skip
def test_driver_numbers_of_linux_and_windows(driver: str, branch: str, torch: str) -> None:
    found = facts("driver", driver)
    assert found["branch"].startswith(branch)
    assert found["newest PyTorch"].startswith(torch)


def test_a_driver_of_jetpack_is_one_and_promises_no_wheel_of_pypi() -> None:
    found = answer("driver", "540.4.0", MATRIX)
    assert "JetPack 6" in found.facts[0].value
    assert not any(f.label.startswith("newest ") for f in found.facts)


def test_what_runs_on_an_old_card() -> None:
    found = facts("what", "", gpu="GTX 1080", driver="470", python="3.12")
    assert found["newest CUDA"] == "11.8"
    assert found["newest cuDNN"] == "9.10.2.21 (nvidia-cudnn-cu11)"
    assert found["newest TensorFlow"] == "TensorFlow 2.14.1, with Python 3.10"
    assert found["newest PyTorch"] == "PyTorch 2.7.1 (cu118)"
    assert found["newest JAX"] == "JAX 0.12.0.1 (cuda12), with driver branch 580"


def test_cudnn_is_asked_by_major_and_by_number() -> None:
    assert answer("cudnn", "9", MATRIX).title == "cuDNN 9.28"
    assert answer("cudnn", "8907", MATRIX).title == "cuDNN 8.9.7"
    ada = answer("cudnn", "8.9.7", MATRIX, gpu="RTX 4090", driver="470.82")
    assert [v.rule for v in ada.verdicts if v.verdict == "problem"] == ["cudnn-driver", "driver-gpu:unknown"]
    assert ada.command == ""
