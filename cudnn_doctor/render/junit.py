"""JUnit XML as Jenkins, GitLab and most CI systems read it: a suite a category, a test case a finding.

A problem that counts for the verdict is a failure, a rule that crashed an error, unknown and skipped are skipped with
their reason. The first suite holds the verdict itself, so that a run without verdict is never green.
"""

from __future__ import annotations

from cudnn_doctor.model.report import Finding, Report
from cudnn_doctor.model.verdict import RANK, heading
from cudnn_doctor.render import summary
from cudnn_doctor.render.clean import disarmed, one_line
from cudnn_doctor.render.html_elements import Markup, join, tag


def render_junit(report: Report) -> str:
    """The document, in UTF-8."""
    suites = [_suite(report, "Verdict", [_verdict(report)])]
    suites += [
        _suite(report, c.name, [_case(report, c.name, f) for f in c.findings]) for c in summary.categories(report)
    ]
    body = join(suites, "\n")
    root = tag(
        "testsuites",
        Markup(f"\n{body}\n"),
        name="cudnn-doctor",
        tests=body.count("<testcase "),
        failures=body.count("<failure "),
        errors=body.count("<error "),
    )
    return disarmed(f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n')


def _suite(report: Report, name: str, cases: list[Markup]) -> Markup:
    body = join(cases, "\n")
    return tag(
        "testsuite",
        Markup(f"\n{body}\n"),
        name=f"cudnn-doctor.{name}",
        tests=len(cases),
        failures=body.count("<failure "),
        errors=body.count("<error "),
        skipped=body.count("<skipped "),
        timestamp=report.snapshot.taken_at.removesuffix("Z"),
    )


def _verdict(report: Report) -> Markup:
    child: tuple[Markup, ...] = ()
    if report.verdict != "ok":
        kind = "failure" if report.verdict == "problem" else "error"
        child = (tag(kind, summary.next_step(report), message=one_line(report.reason), type=report.verdict),)
    return tag("testcase", *child, classname="cudnn-doctor.Verdict", name=f"exit code {report.exit_code}")


def _case(report: Report, category: str, finding: Finding) -> Markup:
    name = one_line(heading(finding))
    text = "\n".join(summary.in_full(finding))
    state = summary.state_of(finding)
    child: tuple[Markup, ...] = ()
    if finding.consequence_of:
        cause = summary.cause_of(report, finding)
        child = (tag("skipped", message=f"a consequence of {one_line(heading(cause))}"),)
    elif finding.status == "problem" and RANK[finding.severity] >= RANK[report.fail_on]:
        child = (tag("failure", text, message=name, type=finding.code),)
    elif state == "crashed":
        child = (tag("error", text, message=one_line(finding.detail or name), type=finding.code),)
    elif state in ("unknown", "skipped"):
        child = (tag("skipped", message=one_line(finding.detail or name)),)
    elif text:
        child = (tag("system-out", text),)
    return tag("testcase", *child, classname=f"cudnn-doctor.{category}", name=name)
