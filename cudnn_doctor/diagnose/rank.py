"""Adds up the points of ranking.yaml and decides: a cause, several possible ones, nothing wrong, or not cuDNN."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cudnn_doctor.model.observations import Tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cudnn_doctor.model.explanation import Confidence, Verdict

MAX_CAUSES = 6
OWN_FINDING = 8  # points of a cause that a report of our own names


class Sign:
    """A rule that holds: its reason and the lines its tokens rest on."""

    __slots__ = ("because", "decisive", "lines", "points", "role")

    def __init__(
        self, points: int, because: str, lines: Iterable[int], *, decisive: bool = False, role: str = ""
    ) -> None:  # fmt: skip
        self.points = points
        self.because = because
        self.lines = list(lines)
        self.decisive = decisive
        self.role = role


class Candidate:
    """A cause with its points."""

    __slots__ = ("cause", "confidence", "decisive", "points", "possible", "role", "signs")

    def __init__(self, cause: str, signs: list[Sign], confidence: Confidence = "possible") -> None:
        signs.sort(key=lambda s: -s.points)
        self.cause = cause
        self.points = sum(s.points for s in signs)
        self.possible = not any(s.points for s in signs)  # nothing speaks for it or against it
        self.decisive = any(s.decisive for s in signs)
        self.role = next((s.role for s in signs if s.role), "")  # of the rule with the most points that names one
        self.signs = [s for s in signs if s.points >= 0]
        self.confidence = confidence


class Ranking:
    __slots__ = ("candidates", "verdict")

    def __init__(self, verdict: Verdict, candidates: list[Candidate] | None = None) -> None:
        self.verdict = verdict
        self.candidates = candidates or []


def rank(tokens: Tokens, knowledge: dict[str, Any]) -> Ranking:
    """The verdict and the causes in order."""
    candidates = _points(tokens, knowledge["ranking"]["rules"], knowledge["causes"])
    limits = knowledge["ranking"]
    kinds = {sign for sign in tokens if sign.startswith("kind:")}
    if not candidates and not kinds - {"kind:noise", "kind:warning"}:
        return _quiet(tokens)
    if _foreign(tokens):
        return Ranking("not-cudnn")
    if not candidates:
        return Ranking("undetermined")
    best = candidates[0]
    kin = set(knowledge["causes"][best.cause]["kin"])
    rival = next((c.points for c in candidates[1:] if c.cause not in kin), 0)
    found = best.points >= limits["found"] and best.points - rival >= limits["margin"]
    if found:
        best.confidence = "confirmed" if best.decisive and best.points >= limits["confirmed"] else "likely"
    return Ranking("cause-found" if found else "undetermined", candidates[:MAX_CAUSES])


def _points(tokens: Tokens, rules: list[dict[str, Any]], causes: Collection[str]) -> list[Candidate]:
    """Candidates with points, or with none but a rule that calls them possible (points: 0), most points first; equal
    ones in the order of the rules."""
    found: dict[str, list[Sign]] = {}
    for rule in rules:
        when, either = rule.get("when", ()), rule.get("any", ())
        if not all(t in tokens for t in when) or any(t in tokens for t in rule.get("unless", ())):
            continue
        present = [t for t in either if t in tokens]
        if either and not present:
            continue
        lines = dict.fromkeys(line for t in (*when, *present) for line in tokens[t][:2])
        sign = Sign(
            rule["points"], rule["because"], lines, decisive=rule.get("decisive", False), role=rule.get("role", "")
        )
        found.setdefault(rule["cause"], []).append(sign)
    for name, lines_of in tokens.items():
        if name.startswith("found:") and name.removeprefix("found:") in causes:  # else of another release, or damaged
            sign = Sign(OWN_FINDING, "a report of cudnn-doctor names it", lines_of[:2], decisive=True)
            found.setdefault(name.removeprefix("found:"), []).append(sign)
    candidates = [c for cause, signs in found.items() if (c := Candidate(cause, signs)).points > 0 or c.possible]
    candidates.sort(key=lambda c: -c.points)
    return candidates


def _quiet(tokens: Tokens) -> Ranking:
    """Nothing failed in the text: noise alone, or a complaint without any sign."""
    complaint = ("fails" in tokens or "traceback" in tokens) and "works-anyway" not in tokens
    if "host-memory" in tokens:
        return Ranking("not-cudnn")
    if harmless := tokens.get("kind:noise", []) + tokens.get("kind:warning", []):
        sign = Sign(5, "this line has no effect", harmless[:3], decisive=not complaint, role="noise")
        noise = Candidate("harmless-noise", [sign], "possible" if complaint else "confirmed")
        return Ranking("undetermined" if complaint else "no-problem", [noise])
    if {"rocm", "metal", "python-error"} & tokens.keys():
        return Ranking("not-cudnn")
    if "cudnn-named" in tokens or "gpu:named" in tokens or "opened-cuda" in tokens:
        good = {"loaded-version", "works-anyway", "runs-clean"} & tokens.keys() and not complaint
        return Ranking("no-problem" if good else "undetermined")
    return Ranking("not-cudnn")


def _foreign(tokens: Tokens) -> bool:
    """Another vendor's back end answers, and no NVIDIA GPU is in the text."""
    return ("rocm" in tokens or "metal" in tokens) and "gpu:named" not in tokens
