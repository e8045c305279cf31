"""Answers against expectations, and the words made of them."""

from __future__ import annotations

import msgspec
import pytest

from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.reproduce.compare import agrees, in_words, judged, rows, unmade
from cudnn_doctor.reproduce.report import report
from cudnn_doctor.scenarios.base import Between, Expected, NoneOf, OneOf
from tests.reproduce.model import copy, device, result


@pytest.mark.parametrize(
    ("expected", "yes", "no", "words"),
    [
        (7, "7", "0", "7"),
        ("SIGSEGV", "SIGSEGV", "7", "SIGSEGV"),
        (Between(1, 64), "8.6", "265", "1 to 64"),
        (Between(1, 64), "1", "SIGSEGV", "1 to 64"),
        (OneOf((2007, "SIGSEGV")), "2007", "4000", "2007 or SIGSEGV"),
        (NoneOf((7, 2007)), "3009", "2007", "not 7 or 2007"),
    ],
)
def test_an_answer_agrees(expected: Expected, yes: str, no: str, words: str) -> None:
    assert agrees(yes, expected)
    assert not agrees(no, expected)
    assert in_words(expected) == words


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (result("null-handle", ("NULL handle", 2000)), "as-expected"),
        (result("null-handle", ("NULL handle", 2002)), "differs"),
        (result("null-handle", ("NULL handle", 2000), cudnn_version="9.99.0"), "unknown-version"),
        (result("null-handle"), "differs"),
        (result("null-handle", fate=Termination(kind="timeout", last_step="cuInit")), "differs"),
        (
            result(
                "stream-destroyed", fate=Termination(kind="signal", signal="SIGSEGV", last_label="destroyed stream")
            ),
            "as-expected",
        ),
        (
            result(
                "stream-destroyed", fate=Termination(kind="signal", signal="SIGABRT", last_label="destroyed stream")
            ),
            "differs",
        ),
        (
            result("sub-library-missing", fate=Termination(kind="signal", signal="SIGABRT", last_step="cudnnCreate")),
            "as-expected",
        ),
        (result("sub-library-missing", ("own stream", 2007)), "differs"),
        (result("green-context", ("", "cuGreenCtxCreate 801")), "not-reached"),
        (result("green-context", fate=Termination(kind="completed", error="cuX: RuntimeError: no")), "not-reached"),
    ],
)
def test_a_verdict(made: ScenarioResult, verdict: str) -> None:
    assert judged(made).verdict == verdict


def test_what_comes_after_an_expected_end_is_not_missed() -> None:
    end = Termination(kind="signal", signal="SIGSEGV", last_step="cudnnSetStream", last_label="old stream")
    made = judged(result("context-destroyed", ("before", 0), ("new stream", 2007), fate=end, cudnn_version="9.1.0"))
    assert made.verdict == "as-expected"
    assert made.expected.startswith("before: 0; new stream: 2007; old stream: 2007 or 4000 or SIGSEGV; ")
    assert [(r.label, r.outcome, r.verdict) for r in rows([made])] == [
        ("before", "0", "as-expected"),
        ("new stream", "2007", "as-expected"),
        ("old stream", "SIGSEGV", "as-expected"),
        ("new stream after the old", "", "not-reached"),
    ]


def test_why_a_state_could_not_be_made() -> None:
    assert unmade(result("green-context", ("", "cuGreenCtxCreate 801"))) == "cuGreenCtxCreate gave 801"
    assert unmade(result("handle-in-capture", ("end of global mode", "cuStreamEndCapture 901"))) == ""
    found = result("sub-library-missing", ("own stream", 0))
    anyway = Step(call="found all the same", value="/lib/libcudnn_cnn.so.9")
    found = msgspec.structs.replace(found, steps=(*found.steps, anyway))
    assert unmade(found) == "the loader finds /lib/libcudnn_cnn.so.9 by itself"


def test_a_row_has_the_status_by_name_and_category() -> None:
    step = Step(call="cudnnSetStream", label="NULL handle", status=2000, name="CUDNN_STATUS_BAD_PARAM")
    (row,) = rows([msgspec.structs.replace(result("null-handle"), steps=(step,))])
    assert (row.outcome, row.name, row.category, row.call) == (
        "2000",
        "CUDNN_STATUS_BAD_PARAM",
        "bad parameter",
        "cudnnSetStream",
    )
    assert (row.expected, row.basis) == ("2000", "measured with 9.19.0 elsewhere")


def test_differing_repetitions_differ_when_one_does() -> None:
    (row,) = rows([result("null-handle", ("NULL handle", 2000)), result("null-handle", ("NULL handle", 0))])
    assert row.seen == {"2000": 1, "0": 1}
    assert row.verdict == "differs"


def test_nothing_run_is_no_verdict() -> None:
    skipped = result("trap", skipped="refused: MPS", fate=Termination(kind="not-started"))
    document = report([skipped], [copy()], [device()])
    assert (document.verdict, document.exit_code, document.reason) == ("no-verdict", 2, "no state was run")


def test_a_difference_is_a_note_and_no_failure() -> None:
    good = [("own stream", 0), ("NULL stream", 0), ("legacy stream", 0), ("per-thread stream", 0)]
    control = judged(result("valid-stream", *good, ("own stream kept", "=1")))
    other = judged(result("null-handle", ("NULL handle", 2002)))
    document = report([control, other], [copy()], [device()])
    (finding,) = (f for f in document.findings if f.status == "problem")
    assert (finding.code, finding.severity) == ("CD621", "note")
    assert finding.title == "NULL handle: 2002, not 2000"
    assert document.exit_code == 0
