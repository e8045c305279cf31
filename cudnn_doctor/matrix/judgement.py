"""One verdict on one combination, with the rule and the source of the fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from cudnn_doctor.model.report import Severity

if TYPE_CHECKING:
    from cudnn_doctor.matrix.rows import Confidence, Row
    from cudnn_doctor.matrix.tables import Matrix

JudgementVerdict = Literal["ok", "problem", "unknown"]


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """`severity` says how bad a problem is: `error` stops the program, `warning` may, `note` is information."""

    verdict: JudgementVerdict
    rule: str
    text: str
    source: str
    checked_on: str
    severity: Severity = "error"


def judged(
    verdict: JudgementVerdict,
    rule: str,
    text: str,
    row: Row,
    *,
    severity: Severity = "error",
    sure: Confidence | None = None,
) -> Judgement:
    """A judgement that cites `row`; inferred facts say so."""
    doubt = {"A": "", "B": " (from excerpts or public reports)", "C": " (inferred, not confirmed)"}
    return Judgement(
        verdict=verdict,
        rule=rule,
        text=text,
        source=row.cited + doubt[sure or row.confidence],
        checked_on=row.checked_on.isoformat(),
        severity=severity,
    )


def undecided(rule: str, text: str, matrix: Matrix, source: str = "") -> Judgement:
    """No row answers."""
    return Judgement(
        verdict="unknown",
        rule=rule,
        text=text,
        source=source or "compat_matrix.yaml",
        checked_on=matrix.checked_on,
    )
