"""Tests of the rules. `judge` applies one rule and gives its findings."""

from __future__ import annotations

from cudnn_doctor.model.report import Finding
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case

BY_CODE = {rule.code: rule for rule in all_rules()}


def judge(code: str, case: Case) -> tuple[Finding, ...]:
    """The findings of one rule."""
    return BY_CODE[code].apply(case)


def only(code: str, case: Case) -> Finding:
    """The one finding of a rule."""
    (finding,) = judge(code, case)
    return finding
