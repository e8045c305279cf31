"""What every form of a report says about it: categories with their facts, counts, order of the problems, next step.

Facts only, no marks, no colours and no escaping: the texts may still hold what a hostile name held, and each form
cleans them in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

from cudnn_doctor.model.base import Base, value_or
from cudnn_doctor.model.report import Evidence, Finding, Fix, Report
from cudnn_doctor.model.verdict import heading, urgency
from cudnn_doctor.render.category_facts import FACTS
from cudnn_doctor.rules.base import CATEGORIES, category_of

State = Literal["ok", "note", "warning", "error", "unknown", "skipped", "crashed"]
WORST_FIRST: tuple[State, ...] = ("crashed", "error", "warning", "unknown", "note", "ok", "skipped")
OTHER = "Other"


class Category(Base, frozen=True, kw_only=True):
    """One line of the overview: "GPU", how it stands, the facts, and its findings worst first."""

    name: str
    state: State
    facts: tuple[str, ...]
    findings: tuple[Finding, ...]


def state_of(finding: Finding) -> State:
    """A finding's status with the severity of a problem spelled out."""
    return finding.severity if finding.status == "problem" else finding.status


def worst(states: Iterable[State]) -> State:
    """The state that stands for several; none at all is skipped. A note is no fault: `ok` stands for both."""
    found = {"ok" if s == "note" else s for s in states}
    return next((s for s in WORST_FIRST if s in found), "skipped")


def ordered(findings: Iterable[Finding], *states: State) -> tuple[Finding, ...]:
    """The findings in these states, worst first, by code within a state."""
    chosen = [f for f in findings if state_of(f) in states]
    return tuple(sorted(chosen, key=lambda f: (WORST_FIRST.index(state_of(f)), f.code)))


class Cause(Base, frozen=True, kw_only=True):
    """Problems that say the same of several copies or devices, as one, and what follows from them."""

    finding: Finding
    others: tuple[Finding, ...] = ()  # the same of other subjects
    consequences: tuple[Finding, ...] = ()

    @property
    def heading(self) -> str:
        """Its heading, and of whom else that holds."""
        if not self.others:
            return heading(self.finding)
        also = ", ".join(f.subject for f in self.others[:3])
        more = f" and {len(self.others) - 3} more" if len(self.others) > 3 else ""
        return f"{heading(self.finding)} (also {also}{more})"


