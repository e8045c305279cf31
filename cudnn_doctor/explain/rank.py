"""Adds up the points of ranking.yaml and decides: a cause, several possible ones, nothing wrong, or not cuDNN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cudnn_doctor.explain.tokenset import Tokens

if TYPE_CHECKING:
    from cudnn_doctor.explain.types import Confidence, Verdict

MAX_CAUSES = 6
OWN_FINDING = 8  # points of a cause that a report of our own names


class Sign(NamedTuple):
    """Why a cause got points: the rule's reason and the lines its tokens rest on."""

    points: int
    because: str
    lines: tuple[int, ...]


class Candidate(NamedTuple):
    cause: str
    points: int
    decisive: bool
    role: str  # of the rule with the most points, where it names one
    signs: tuple[Sign, ...]  # most points first
    confidence: Confidence


class Ranking(NamedTuple):
    verdict: Verdict
    candidates: tuple[Candidate, ...]


def rank(tokens: Tokens, knowledge: dict[str, Any]) -> Ranking:
    """The verdict and the causes in order."""
    candidates = _points(tokens, knowledge["ranking"]["rules"])
    limits = knowledge["ranking"]
    kinds = {sign for sign in tokens if sign.startswith("kind:")}
    if not candidates and not kinds - {"kind:noise"}:
        return _quiet(tokens)
    if _foreign(tokens):
        return Ranking("not-cudnn", ())
    if not candidates:
        return Ranking("undetermined", ())
    best = candidates[0]
    kin = set(knowledge["causes"][best.cause]["kin"])
    rival = next((c.points for c in candidates[1:] if c.cause not in kin), 0)
    found = best.points >= limits["found"] and best.points - rival >= limits["margin"]
    ordered = [
        c._replace(confidence=_confidence(c, found and c.cause == best.cause, limits["confirmed"])) for c in candidates
    ]
    return Ranking("cause-found" if found else "undetermined", tuple(ordered[:MAX_CAUSES]))


def _points(tokens: Tokens, rules: list[dict[str, Any]]) -> list[Candidate]:
    """Candidates with more than zero points, most points first; equal ones in the order of the rules."""
    found: dict[str, list[tuple[int, bool, str, Sign]]] = {}
    for rule in rules:
        when, either = rule.get("when", ()), rule.get("any", ())
        if not all(t in tokens for t in when) or any(t in tokens for t in rule.get("unless", ())):
            continue
        present = [t for t in either if t in tokens]
        if either and not present:
            continue
        lines = tuple(dict.fromkeys(line for t in (*when, *present) for line in tokens[t][:2]))
        sign = Sign(rule["points"], rule["because"], lines)
        hit = (rule["points"], rule.get("decisive", False), rule.get("role", ""), sign)
        found.setdefault(rule["cause"], []).append(hit)
    for name, lines_of in tokens.items():
        if name.startswith("found:"):
            sign = Sign(OWN_FINDING, "a report of cudnn-doctor names it", tuple(lines_of[:2]))
            found.setdefault(name.removeprefix("found:"), []).append((OWN_FINDING, True, "", sign))
    candidates = []
    for cause, hits in found.items():
        hits.sort(key=lambda h: -h[0])
        total = sum(h[0] for h in hits)
        if total > 0:
            signs = tuple(h[3] for h in hits if h[0] > 0)
            role = next((h[2] for h in hits if h[2]), "")
            candidates.append(Candidate(cause, total, any(h[1] for h in hits), role, signs, "possible"))
    candidates.sort(key=lambda c: -c.points)
    return candidates


def _confidence(candidate: Candidate, chosen: bool, confirmed: int) -> Confidence:
    if not chosen:
        return "possible"
    return "confirmed" if candidate.decisive and candidate.points >= confirmed else "likely"


def _quiet(tokens: Tokens) -> Ranking:
    """Nothing failed in the text: noise alone, or a complaint without any sign."""
    complaint = ("fails" in tokens or "traceback" in tokens) and "works-anyway" not in tokens
    if "kind:noise" in tokens:
        sign = Sign(5, "this line has no effect", tuple(tokens["kind:noise"][:3]))
        confidence: Confidence = "possible" if complaint else "confirmed"
        noise = Candidate("harmless-noise", 5, not complaint, "noise", (sign,), confidence)
        return Ranking("undetermined" if complaint else "no-problem", (noise,))
    if {"rocm", "metal", "python-error", "host-memory"} & tokens.keys():
        return Ranking("not-cudnn", ())
    if "cudnn-named" in tokens or "gpu:named" in tokens or "opened-cuda" in tokens:
        good = "loaded-version" in tokens and not complaint
        return Ranking("no-problem" if good else "undetermined", ())
    return Ranking("not-cudnn", ())


def _foreign(tokens: Tokens) -> bool:
    """Another vendor's back end answers, and no NVIDIA GPU is in the text."""
    return ("rocm" in tokens or "metal" in tokens) and "gpu:named" not in tokens
