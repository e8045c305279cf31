"""Fixes for the framework and system at hand, the questions that decide most, and doubts about stated facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cudnn_doctor.diagnose.conditions import fits
from cudnn_doctor.diagnose.experiments import experiments
from cudnn_doctor.diagnose.rank import Ranking
from cudnn_doctor.diagnose.values import filled
from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.patterns import Condition, Knowledge, KnownCause
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.stated import Extract
from cudnn_doctor.logs.values import dotted
from cudnn_doctor.model.explanation import Cause, Experiment, Fix, Question
from cudnn_doctor.model.observations import Tokens
from cudnn_doctor.model.versions import numbers

if TYPE_CHECKING:
    from cudnn_doctor.model.facts import Snapshot

MAX_FIXES = 3
MAX_QUESTIONS = 3
MAX_EXPERIMENTS = 3
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


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a case once its causes are ranked."""

    ranking: Ranking
    signs: Tokens
    facts: dict[str, str]  # as `Facts` names them: what the text states, else the machine
    values: dict[str, str]  # see `values.values`
    knowledge: Knowledge


def fixes(known: KnownCause, case: Weighed) -> tuple[Fix, ...]:
    """The fixes that fit the stated framework, version and system, the specific ones first, filled with `values`."""
    fitting = [f for f in known.fixes if fits(f.condition, case.facts, case.signs)]
    fitting.sort(key=lambda f: -_special(f.condition))
    steps = (filled(Fix(text=f.text, command=f.command, verify=f.verify), case.values) for f in fitting)
    return tuple(step for step in steps if step is not None)[:MAX_FIXES]


def _special(wanted: Condition) -> int:
    """How many conditions make a fix a special one; what it must not be is none."""
    asked = (wanted.framework, wanted.os, wanted.manager, wanted.when, wanted.below, wanted.since)
    return sum(map(bool, asked))


def experiments_for(case: Weighed) -> tuple[Experiment, ...]:
    """What decides between the possible causes, or confirms a likely one; none where nothing is wrong or it is sure."""
    ranking = case.ranking
    found = ranking.verdict == "cause-found"
    if found and ranking.candidates[0].confidence == "confirmed":
        return ()
    weights: dict[str, float] = {c.cause: max(1, c.points) for c in ranking.candidates}
    for candidate in ranking.candidates[:2]:
        for cause in case.knowledge.causes[candidate.cause].kin:
            weights.setdefault(cause, 1)
    if ranking.verdict == "undetermined":
        weights = weights or UNKNOWN
    limit = 1 if found else MAX_EXPERIMENTS
    return experiments(ranking.verdict, weights, case.facts, case.signs, case.knowledge.experiments, limit)


def questions(case: Weighed, *, machine: Snapshot | None = None) -> tuple[Question, ...]:
    """What to ask, most decisive first: the questions of the possible causes that tell most of them apart. What the
    text or the machine answers is not asked."""
    ranking, knowledge = case.ranking, case.knowledge
    if ranking.verdict in ("no-problem", "not-cudnn"):
        return ()
    possible = [c.cause for c in ranking.candidates[:4]] or ["insufficient-info"]
    table = {q.id: q for q in knowledge.questions}
    known = _answered(case)
    if machine is not None:
        from cudnn_doctor.diagnose.answered import answered_by_machine

        known |= answered_by_machine(machine)
    asked = _asks(possible, knowledge)
    names = [name for name in asked if name not in known]
    if not names:
        general = _asks(["insufficient-info"], knowledge)
        asked |= {name: place + len(asked) for name, place in general.items() if name not in asked}
        names = [name for name in general if name not in known]
    names.sort(key=lambda n: (-len(set(table[n].decides) & set(possible)), asked[n], table[n].rank))
    if ranking.verdict == "cause-found":
        names = names[:1] if ranking.candidates[0].confidence != "confirmed" else []
    return tuple(
        Question(id=n, text=table[n].ask, decides=tuple(c for c in possible if c in table[n].decides))
        for n in names[:MAX_QUESTIONS]
    )


def _asks(causes: list[str], knowledge: Knowledge) -> dict[str, int]:
    """Question -> its place, the foremost among these causes."""
    asked: dict[str, int] = {}
    for cause in causes:
        for place, name in enumerate(knowledge.causes[cause].asks):
            asked[name] = min(asked.get(name, 99), place)
    return asked


def _answered(case: Weighed) -> set[str]:
    """Questions that the text answers already."""
    facts, signs = case.facts, case.signs
    done = {
        "gpu-model": "gpu" in facts, "driver": "driver" in facts, "os": "os" in facts,
        "gpu-memory": bool({"memory-is-free", "memory-full", "smi-memory"} & signs.keys()),
        "framework-version": "framework_version" in facts,
        "batch-smaller": "smaller-works" in signs or "smaller-no-help" in signs,
        "allow-growth": "allow-growth-on" in signs or "allow-growth-cures" in signs,
        "when": "after-while" in signs or "at-once" in signs,
    }  # fmt: skip
    return {name for name, answer in done.items() if answer}


def summary(ranking: Ranking, causes: tuple[Cause, ...]) -> str:
    """One or two sentences for a person."""
    if ranking.verdict == "no-problem":
        return "Nothing in this text is a fault of cuDNN or CUDA; such lines are harmless."
    if ranking.verdict == "not-cudnn" and causes:
        return f"This is not about cuDNN. {causes[0].title}."
    if ranking.verdict == "not-cudnn":
        return "This is not about cuDNN: no error of NVIDIA's cuDNN or CUDA is in the text."
    best = causes[0]
    if ranking.verdict == "cause-found":
        return f"{best.title}." + (" The quoted line proves it." if best.confidence == "confirmed" else "")
    names = ", ".join(c.cause for c in causes[:3] if c.cause != "insufficient-info")
    possible = f"Possible, best first: {names}. " if names else ""
    return f"The text does not decide. {possible}What would decide is below."


def doubts(document: Document, extracted: Extract, knowledge: Knowledge) -> list[str]:
    """Stated values that cannot be true."""
    stamps = (rx(r"\W?(20[12]\d)-\d\d-\d\d[ T]").match(line.text) for line in document.lines)
    years = [int(m[1]) for m in stamps if m]
    found: list[str] = []
    for key, name, table in (("cuda", "CUDA", _CUDA_YEAR), ("cudnn_loaded", "cuDNN", _CUDNN_YEAR)):
        stated = extracted.facts.get(key)
        if stated is None:
            continue
        major = numbers(dotted(stated.value))[0]
        matrix = knowledge.matrix
        if major > numbers(matrix.cuda[-1].cuda if key == "cuda" else matrix.newest_cudnn())[0]:
            found.append(f"{name} {stated.value} is stated, but no {name} {major} is known; which is it really?")
        elif years and major in table and max(years) < table[major]:
            came = table[major]
            found.append(f"{name} {stated.value} is stated in a log of {max(years)}; {name} {major} came in {came}")
    return found
