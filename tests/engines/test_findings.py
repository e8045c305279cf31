"""The rules on an examination, and its report for people."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from cudnn_doctor.engines.problems import ERRATA_NAME, OPERATIONS
from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.model.engines import (
    Control,
    EngineProgress,
    EngineRow,
    EnginesReport,
    PlanFault,
    PlanSeen,
    ProblemReport,
    Refusal,
    Totals,
)
from cudnn_doctor.model.report import Finding, Tool
from cudnn_doctor.render.engines import progress_line, render_engines
from cudnn_doctor.rules import engines as rules
from cudnn_doctor.rules.base import Rule
from cudnn_doctor.rules.engines import findings, switches

RULES = [value for value in vars(rules).values() if isinstance(value, Rule)]
OK_ROW = EngineRow(engine=0, verdict="ok", plans=2, ok=2)
FAULT = PlanFault(seen=PlanSeen(key="e5", engine=5), verdict="wrong-stream", why="1 of 1 graph nodes are in ...")
WRONG_ROW = EngineRow(
    engine=5,
    verdict="wrong-stream",
    plans=2,
    wrong_stream=1,
    ok=1,
    clones_right=1,
    clone_ms=1.5,
    behaviour=("RUNTIME_COMPILATION",),
    numerical=("TENSOR_CORE", "FFT"),
    faults=(FAULT,),
)


def report(*rows: EngineRow, **changes: Any) -> EnginesReport:
    part = ProblemReport(
        operation="conv-forward",
        data_type="fp16",
        layout="nhwc",
        shape="3x3",
        engines=81,
        rows=rows,
        refusals=(Refusal(status=3007, name="CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH", engines=(7, 8)),),
        anew_ms=20.0,
        autotune_ms=150.0,
    )
    fields: dict[str, Any] = {
        "tool": Tool(version="0.1.0"),
        "taken_at": "2026-11-30T12:00:00Z",
        "cudnn": "/opt/lib/libcudnn.so.9",
        "cudnn_version": "9.19.0",
        "device_name": "NVIDIA H200",
        "ms": 4200.0,
        "verdict": "ok",
        "exit_code": 0,
        "reason": "examined, nothing wrong",
        "capture_control": Control(planted=4, seen=4),
        "held_control": Control(planted=4, seen=4),
        "totals": Totals(problems=1, plans=4, engines=2, ok=3, wrong_stream=1, unsupported=2),
        "problems": (part,),
    }
    return EnginesReport(**{**fields, **changes})


def only(found: tuple[Finding, ...], status: str) -> list[Finding]:
    return [f for f in found if f.status == status]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_the_examples_give_what_they_say(rule: Rule) -> None:
    for status, case in rule.examples():
        found = rule.apply(case)
        assert [f.status for f in found] == [status]
        for finding in found:
            assert finding.status != "problem" or (finding.evidence and finding.fixes)


def test_the_codes() -> None:
    assert [r.code for r in RULES] == ["CD650", "CD651", "CD652", "CD653", "CD654"]


def test_a_wrong_engine_is_told_with_evidence_switches_and_cure() -> None:
    (finding,) = only(findings(report(OK_ROW, WRONG_ROW)), "problem")
    assert (finding.code, finding.severity, finding.owner) == ("CD650", "error", "program")
    assert finding.subject == "engine 5 of conv-forward"
    assert finding.title == "Ignores the stream of the handle that is given"
    assert finding.causes == ("plan-handle-stream",)
    (evidence,) = finding.evidence
    assert evidence.pointer == "/problems/0/rows/1/wrong_stream"
    assert evidence.value == "fp16 nhwc 3x3: 1 of 2 plans: 1 of 1 graph nodes are in ..."
    assert [f.command.split(" > ")[0] for f in finding.fixes[:3]] == [
        "export MXNET_CUDNN_DISABLED_CONV_FWD_ENGINES=5",
        """echo '{"version": 1, "rules": [{"rule_id": "ConvFwd_eng5", "operation": "ConvFwd", "engine": 5}]}'""",
        "export TORCH_CUDNN_V8_API_DISABLED=1",
    ]
    cure = finding.fixes[-1]
    assert "CUDNN_ATTR_EXECUTION_PLAN_HANDLE" in cure.text
    assert cure.text.endswith(
        "Tried here: 1 such clones ran in the right stream. A clone took 1.5 ms, building anew without measuring "
        "20.0 ms."
    )
    assert cure.verify == "cudnn-doctor engines --op conv-forward --engine 5"


def test_the_evidence_points_to_what_it_says() -> None:
    document = msgspec.json.decode(msgspec.json.encode(report(OK_ROW, WRONG_ROW)))
    (finding,) = only(findings(report(OK_ROW, WRONG_ROW)), "problem")
    node: Any = document
    for part in finding.evidence[0].pointer.strip("/").split("/"):
        node = node[int(part)] if isinstance(node, list) else node[part]
    assert node == 1


def test_the_evidence_moves_with_the_examination() -> None:
    (finding,) = only(findings(report(OK_ROW, WRONG_ROW), at="/engines"), "problem")
    assert finding.evidence[0].pointer == "/engines/problems/0/rows/1/wrong_stream"
    (passed,) = [f for f in findings(report(OK_ROW), at="/engines") if f.code == "CD652"]
    assert (passed.status, passed.evidence[0].pointer) == ("ok", "/engines/totals/plans")
    assert passed.evidence[0].value == "0 of 4 plans ended the process"


def test_what_was_not_tested_is_skipped() -> None:
    assert {f.code: f.status for f in findings(report(OK_ROW))} == {
        "CD650": "ok",
        "CD651": "ok",
        "CD652": "ok",
        "CD653": "skipped",
        "CD654": "skipped",
    }


def test_a_clone_that_did_not_cure_is_not_offered() -> None:
    row = msgspec.structs.replace(WRONG_ROW, clones_right=0, clones_wrong=1)
    (finding,) = only(findings(report(row)), "problem")
    assert not any("CUDNN_ATTR_EXECUTION_PLAN_HANDLE" in f.text for f in finding.fixes)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_has_a_switch_but_matmul_outside_the_errata_file(operation: str) -> None:
    fixes = switches(operation, 5)
    assert fixes
    for fix in fixes:
        assert "{" not in fix.command.replace('{"', "").replace("[{", "")
        if "errata.json" in fix.command:
            rule = json.loads(fix.command.split("'")[1])["rules"][0]
            assert rule == {
                "rule_id": f"{ERRATA_NAME[operation]}_eng5",
                "operation": ERRATA_NAME[operation],
                "engine": 5,
            }


def test_every_switch_has_a_source() -> None:
    data = knowledge("engines")
    assert all(s["source"].startswith("https://") for s in [*data["switches"], data["fault"], data["clone"]])
    assert all(set(s["operations"]) <= set(OPERATIONS) for s in data["switches"])


def test_no_plan_says_why() -> None:
    failed = ProblemReport(
        operation="matmul", data_type="fp16", layout="row-major", shape="b", error="graph: 1008 CUDNN_STATUS_X"
    )
    (finding,) = only(findings(report(problems=(failed,), totals=Totals())), "unknown")
    assert finding.detail == "matmul fp16 row-major b: graph: 1008 CUDNN_STATUS_X"


# ---------------------------------------------------------------- for people

SHOWN = """\
Engines of cuDNN 9.19.0 on NVIDIA H200 (device 0): full form, 4.2 s
/opt/lib/libcudnn.so.9

