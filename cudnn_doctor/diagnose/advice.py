"""Fixes for the framework and system at hand, the questions that decide most, and doubts about stated facts."""

from __future__ import annotations

from cudnn_doctor.diagnose.conditions import fits
from cudnn_doctor.diagnose.experiments import experiments
from cudnn_doctor.diagnose.rank import Ranking
from cudnn_doctor.diagnose.values import filled
from cudnn_doctor.logs.compare import dotted
from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.stated import Extract
from cudnn_doctor.model.observations import Tokens
from cudnn_doctor.model.versions import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FIXES = 3
MAX_QUESTIONS = 3
MAX_EXPERIMENTS = 3
ASKED = ("framework", "os", "manager", "when", "below", "from")  # conditions that make a fix a special one
# Where no sign points anywhere: what public reports of a bare cuDNN line turned out to be, as far as they were solved.
UNKNOWN: dict[str, float] = {
    "prior-cuda-fault": 3,
    "vram-exhausted": 3,
    "gpu-too-new-for-build": 2,
    "cudnn-shadowed": 2,
}
# Year of the first release of each major version: NVIDIA's archives.
_CUDA_YEAR = {8: 2016, 9: 2017, 10: 2018, 11: 2020, 12: 2022, 13: 2025}
_CUDNN_YEAR = {5: 2016, 6: 2017, 7: 2017, 8: 2020, 9: 2024}


def fixes(
    known: dict[str, Any], facts: dict[str, str], signs: Tokens, found: dict[str, str]
) -> list[dict[str, str]]:  # fmt: skip
    """The fixes that fit the stated framework, version and system, the specific ones first, filled with `found`."""
    fitting = [f for f in known["fixes"] if fits(f.get("for", {}), facts, signs)]
    fitting.sort(key=lambda f: -sum(k in ASKED for k in f.get("for", {})))
    steps = [filled({k: f.get(k, "") for k in ("text", "command", "verify")}, found) for f in fitting]
    return [step for step in steps if step is not None][:MAX_FIXES]


def experiments_for(
    ranking: Ranking, facts: dict[str, str], signs: Tokens, knowledge: dict[str, Any]
) -> list[dict[str, str]]:
    """What decides between the possible causes, or confirms a likely one; none where nothing is wrong or it is sure."""
    found = ranking.verdict == "cause-found"
    if found and ranking.candidates[0].confidence == "confirmed":
        return []
    weights: dict[str, float] = {c.cause: max(1, c.points) for c in ranking.candidates}
    for candidate in ranking.candidates[:2]:
        for cause in knowledge["causes"][candidate.cause]["kin"]:
            weights.setdefault(cause, 1)
    if ranking.verdict == "undetermined":
        weights = weights or UNKNOWN
    return experiments(
        ranking.verdict, weights, facts, signs, knowledge["experiments"], 1 if found else MAX_EXPERIMENTS
    )


def questions(
    ranking: Ranking, signs: Tokens, facts: dict[str, str], knowledge: dict[str, Any]
) -> list[dict[str, Any]]:
    """What to ask, most decisive first: the questions of the possible causes that tell most of them apart."""
    if ranking.verdict in ("no-problem", "not-cudnn"):
        return []
    possible = [c.cause for c in ranking.candidates[:4]] or ["insufficient-info"]
    asked: dict[str, int] = {}
    for cause in possible:
        for position, name in enumerate(knowledge["causes"][cause]["asks"]):
            asked[name] = min(asked.get(name, 99), position)
    known = _answered(signs, facts)
    table = {q["id"]: q for q in knowledge["questions"]}
    names = [name for name in asked if name not in known] or list(asked)
    names.sort(key=lambda n: (-len(set(table[n]["decides"]) & set(possible)), asked[n], table[n]["rank"]))
    if ranking.verdict == "cause-found":
        names = names[:1] if ranking.candidates[0].confidence != "confirmed" else []
    return [
        {"id": n, "text": table[n]["ask"], "decides": [c for c in possible if c in table[n]["decides"]]}
        for n in names[:MAX_QUESTIONS]
    ]


def _answered(signs: Tokens, facts: dict[str, str]) -> set[str]:
    """Questions that the text answers already."""
    done = {
        "gpu-model": "gpu" in facts, "driver": "driver" in facts, "os": "os" in facts,
        "gpu-memory": bool({"memory-is-free", "memory-full", "smi-memory"} & signs.keys()),
        "framework-version": "framework_version" in facts,
        "batch-smaller": "smaller-works" in signs or "smaller-no-help" in signs,
        "allow-growth": "allow-growth-on" in signs or "allow-growth-cures" in signs,
        "when": "after-while" in signs or "at-once" in signs,
    }  # fmt: skip
    return {name for name, answer in done.items() if answer}


def summary(ranking: Ranking, causes: list[dict[str, Any]]) -> str:
    """One or two sentences for a person."""
    if ranking.verdict == "no-problem":
        return "Nothing in this text is a fault of cuDNN or CUDA; such lines are harmless."
    if ranking.verdict == "not-cudnn":
        return "This is not about cuDNN: no error of NVIDIA's cuDNN or CUDA is in the text."
    best = causes[0]
    if ranking.verdict == "cause-found":
        word = "The quoted line proves it." if best["confidence"] == "confirmed" else "This is the likely reading."
        return f"{best['title']}. {word}"
    names = ", ".join(c["cause"] for c in causes[:3] if c["cause"] != "insufficient-info")
    possible = f"Possible, best first: {names}. " if names else ""
    return f"The text does not decide. {possible}What would decide is below."


def doubts(document: Document, extract: Extract, knowledge: dict[str, Any]) -> list[str]:
    """Stated values that cannot be true."""
    newest = knowledge["tables"]["newest"]
    stamps = (rx(r"\W?(20[12]\d)-\d\d-\d\d[ T]").match(line.text) for line in document.lines)
    years = [int(m[1]) for m in stamps if m]
    found: list[str] = []
    for key, name, table in (("cuda", "CUDA", _CUDA_YEAR), ("cudnn_loaded", "cuDNN", _CUDNN_YEAR)):
        stated = extract.facts.get(key)
        if stated is None:
            continue
        major = numbers(dotted(stated.value))[0]
        limit = numbers(newest["cuda" if key == "cuda" else "cudnn"])[0]
        if major > limit:
            found.append(f"{name} {stated.value} is stated, but no {name} {major} is known; which is it really?")
        elif years and major in table and max(years) < table[major]:
            came = table[major]
            found.append(f"{name} {stated.value} is stated in a log of {max(years)}; {name} {major} came in {came}")
    return found
