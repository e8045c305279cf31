"""Adds up the points of ranking.yaml and decides: a cause, several possible ones, nothing wrong, or not cuDNN."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from cudnn_doctor.diagnose.given import FOUND, HINTED, PROVED
from cudnn_doctor.logs.patterns import Knowledge, PointRule
from cudnn_doctor.model.observations import Tokens

if TYPE_CHECKING:
    from cudnn_doctor.model.explanation import Confidence, Role, Verdict

MAX_CAUSES = 6
# Points of a cause that a finding of our own rules names: (the text speaks for it as well, it does not).
_OWN_FINDING = {PROVED: (12, 12), FOUND: (8, 4), HINTED: (3, 1)}


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that holds: its reason and the lines its tokens rest on."""

    points: int
    because: str
    lines: list[int]
    decisive: bool = False
    role: Role | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A cause with its points. `signs`: those that speak for it, the strongest first."""

    cause: str
    points: int = 0
    possible: bool = False  # nothing speaks for it or against it but a rule that calls it possible (points: 0)
    decisive: bool = False
    role: Role | None = None  # of the rule with the most points that names one
    signs: list[Sign] = []
    confidence: Confidence = "possible"


# What ends a program without cuDNN or CUDA: token -> (cause, why).
ELSEWHERE = {
    "host-memory": ("host-out-of-memory", "the main memory ran out, not the GPU's"),
    "python-error": ("python-error", "the program stops with an error of its own"),
}


class Ranking(msgspec.Struct, frozen=True):
    verdict: Verdict
    candidates: list[Candidate] = []


def _candidate(cause: str, signs: Iterable[Sign], confidence: Confidence = "possible") -> Candidate:
    ordered = sorted(signs, key=lambda s: -s.points)
    return Candidate(
        cause=cause,
        points=sum(s.points for s in ordered),
        possible=not any(s.points for s in ordered),
        decisive=any(s.decisive for s in ordered),
        role=next((s.role for s in ordered if s.role), None),
        signs=[s for s in ordered if s.points >= 0],
        confidence=confidence,
    )


def rank(tokens: Tokens, knowledge: Knowledge) -> Ranking:
    """The verdict and the causes in order."""
    limits = knowledge.ranking
    candidates = _points(tokens, limits.rules, knowledge.causes)
    kinds = {sign for sign in tokens if sign.startswith("kind:")}
    if not candidates and not kinds - {"kind:noise", "kind:warning"}:
        return _quiet(tokens)
    if _foreign(tokens):
        return Ranking("not-cudnn")
    if not candidates:
        return Ranking("undetermined")
    best = candidates[0]
    kin = set(knowledge.causes[best.cause].kin)
    rival = next((c.points for c in candidates[1:] if c.cause not in kin), 0)
    found = best.points >= limits.found and best.points - rival >= limits.margin
    if found:
        sure: Confidence = "confirmed" if best.decisive and best.points >= limits.confirmed else "likely"
        candidates[0] = msgspec.structs.replace(best, confidence=sure)
    return Ranking("cause-found" if found else "undetermined", candidates[:MAX_CAUSES])


def _points(tokens: Tokens, rules: list[PointRule], causes: Collection[str]) -> list[Candidate]:
    """Candidates with points, or with none but a rule that calls them possible (points: 0), most points first; equal
    ones in the order of the rules."""
    found: dict[str, list[Sign]] = {}
    for rule in rules:
        if not all(t in tokens for t in rule.when) or any(t in tokens for t in rule.unless):
            continue
        present = [t for t in rule.either if t in tokens]
        if rule.either and not present:
            continue
        lines = dict.fromkeys(line for t in (*rule.when, *present) for line in tokens[t][:2])
        sign = Sign(points=rule.points, because=rule.because, lines=list(lines), decisive=rule.decisive, role=rule.role)
        found.setdefault(rule.cause, []).append(sign)
    for cause, sign in list(_own_findings(tokens, found)):
        if cause in causes:  # else of another release, or damaged
            found.setdefault(cause, []).append(sign)
    candidates = [c for cause, signs in found.items() if (c := _candidate(cause, signs)).points > 0 or c.possible]
    candidates.sort(key=lambda c: -c.points)
    return candidates


def _own_findings(tokens: Tokens, found: dict[str, list[Sign]]) -> Iterator[tuple[str, Sign]]:
    """(cause, sign) of what our own rules found on the machine. It decides where the text speaks for the same cause."""
    for name, lines in tokens.items():
        for kind, (both, alone) in _OWN_FINDING.items():
            if name.startswith(kind):
                cause = name.removeprefix(kind)
                supported = sum(s.points for s in found.get(cause, ())) > 0
                because = "the run's events prove it" if kind == PROVED else "cudnn-doctor found it on the machine"
                points = both if supported else alone
                decisive = kind == PROVED or (supported and kind == FOUND)
                yield cause, Sign(points=points, because=because, lines=lines[:2], decisive=decisive)


def _quiet(tokens: Tokens) -> Ranking:
    """Nothing failed in the text: noise alone, or a complaint without any sign."""
    complaint = ("fails" in tokens or "traceback" in tokens) and "works-anyway" not in tokens
    noisy = "kind:noise" in tokens or "kind:warning" in tokens
    for sign_of_it, (cause, because) in ELSEWHERE.items():
        if sign_of_it in tokens and (cause == "host-out-of-memory" or not noisy):
            last = tokens[sign_of_it][-1:]
            sign = Sign(points=5, because=because, lines=last, decisive=True, role="noise")
            return Ranking("not-cudnn", [_candidate(cause, [sign], "confirmed")])
    if harmless := tokens.get("kind:noise", []) + tokens.get("kind:warning", []):
        because = "this line has no effect"
        sign = Sign(points=5, because=because, lines=harmless[:3], decisive=not complaint, role="noise")
        noise = _candidate("harmless-noise", [sign], "possible" if complaint else "confirmed")
        return Ranking("undetermined" if complaint else "no-problem", [noise])
    if {"rocm", "metal"} & tokens.keys():
        return Ranking("not-cudnn")
    if "cudnn-named" in tokens or "gpu:named" in tokens or "opened-cuda" in tokens:
        good = {"loaded-version", "works-anyway", "runs-clean"} & tokens.keys() and not complaint
        return Ranking("no-problem" if good else "undetermined")
    return Ranking("not-cudnn")


def _foreign(tokens: Tokens) -> bool:
    """Another vendor's back end answers, and no NVIDIA GPU is in the text."""
    return ("rocm" in tokens or "metal" in tokens) and "gpu:named" not in tokens
