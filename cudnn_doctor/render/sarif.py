"""SARIF 2.1.0 for code-scanning pages and viewers: each rule with its help, each finding as a result.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. A finding is about a machine, not about a source
file: it has a logical location (the pointer into the report) and, because GitHub shows nothing without one, the report
itself as the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from cudnn_doctor.model.report import Finding, Report
from cudnn_doctor.model.verdict import heading
from cudnn_doctor.render import summary
from cudnn_doctor.render.clean import one_line, visible

if TYPE_CHECKING:
    from cudnn_doctor.rules.base import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
KINDS: dict[summary.State, Literal["pass", "fail", "open", "notApplicable"]] = {
    "ok": "pass",
    "note": "fail",
    "warning": "fail",
    "error": "fail",
    "unknown": "open",
    "skipped": "notApplicable",
}


FAILS: tuple[summary.State, ...] = ("error", "warning", "note")  # what follows from another is told with that one


def render_sarif(report: Report, rules: Sequence[Rule] | None = None) -> str:
    """The log with one run; `rules` are all rules of the tool where None."""
    if rules is None:
        from cudnn_doctor.rules import all_rules

        rules = all_rules()
    known = [_rule(r) for r in rules]
    named = {r.code for r in rules}
    known += [{"id": code} for code in sorted({f.code for f in report.findings} - named)]
    index = {rule["id"]: i for i, rule in enumerate(known)}
    crashed = summary.ordered(report.findings, "crashed")
    run = {
        "tool": {
            "driver": {
                "name": report.tool.name,
                "version": report.tool.version,
                "semanticVersion": report.tool.version,
                "shortDescription": {"text": "Finds out why TensorFlow, PyTorch or JAX stops in cuDNN."},
                "rules": known,
            }
        },
        "invocations": [
            {
                "executionSuccessful": report.verdict != "no-verdict",
                "exitCode": report.exit_code,
                "exitCodeDescription": _text(report.reason),
                "toolExecutionNotifications": [_notification(f, index) for f in crashed],
            }
        ],
        "results": [
            *(_result(c.finding, index, c) for c in summary.causes(report, *FAILS)),
            *(_result(f, index) for f in report.findings if summary.state_of(f) not in (*FAILS, "crashed")),
        ],
        "properties": {"verdict": report.verdict, "takenAt": _text(report.snapshot.taken_at)},
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2) + "\n"


def _text(value: str) -> str:
    return one_line(value) or "-"


def _rule(rule: Rule) -> dict[str, Any]:
    described = {
        "id": rule.code,
        "shortDescription": {"text": _text(rule.title)},
        "fullDescription": {"text": _text(rule.explain)},
        "help": {"text": f"{visible(rule.explain)}\n\nSource: {visible(rule.source)}\nOwner: {rule.owner}"},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"owner": rule.owner, "causes": list(rule.causes)},
    }
    if rule.source.startswith("https://") and " " not in rule.source:
        described["helpUri"] = rule.source
    return described


def _result(finding: Finding, index: dict[str, int], cause: summary.Cause | None = None) -> dict[str, Any]:
    state = summary.state_of(finding)
    pointers = [e.pointer for e in finding.evidence] or [f"/findings/{finding.code}"]
    below = [heading(f) for f in cause.consequences] if cause else []
    title = cause.heading if cause else heading(finding)
    text = "\n".join((title, *summary.in_full(finding), *(f"So: {line}" for line in below)))
    return {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "kind": KINDS[state],
        "level": finding.severity if KINDS[state] == "fail" else "none",
        "message": {"text": visible(text)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "cudnn-doctor-report.json"},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [
                    {"fullyQualifiedName": visible(p), "kind": "member"} for p in dict.fromkeys(pointers)
                ],
            }
        ],
        "partialFingerprints": {"codeAndSubject/v1": _text(f"{finding.code} {finding.subject}")},
        "properties": {"owner": finding.owner, "causes": list(finding.causes), "subject": _text(finding.subject)},
    }


def _notification(finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": _text(f"{heading(finding)}: {finding.detail}")},
        "associatedRule": {"id": finding.code, "index": index[finding.code]},
    }
