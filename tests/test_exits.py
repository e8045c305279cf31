"""Verdict and exit code: the contract of design.md section 5."""

from __future__ import annotations

import msgspec
import pytest

from cudnn_doctor.model.report import Finding, Severity, Status
from cudnn_doctor.model.verdict import exit_code, heading, verdict_of


def finding(status: Status, severity: Severity = "error", code: str = "CD101") -> Finding:
    return Finding(code=code, status=status, severity=severity, owner="node", subject="GPU 0", title="title")


def test_no_finding_at_all_is_never_a_pass() -> None:
    assert verdict_of([]) == ("no-verdict", "nothing was examined")


def test_the_only_answer_says_why_it_is_none() -> None:
    alone = msgspec.structs.replace(finding("skipped"), detail="it is not set")
    assert verdict_of([alone]) == ("no-verdict", "nothing was examined: CD101 GPU 0: title: it is not set")
    assert verdict_of([finding("unknown")]) == ("no-verdict", "nothing was examined: CD101 GPU 0: title: unknown")
    assert verdict_of([alone, alone]) == ("no-verdict", "nothing was examined")


def test_a_pass_with_warnings_does_not_say_that_nothing_is_wrong() -> None:
    found = [finding("ok"), finding("problem", "note"), finding("problem", "warning", "CD304")]
    assert verdict_of(found) == ("ok", "examined, no error; warning: CD304 GPU 0: title")
    more = [finding("problem", "warning", "CD305")]
    assert verdict_of([*found, *more])[1] == "examined, no error; warning: CD304 GPU 0: title (and 1 more)"
    assert verdict_of(found[:2]) == ("ok", "examined, nothing wrong")


@pytest.mark.parametrize("status", ["unknown", "skipped"])
def test_only_unanswered_findings_are_never_a_pass(status: Status) -> None:
    assert verdict_of([finding(status)])[0] == "no-verdict"


def test_a_crashed_rule_leaves_no_verdict_although_others_passed() -> None:
    assert verdict_of([finding("ok"), finding("crashed", code="CD102")])[0] == "no-verdict"


def test_an_unanswered_required_rule_leaves_no_verdict() -> None:
    found = [finding("ok"), finding("unknown", code="CD102")]
    assert verdict_of(found)[0] == "ok"
    assert verdict_of(found, required={"CD102"}) == ("no-verdict", "CD102 GPU 0: title: unknown")


def test_a_problem_beats_a_missing_answer() -> None:
    found = [finding("crashed"), finding("problem", code="CD301")]
    assert verdict_of(found, required={"CD101"}) == ("problem", "CD301 GPU 0: title")


def test_a_title_that_names_its_subject_says_it_once() -> None:
    one = msgspec.structs.replace(finding("ok"), title="The driver of GPU 0 is old")
    assert heading(one) == "CD101 The driver of GPU 0 is old"
    assert heading(msgspec.structs.replace(one, subject="torch")) == "CD101 torch: The driver of GPU 0 is old"
    assert heading(msgspec.structs.replace(one, subject="", title="", detail="why")) == "CD101 why"


def test_the_most_severe_problem_is_named_and_the_rest_counted() -> None:
    found = [finding("problem", "warning", "CD201"), finding("problem", "error", "CD301")]
    assert verdict_of(found, fail_on="warning") == ("problem", "CD301 GPU 0: title (and 1 more)")


@pytest.mark.parametrize(
    ("severity", "fail_on", "verdict"),
    [
        ("note", "error", "ok"),
        ("warning", "error", "ok"),
        ("error", "error", "problem"),
        ("note", "warning", "ok"),
        ("warning", "warning", "problem"),
        ("note", "note", "problem"),
    ],
)
def test_fail_on(severity: Severity, fail_on: Severity, verdict: str) -> None:
    assert verdict_of([finding("ok"), finding("problem", severity)], fail_on=fail_on)[0] == verdict


def test_plain_exit_codes() -> None:
    assert [exit_code(v) for v in ("ok", "problem", "no-verdict")] == [0, 1, 2]


@pytest.mark.parametrize(
    ("worst", "code"), [(None, 0), ("note", 0), ("warning", 1), ("error", 2)], ids=["none", "note", "warning", "error"]
)
def test_nagios_exit_codes(worst: Severity | None, code: int) -> None:
    found = [finding("ok"), *([finding("problem", worst)] if worst else [])]
    assert exit_code("ok", found, "nagios") == code
    assert exit_code("no-verdict", found, "nagios") == 3