def causes(report: Report, *states: State) -> tuple[Cause, ...]:
    """The findings in these states that follow from no other, worst first, those with a proved cure before the rest."""
    roots: dict[str, list[Finding]] = {}
    for finding in sorted(ordered(report.findings, *states), key=lambda f: (_rank(f), urgency(f))):
        if not finding.consequence_of:
            roots.setdefault(_same(finding), []).append(finding)
    below = _below(report)
    return tuple(
        Cause(
            finding=first,
            others=tuple(others),
            consequences=_once(f for own in (first, *others) for f in below.get(id(own), ())),
        )
        for first, *others in roots.values()
    )


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first, and of those that read alike one."""
    return tuple({heading(f): f for f in ordered(findings, *WORST_FIRST)}.values())


def _rank(finding: Finding) -> int:
    return WORST_FIRST.index(state_of(finding))


def _same(finding: Finding) -> str:
    """Equal for findings that differ in their subject alone."""
    fixes = " ".join(f"{f.text} {f.command}" for f in finding.fixes)
    return f"{finding.code} {state_of(finding)} {finding.title} {fixes}".replace(finding.subject or "\0", "")


def _below(report: Report) -> dict[int, list[Finding]]:
    """What follows from each cause, by the identity of the finding."""
    found: dict[int, list[Finding]] = {}
    for finding in report.findings:
        if finding.consequence_of:
            found.setdefault(id(cause_of(report, finding)), []).append(finding)
    return found


def cause_of(report: Report, finding: Finding) -> Finding:
    """The finding from which this one follows in the end; a pointer that leads nowhere ends the way."""
    seen: set[str] = set()
    while finding.consequence_of and finding.consequence_of not in seen:
        seen.add(finding.consequence_of)
        place = finding.consequence_of.rpartition("/")[2]
        if not place.isdigit() or int(place) >= len(report.findings):
            break
        finding = report.findings[int(place)]
    return finding


def categories(report: Report) -> tuple[Category, ...]:
    """All categories that have findings, in the order of their codes; codes of a later version are "Other"."""
    found = []
    for name in (*CATEGORIES.values(), OTHER):
        findings = tuple(f for f in report.findings if category_of(f.code) == name)
        if findings:
            state = worst(state_of(f) for f in findings)
            facts = FACTS[name](report) if name in FACTS else ()
            found.append(Category(name=name, state=state, facts=tuple(facts), findings=ordered(findings, *WORST_FIRST)))
    return tuple(found)


def machine(report: Report) -> str:
    """Where this was: "Ubuntu 24.04.3 LTS, Python 3.12.3 in /opt/venv (VIRTUAL_ENV)"."""
    s = report.snapshot
    python = f"Python {value_or(s.patient.python_version, '?')} in {s.patient.prefix} ({s.patient.chosen_by})"
    return f"{value_or(s.host.os, 'unknown OS')}, {python}"


def evidence_text(evidence: Evidence) -> str:
    """Value, and in brackets where it was read."""
    return f"{evidence.value} ({evidence.source})" if evidence.source else evidence.value


def in_full(finding: Finding) -> tuple[str, ...]:
    """Detail, evidence, fixes and how to verify as plain lines, for forms that take one text."""
    lines = [finding.detail] if finding.detail and finding.title else []
    lines += [f"Seen: {evidence_text(e)}" for e in finding.evidence]
    for fix in finding.fixes:
        lines.append(f"Fix: {fix.text}")
        lines += [f"  {fix.command}"] if fix.command else []
        lines += [f"Trial: {fix.proof.text}"] if fix.proof else []
        lines += [f"Verify: {fix.verify}"] if fix.verify else []
    return tuple(lines)


def counts(report: Report) -> tuple[tuple[int, str], ...]:
    """(3, "ok"), (1, "error"), ...: only what there is, worst first."""
    states = sorted((state_of(f) for f in report.findings if not f.consequence_of), key=WORST_FIRST.index)
    tally = [(len(list(group)), str(state)) for state, group in groupby(states)]
    below = sum(bool(f.consequence_of) for f in report.findings)
    return (*tally, *([(below, "consequence" if below == 1 else "consequences")] if below else ()))


def first_fix(report: Report) -> tuple[Finding, Fix] | None:
    """The worst cause that says what to do, and its first fix."""
    for cause in causes(report, "error", "warning", "note"):
        if cause.finding.fixes:
            return cause.finding, cause.finding.fixes[0]
    return None


def next_step(report: Report) -> str:
    """What the reader does now, in one or two sentences."""
    if report.verdict == "problem":
        fix = first_fix(report)
        if fix is None:
            return "Run the check again after a change."
        proof = fix[1].proof
        proved = f" {proof.text[:1].upper()}{proof.text[1:]}." if proof and proof.outcome == "proved" else ""
        return f"Start with {fix[0].code}: {fix[1].text.rstrip('.:')}.{proved} Then run the check again."
    if report.verdict == "ok":
        return (
            "If a program still fails on this machine, give its log to `cudnn-doctor explain LOG`; "
            "`cudnn-doctor reproduce` provokes the cuDNN stream error on purpose."
        )
    if not value_or(report.snapshot.gpus, ()):
        return (
            "Run it on the machine that fails, or judge a snapshot of that machine here: "
            "`cudnn-doctor snapshot -o FILE` there, `cudnn-doctor check --replay FILE` here. "
            "`cudnn-doctor check --replay example:h200-two-copies` shows a real one."
        )
    return "See what could not be decided above; `cudnn-doctor check --verbose` shows every answer."


# Three verdicts on one pair of framework and cuDNN: they can differ, and only the first decides whether it runs.
COMPATIBILITY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Would the framework accept it?", ("CD406", "CD407", "CD408")),
    ("Does the wheel declare it?", ("CD409",)),
    ("Is it in the tested table?", ("CD410",)),
)


def three_verdicts(report: Report) -> tuple[tuple[str, tuple[Finding | None, ...]], ...]:
    """For each framework that was judged, the answer to each question; None where nothing was to be judged."""
    codes = {code for _, group in COMPATIBILITY for code in group}
    judged = [f for f in report.findings if f.code in codes and f.status != "skipped" and f.subject]
    answers = []
    for subject in dict.fromkeys(f.subject for f in judged):
        own = [f for f in judged if f.subject == subject]
        found = (ordered((f for f in own if f.code in group), *WORST_FIRST) for _, group in COMPATIBILITY)
        answers.append((subject, tuple(f[0] if f else None for f in found)))
    return tuple(answers)