engine  forward
0       2
5       WRONG 1/2
Numbers are plans in the given stream; '.' is an engine that does not support
what was asked.

4 plans of 2 engines on 1 problems: 3 in the given stream, 1 in a wrong one, 0
suspect, 0 ended the process, 0 could not be judged; 0 cannot be captured; 2
times an engine gave no plan.
Controls: the fault was put there and seen 4 of 4 times by capture, 4 of 4 times
by a held stream.
Cost (medians): a clone 1.5 ms, building anew 20 ms, building anew and measuring
all 150 ms.

Engines at fault
  engine 5 of conv-forward: wrong-stream; behaviour and numerical notes:
  RUNTIME_COMPILATION, TENSOR_CORE, FFT

Findings (1)

[✗] CD650 engine 5 of conv-forward: Ignores the stream of the handle that is
    given
"""


def test_the_report_for_people() -> None:
    r = report(OK_ROW, WRONG_ROW, verdict="problem", exit_code=1, reason="CD650 Engine 5 ...")
    text = render_engines(r, findings(r))
    assert text.startswith(SHOWN)
    assert text.endswith("\nPROBLEM: CD650 Engine 5 ... (exit code 1)\n")
    assert max(len(line) for line in text.splitlines() if "errata.json" not in line) <= 80


def test_the_report_for_people_in_ascii_and_in_colour() -> None:
    r = report(OK_ROW, WRONG_ROW)
    assert render_engines(r, findings(r), encoding="ascii").isascii()
    painted = render_engines(r, findings(r), color=True)
    assert "\x1b[" in painted


def test_what_was_not_examined_is_told_once() -> None:
    parts = tuple(
        ProblemReport(operation="matmul", data_type=d, layout="row-major", shape="b", error="the time was up")
        for d in ("fp16", "bf16", "fp32")
    )
    r = report(problems=parts, totals=Totals(problems=3), interrupted=True, verdict="no-verdict", exit_code=2)
    text = render_engines(r, findings(r), width=120)
    assert "Interrupted: this is what there was by then." in text
    assert "  matmul fp16 row-major b, matmul bf16 row-major b and 1 more: the time was up\n" in text


def test_hostile_names_do_nothing() -> None:
    r = report(OK_ROW, device_name="\x1b[31mH200\n::error::x", cudnn="/tmp/\x1b]0;x\x07/libcudnn.so.9")
    text = render_engines(r, findings(r))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())


def test_progress_line() -> None:
    assert progress_line(EngineProgress(done=29, problems=116, plans=812)) == (
        "[#####...............] 29 of 116 problems, 812 plans"
    )
    assert progress_line(EngineProgress(done=0, problems=0, plans=0), 4) == "[....] 0 of 0 problems, 0 plans"
