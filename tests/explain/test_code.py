"""`explain CODE`: meanings, causes, evidence from the states, words."""

from __future__ import annotations

import pytest

from cudnn_doctor.diagnose.codes import UnknownCodeError, explain_code, is_code
from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.render.code_answer import render_code


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("7", True),
        ("2007", True),
        ("CUDNN_STATUS_MAPPING_ERROR", True),
        ("cudnn_status_x", True),
        ("CUDA_ERROR_ASSERT", True),
        ("cudaErrorInsufficientDriver", True),
        ("CD612", True),
        ("cd612", True),
        ("train.log", False),
        ("-", False),
        ("20071", False),
        ("CD61", False),
    ],
)
def test_what_looks_like_a_code(text: str, yes: bool) -> None:
    assert is_code(text) is yes


def test_seven() -> None:
    found = explain_code("7")
    assert [(m.of, m.code, m.name) for m in found.meanings] == [("cuDNN 5 to 8", "7", "CUDNN_STATUS_MAPPING_ERROR")]
    assert found.causes[0].cause == "prior-cuda-fault"
    assert {c.cause for c in found.causes} >= {"device-context-mixup", "context-reset", "fork-after-init"}
    first = {m.scenario: m.seen for m in found.causes[0].measured}
    assert first["trap"] == ("own stream, NULL stream, stream of a handle that had none (cuDNN 8.9.7)",)
    assert "CUDA_ERROR_PROFILER_ALREADY_STARTED" in found.notes[-1]
    assert any("2007" in n for n in found.notes)


def test_two_thousand_and_seven_has_the_evidence_of_cudnn_9() -> None:
    found = explain_code("2007")
    (mixup,) = (c for c in found.causes if c.cause == "device-context-mixup")
    other = next(m for m in mixup.measured if m.scenario == "other-context")
    assert other.seen == ("stream's context current, handle's context current (cuDNN 9.1.0, 9.14.0, 9.19.0)",)
    assert not any("8.9.7" in line for c in found.causes for m in c.measured for line in m.seen)


def test_full_memory_is_no_cause_of_a_mismatch() -> None:
    assert not any(c.cause.startswith("vram") for code in ("7", "2007") for c in explain_code(code).causes)
    four = explain_code("4000")
    assert four.causes[0].cause == "vram-exhausted"
    assert {m.scenario for m in four.causes[0].measured} == {"memory-before-create", "memory-before-set"}


@pytest.mark.parametrize("cause", ["prior-cuda-fault", "device-context-mixup", "context-reset", "fork-after-init"])
def test_a_sample_for_each_framework(cause: str) -> None:
    (found,) = (c for c in explain_code("7").causes if c.cause == cause)
    assert [s.framework for s in found.samples] == ["tensorflow", "pytorch", "jax"]
    assert all(s.verify and s.source for s in found.samples)


def test_samples_are_whole_and_python_where_they_say_so() -> None:
    causes = {row["id"] for row in knowledge("causes")}
    for row in knowledge("samples"):
        assert row["cause"] in causes
        assert set(row) == {"cause", "framework", "code", "verify", "source"}
        words = ("//", "CUDA_LAUNCH_BLOCKING=1 p", "XLA_", "PYTORCH_")
        if not any(line.strip().startswith(words) for line in row["code"].splitlines()):
            compile(row["code"], row["cause"], "exec")


def test_a_name_that_two_majors_share() -> None:
    found = explain_code("cudnn_status_mapping_error")
    assert [m.code for m in found.meanings] == ["7", "4006"]


def test_a_cuda_error() -> None:
    found = explain_code("700")
    (meaning,) = found.meanings
    assert (meaning.of, meaning.name) == ("CUDA", "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert meaning.details[0] == "sticky: yes"
    (measured,) = found.causes[0].measured
    assert measured.seen == ("fault (cuDNN 8.9.7, 9.1.0, 9.14.0, 9.19.0)",)


def test_a_finding() -> None:
    found = explain_code("cd621")
    assert found.meanings[0].of == "cudnn-doctor"
    assert found.meanings[0].text.startswith("Every state was run under four cuDNN versions")


@pytest.mark.parametrize("text", ["4711", "CUDNN_STATUS_NOTHING", "CD999", "nothing"])
def test_what_is_no_code(text: str) -> None:
    with pytest.raises(UnknownCodeError):
        explain_code(text)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_as_text(width: int) -> None:
    text = render_code(explain_code("7"), width=width)
    assert " ".join(text.split()).startswith("cuDNN 5 to 8: 7 CUDNN_STATUS_MAPPING_ERROR From cudnnSetStream:")
    assert "measured: " in text
    assert "torch.cuda.set_device(local_rank)" in text
    assert max(map(len, text.splitlines())) <= max(width, 120)  # code and commands are never broken
