"""`reproduce --from LOG`: states for the log's causes, and whether they show here what the log shows."""

from __future__ import annotations

import pytest

from cudnn_doctor.model.explanation import Cause, Evidence, Explanation, Facts
from cudnn_doctor.model.live import Step, Termination
from cudnn_doctor.model.reproduction import Reproduction
from cudnn_doctor.render.reproduce import render_reproduction
from cudnn_doctor.reproduce.match_log import states_for, with_agreements
from cudnn_doctor.reproduce.report import report
from tests.reproduce.model import copy, device, result


def explanation(*causes: str, line: str = "") -> Explanation:
    evidence = (Evidence(line=1, text=line),) if line else ()
    return Explanation(
        verdict="cause-found",
        summary="",
        causes=tuple(
            Cause(
                cause=c, title="", confidence="likely", role="primary", points=1, evidence=evidence, fixes=(), avoid=""
            )
            for c in causes
        ),
        questions=(),
        facts=Facts(),
    )


def document(name: str, status: int, call: str = "cudnnSetStream") -> Reproduction:
    step = Step(call=call, label="own stream", status=status, name=name)
    trap = result("trap")
    import msgspec

    refused = result("illegal-address", skipped="not asked for: --faults", fate=Termination(kind="not-started"))
    return report([msgspec.structs.replace(trap, steps=(step,)), refused], [copy()], [device()])


def test_the_states_of_the_causes_and_the_control() -> None:
    assert states_for(explanation("fork-after-init", "stream-or-handle-destroyed")) == (
        "valid-stream",
        "after-fork",
        "handle-destroyed",
        "stream-destroyed",
    )


def test_a_log_that_no_state_explains() -> None:
    with pytest.raises(ValueError, match=r"no state of `reproduce` makes a cause of this log \(driver-too-old\)"):
        states_for(explanation("driver-too-old"))


@pytest.mark.parametrize(
    "line",
    [
        "F cuda_dnn.cc:194] Check failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)Failed to set cuDNN stream.",
        "cuDNN error: CUDNN_STATUS_MAPPING_ERROR",
        "CUDNN failure 7: CUDNN_STATUS_MAPPING_ERROR ; GPU=0 ; expr=cudnnSetStream(cudnn_handle_, stream);",
        "(External) CUDNN error(7), CUDNN_STATUS_MAPPING_ERROR.",
        "RuntimeError: cuDNN error: CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH",
        "<unknown cudnn status: 2007>",
    ],
)
def test_seven_and_two_thousand_and_seven_are_the_same_answer(line: str) -> None:
    for name, status in (("CUDNN_STATUS_MAPPING_ERROR", 7), ("CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH", 2007)):
        found = with_agreements(document(name, status), explanation("prior-cuda-fault", line=line))
        illegal, trap = found.agreements
        assert (illegal.scenario, illegal.agrees, illegal.why) == ("illegal-address", None, "not asked for: --faults")
        assert (trap.scenario, trap.agrees) == ("trap", True)
        assert trap.why == f"cudnnSetStream answers {status} {name} here too"


def test_another_answer_does_not_agree() -> None:
    log = explanation("prior-cuda-fault", line="(7 vs. 0)Failed to set cuDNN stream.")
    found = with_agreements(document("CUDNN_STATUS_INTERNAL_ERROR", 4000), log)
    assert (found.agreements[1].agrees, found.agreements[1].why) == (
        False,
        "cudnnSetStream answers 4000 CUDNN_STATUS_INTERNAL_ERROR here",
    )


def test_a_log_without_a_status_leaves_it_open() -> None:
    found = with_agreements(document("CUDNN_STATUS_INTERNAL_ERROR", 4000), explanation("prior-cuda-fault", line="boom"))
    assert found.agreements[1].agrees is None
    assert "no status to compare: prior-cuda-fault, state trap: " in render_reproduction(found)
    assert found.notes == ("The log names no cuDNN status; the states show what they answer here.",)
