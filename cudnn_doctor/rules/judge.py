"""All rules applied to an examination: findings, verdict and exit code in one `Report`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Report, tool
from cudnn_doctor.model.verdict import exit_code, verdict_of
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.causes import linked, owned
from cudnn_doctor.rules.environment import FAILED_PROBES
from cudnn_doctor.rules.selection import select_rules

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path


def requirements() -> dict[str, str]:
    """What `--require` takes, and the code of the rule that answers it."""
    return {name: rule.code for rule in all_rules() for name in rule.requirements}


@cache
def matrix_with(overlay: Path | None) -> Matrix:
    """The matrix with the user's file laid over it, read once."""
    return load_matrix(overlay)


def judge(examined: Examination, options: Options, today: date) -> Report:
    """Applies the rules. Pure but for reading the matrix file.

    Raises:
        UsageError: `--only`, `--skip` or `--require` name nothing known, or the matrix file is inconsistent.
    """
    answered_by = requirements()
    unknown = [r for r in options.require if r not in answered_by]
    if unknown:
        raise UsageError(f"--require {unknown[0]}: not known; it takes {', '.join(answered_by)}.")
    asked = {answered_by[r] for r in options.require}
    always = {FAILED_PROBES} if examined.snapshot.failures else set()  # what one left out is no pass for anybody
    loaded: list[Matrix] = []

    def load_once() -> Matrix:
        loaded[:] = [matrix_with(options.matrix)]
        return loaded[0]

    try:
        rules = select_rules(all_rules(), only=options.only, skip=options.skip, always=asked | always)
        if options.matrix:
            load_once()
        case = Case(
            examined.snapshot,
            examined.scenarios,
            trials=examined.trials,
            load_matrix=load_once,
            required=options.require,
        )
        findings = linked(case, [f for rule in rules for f in rule.apply(case)], rules)
    except ValueError as e:  # of select_rules, or a MatrixError
        raise UsageError(str(e)) from e
    if options.owner:
        findings = owned(findings, options.owner)
    left_out = not options.live and not examined.scenarios  # the user left the live check out: no answer is owed
    required = {r.code for r in rules if r.required and not (left_out and r.category == "Live")}
    verdict, reason = verdict_of(findings, fail_on=options.fail_on, required=required | asked)
    old = loaded[0].age_note(today) if loaded else None
    replayed = f"Replayed from {examined.replayed}, recorded {examined.snapshot.taken_at}; not this machine."
    return Report(
        tool=tool(loaded[0].checked_on if loaded else ""),
        verdict=verdict,
        exit_code=exit_code(verdict, findings, options.exit_style),
        fail_on=options.fail_on,
        reason=reason,
        findings=findings,
        scenarios=examined.scenarios,
        snapshot=examined.snapshot,
        trials=examined.trials,
        notes=(*([old] if old else ()), *([replayed] if examined.replayed else ())),
    )
