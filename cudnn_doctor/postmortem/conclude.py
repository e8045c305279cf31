"""Why a program died: from what `run` saw to a cause. A pure function of a recording and of what `explain` says of its
output, so that a saved run.jsonl gives the same answer on any machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cudnn_doctor.diagnose.conditions import fits
from cudnn_doctor.diagnose.values import filled
from cudnn_doctor.logs.patterns import KnownCause
from cudnn_doctor.model.explanation import Cause, Confidence, Explanation, Facts, Fix, Verdict
from cudnn_doctor.model.run_recording import RunRecording
from cudnn_doctor.postmortem import deaths, gpu
from cudnn_doctor.postmortem.finding import LIKELY, SEEN, Finding
from cudnn_doctor.postmortem.python_error import python_error

FOUND, MARGIN, CONFIRMED = 5, 2, SEEN - 1  # points, as in explain's ranking, on this scale
_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
_FRAMEWORKS = (("libtorch", "pytorch"), ("tensorflow", "tensorflow"), ("xla_cuda_plugin", "jax"))
_MOST = 6
_EVIDENCE = 4


def conclude(run: RunRecording, told: Explanation | None, causes: Mapping[str, KnownCause]) -> Explanation:
    """The causes of a program's end, best first.

    Args:
        told: what `explain` says of its output; None where it wrote nothing.
        causes: knowledge/causes.yaml by id.
    """
    if not run.ending.exit_code:
        seen = tuple(f"{e.text}: {e.because}" for e in gpu.notes(run))
        return _explanation("no-problem", "The program ended well.", (), told, notes=seen)
    ranked = _ranked(_all(run, told))
    if not ranked:
        return _explanation("undetermined", _nothing(run), (), told, notes=run.lacks)
    best = ranked[0]
    kin = causes[best.cause].kin
    rival = next((f.points for f in ranked[1:] if f.cause not in kin), 0)
    found = best.points >= FOUND and best.points - rival >= MARGIN
    sure: Confidence = ("confirmed" if best.points >= CONFIRMED else "likely") if found else "possible"
    facts = _stated(run, told)
    shown = tuple(_cause(f, causes[f.cause], sure if f is best else "possible", facts) for f in ranked[:_MOST])
    if not found:
        names = ", ".join(f.cause for f in ranked[:3])
        summary = f"{_nothing(run)} Possible, best first: {names}."
        return _explanation("undetermined", summary, shown, told, notes=run.lacks)
    word = "The events prove it." if sure == "confirmed" else "This is the likely reading."
    return _explanation("cause-found", f"{shown[0].title}. {word}", shown, told, notes=run.lacks)


def _nothing(run: RunRecording) -> str:
    how = run.ending.signal or f"exit code {run.ending.exit_code}"
    return f"Nothing that was seen from outside, inside or in its output decides why the program ended with {how}."


def _all(run: RunRecording, told: Explanation | None) -> list[Finding]:
    found = [f for rule in deaths.RULES if (f := rule(run)) is not None]
    inside = gpu.findings(run)
    said = _said(run, told, {f.cause for f in inside})
    error = python_error(run)
    if error is not None and not inside and not any(f.points >= LIKELY for f in said):
        found.append(error)
    return [*found, *inside, *said]


def _said(run: RunRecording, told: Explanation | None, seen: set[str]) -> list[Finding]:
    """What the output alone shows. Where somebody outside ended the program its text weighs less: it was no end."""
    if told is None:
        return []
    decided = told.verdict == "cause-found"
    found = []
    for rank, cause in enumerate(told.causes):
        if cause.cause == "insufficient-info" or not cause.points or cause.role == "noise":
            continue
        points = min(16, LIKELY - 3 + cause.points) if decided and not rank else min(4, cause.points)
        if run.ending.signal in _OUTSIDE:
            points = min(points, LIKELY - 1)
        evidence = tuple(msgspec.structs.replace(e, file="its output") for e in cause.evidence)
        weight = points if cause.cause not in seen else 2  # it only agrees
        found.append(Finding(cause=cause.cause, points=weight, evidence=evidence, role=cause.role))
    return found


def _ranked(found: Sequence[Finding]) -> list[Finding]:
    """One finding a cause, the strongest evidence of each first; most points first."""
    by_cause: dict[str, list[Finding]] = {}
    for finding in found:
        by_cause.setdefault(finding.cause, []).append(finding)
    merged = []
    for same in by_cause.values():
        same.sort(key=lambda f: -f.points)
        evidence = dict.fromkeys(e for f in same for e in f.evidence)
        points = same[0].points + (1 if len(same) > 1 else 0)
        merged.append(msgspec.structs.replace(same[0], points=points, evidence=tuple(evidence)[:_EVIDENCE]))
    return sorted(merged, key=lambda f: -f.points)


def _stated(run: RunRecording, told: Explanation | None) -> dict[str, str]:
    """Facts that choose a fix: what the output states, and the framework that the program had loaded."""
    facts = {k: v for k, v in msgspec.structs.asdict(told.facts).items() if v} if told is not None else {}
    paths = " ".join(path for p in run.processes for path in p.libraries)
    loaded = next((name for word, name in _FRAMEWORKS if word in paths), None)
    return {"framework": loaded, **facts} if loaded else facts


def _fixes(known: KnownCause, facts: dict[str, str]) -> tuple[Fix, ...]:
    """As explain chooses them, those for the framework at hand first; `run` is on Linux."""
    fitting = [f for f in known.fixes if fits(f.condition, facts, {"os:linux": []})]
    fitting.sort(key=lambda f: not f.condition.framework)
    steps = (filled(Fix(text=f.text, command=f.command, verify=f.verify), {}) for f in fitting)
    return tuple(step for step in steps if step is not None)[:3]


def _cause(finding: Finding, known: KnownCause, sure: Confidence, facts: dict[str, str]) -> Cause:
    return Cause(
        cause=finding.cause,
        title=known.title,
        confidence=sure,
        role=finding.role or known.role,
        points=finding.points,
        evidence=finding.evidence,
        fixes=_fixes(known, facts),
        avoid=known.avoid,
    )


def _explanation(
    verdict: Verdict,
    summary: str,
    causes: tuple[Cause, ...],
    told: Explanation | None,
    *,
    notes: tuple[str, ...] = (),
) -> Explanation:
    asked = told.questions if told is not None and verdict == "undetermined" else ()
    return Explanation(
        verdict=verdict,
        summary=summary,
        causes=causes,
        questions=asked,
        facts=told.facts if told is not None else Facts(),
        notes=notes,
        sources=("run",),
    )
