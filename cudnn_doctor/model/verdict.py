"""Verdict and exit code, one pure function for every command and format."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from cudnn_doctor.model.report import Finding, Severity, Verdict

OK, PROBLEM, NO_VERDICT = 0, 1, 2
RANK: dict[Severity, int] = {"note": 0, "warning": 1, "error": 2}
ExitStyle = Literal["plain", "nagios"]


def heading(finding: Finding) -> str:
    """What is wrong with what: "CD302 torch 2.11.0: An older copy is found first". A title that names its subject says
    it once."""
    title = finding.title or finding.detail
    told = not finding.subject or finding.subject in title
    return f"{finding.code} {title}" if told else f"{finding.code} {finding.subject}: {title}"


def verdict_of(
    findings: Iterable[Finding], *, fail_on: Severity = "error", required: Collection[str] = ()
) -> tuple[Verdict, str]:
    """The verdict over all findings and the sentence that says why.

    `required` holds codes of rules that must have been answered: one of them `unknown`, `skipped` or `crashed`
    leaves no verdict unless a problem is there anyway. A problem beats a missing answer; no finding with status
    `ok` at all is never a pass.
    """
    all_findings = list(findings)
    bad = [f for f in all_findings if f.status == "problem" and RANK[f.severity] >= RANK[fail_on]]
    if bad:
        return "problem", _worst([f for f in bad if not f.consequence_of] or bad)
    for f in all_findings:
        if f.status == "crashed":
            return "no-verdict", f"{f.code} {f.subject}".rstrip() + f" could not be judged: {f.detail or f.title}"
        if f.code in required and f.status in ("unknown", "skipped"):
            return "no-verdict", f"{heading(f)}: {f.detail or f.status}"
    if not any(f.status == "ok" for f in all_findings):
        only = all_findings[0] if len(all_findings) == 1 else None
        why = f": {heading(only)}: {only.detail or only.status}" if only else ""
        return "no-verdict", f"nothing was examined{why}"
    warnings = [f for f in all_findings if f.status == "problem" and f.severity != "note"]
    return "ok", f"examined, no error; warning: {_worst(warnings)}" if warnings else "examined, nothing wrong"


def _worst(problems: list[Finding]) -> str:
    first = min(problems, key=urgency)
    more = len({(f.code, f.title) for f in problems}) - 1
    return f"{heading(first)}{f' (and {more} more)' if more else ''}"


def urgency(finding: Finding) -> tuple[int, bool, str]:
    """Order of problems: the worst first, of these the ones with a proved cure, then by code."""
    proved = any(f.proof and f.proof.outcome == "proved" for f in finding.fixes)
    return -RANK[finding.severity], not proved, finding.code


def exit_code(verdict: Verdict, findings: Iterable[Finding] = (), style: ExitStyle = "plain") -> int:
    """0, 1, 2; in `nagios` style 0 OK, 1 WARNING (a problem below error: a warning, or a note that counts by
    `fail_on`), 2 CRITICAL, 3 UNKNOWN."""
    if style == "plain":
        return {"ok": OK, "problem": PROBLEM, "no-verdict": NO_VERDICT}[verdict]
    if verdict == "no-verdict":
        return 3
    worst = max((RANK[f.severity] for f in findings if f.status == "problem"), default=-1)
    if worst == RANK["error"]:
        return 2
    return 1 if worst == RANK["warning"] or verdict == "problem" else 0
