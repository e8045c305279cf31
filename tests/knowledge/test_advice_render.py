"""Answers as text, JSON and markdown."""

from __future__ import annotations

import json

import msgspec
import pytest

from cudnn_doctor.matrix.answer import answer
from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.matrix.question import Answer
from cudnn_doctor.render.matrix import render_matrix

MATRIX = load_matrix()
FOUND = answer("tensorflow", "2.18", MATRIX, driver="535.54", gpu="RTX 5090")


def test_text_marks_verdicts_and_numbers_sources() -> None:
    lines = render_matrix(FOUND, "text", width=100).splitlines()
    assert lines[0] == "TensorFlow 2.18.1"
    assert "  tested on Linux                 CUDA 12.5, cuDNN 9.3, Python 3.9-3.12 [1]" in lines
    assert "[ok]   TensorFlow 2.18.1, compiled with cuDNN 9.3, accepts 9.3.0.75 (loader:minor) [3]" in lines
    assert sum(line.startswith("[FAIL] ") for line in lines) == 2
    assert sum(line.startswith("[warn] ") for line in lines) == 2
    assert "1. TensorFlow 2.21.0 and driver branch 580" in lines
    assert '   $ python -m pip install "tensorflow[and-cuda]==2.21.0"' in lines
    assert any(line.startswith("     needs driver 570.26 or newer, not 535.54") for line in lines)
    assert any(line.startswith("[1] github.com/tensorflow/docs") for line in lines)
    assert lines[-1].endswith("checked 2026-11-30") or lines[-1].startswith("    ")


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_text_keeps_to_the_width(width: int) -> None:
    for line in render_matrix(FOUND, "text", width=width).splitlines():
        longest = max((len(word) for word in line.split()), default=0)
        assert len(line) <= max(width, 60) or longest > 26 or line.startswith("$ ")


def test_json_is_one_document() -> None:
    document = json.loads(render_matrix(FOUND, "json"))
    assert document["schema"] == "cudnn-doctor/matrix/1"
    assert (document["verdict"], document["exit_code"]) == ("problem", 1)
    assert document["verdicts"][0] == {
        "verdict": "ok",
        "rule": "loader:minor",
        "text": "TensorFlow 2.18.1, compiled with cuDNN 9.3, accepts 9.3.0.75",
        "source": "github.com/openxla/xla xla/stream_executor/cuda/cuda_dnn.cc @ 0007719d2292",
        "checked_on": "2026-11-30",
        "severity": "error",
    }
    assert set(document) == {
        "schema", "verdict", "exit_code", "subject", "name", "title", "facts", "verdicts", "command", "checked",
        "condition", "ways", "notes",
    }  # fmt: skip


def test_unknown_is_no_failure() -> None:
    document = json.loads(render_matrix(answer("tensorflow", "2.30", MATRIX), "json"))
    assert (document["verdict"], document["exit_code"]) == ("unknown", 0)


def test_markdown() -> None:
    text = render_matrix(FOUND, "markdown")
    assert text.startswith("## TensorFlow 2.18.1\n")
    assert '```sh\npython -m pip install "tensorflow[and-cuda]==2.21.0"\n```' in text
    assert "| FAIL | " in text
    assert "`driver:ptx`" in text


def test_bare_answers_render() -> None:
    bare = Answer(subject="gpu", name="x", title="x")
    assert render_matrix(bare, "text") == "x\n"
    assert render_matrix(bare, "markdown") == "## x\n"
    assert json.loads(render_matrix(bare, "json"))["verdict"] == "ok"


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_control_characters_of_a_name_do_not_reach_the_terminal(form: str) -> None:
    hostile = msgspec.structs.replace(FOUND, title="\x1b[31mred\x1b[0m <b>&`x`", notes=("\x07bell",))
    text = render_matrix(hostile, form)  # type: ignore[arg-type]
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "<b>" not in text or form == "text"
