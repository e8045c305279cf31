"""One case from its sources to its explanation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudnn_doctor.explain import advice, document, facts, rank, scan, signatures, sources, tokens
from cudnn_doctor.explain.knowledge import load
from cudnn_doctor.explain.types import Cause, Evidence, Explanation, Facts, InputError

if TYPE_CHECKING:
    from cudnn_doctor.model import Snapshot

MAX_EVIDENCE = 4
QUOTE = 300  # characters of a line that are quoted


def explain_case(given: Sequence[Path | str], *, snapshot: Snapshot | None, timeout: float) -> Explanation:
    """See `explain.explain`."""
    notes: list[str] = []
    deadline = time.monotonic() + timeout
    read: list[tuple[str, list[scan.Raw]]] = []
    total = 0
    for stream in sources.open_sources(list(given), deadline, notes):
        kept = scan.keep(stream.pieces)
        total += kept.total_bytes
        read.append((stream.name, kept.lines))
        if not kept.whole:
            notes.append(
                f"{stream.name}: {kept.total_bytes >> 20} MiB, {kept.total_lines} lines; head, tail and the lines "
                "around errors were read closely"
            )
    if not total:
        raise InputError("; ".join(notes) or f"nothing to explain: {', '.join(map(str, given)) or 'no input'} is empty")
    return _explain(document.build(read), notes)


def _explain(text: document.Document, notes: list[str]) -> Explanation:
    knowledge = load()
    events = signatures.find(text, [_signature(s) for s in knowledge["signatures"]])
    said = signatures.find(_prose(text), [_signature(s) for s in knowledge["statements"]])
    chosen = _one_speaker(text, events)
    events = [e for e in (*events, *said) if e.line in chosen]
    extract = facts.extract(text, events, sorted(chosen), knowledge["facts"])
    signs = tokens.derive(text, events, extract, knowledge["tables"])
    ranking = rank.rank(signs, knowledge)
    stated = _facts(text, extract)
    causes = tuple(_cause(text, c, stated, extract, signs, knowledge) for c in ranking.candidates)
    if ranking.verdict == "undetermined" and not causes:
        causes = (_unknown(knowledge),)
    questions = advice.questions(ranking, signs, stated, knowledge)
    return Explanation(
        verdict=ranking.verdict,
        summary=advice.summary(ranking, causes),
        causes=causes,
        questions=questions,
        facts=stated,
        doubts=advice.doubts(text, extract, knowledge),
        notes=tuple(notes),
        sources=text.sources,
    )


def _signature(entry: list[Any]) -> signatures.Signature:
    name, kind, anchors, pattern, framework, call, suspected = entry
    return signatures.Signature(name, kind, tuple(anchors), pattern, framework, call, kind in _NEGATABLE, suspected)


_NEGATABLE = frozenset({"cudnn", "fault", "cuda", "memory", "loader", "arch", "driver", "process", "says"})


def _prose(text: document.Document) -> document.Document:
    """The same lines with a program's own output blanked: what is left was written by people."""
    lines = [line._replace(text="") if line.log or line.code else line for line in text.lines]
    return document.Document(lines, text.sources)


def _one_speaker(text: document.Document, events: list[signatures.Event]) -> set[int]:
    """Indices of the lines of the person whose error it is, and of nobody in particular.

    That person is the one with the most failing lines, the first of equals. Another person's error or versions are
    another case.
    """
    weight: dict[int, int] = {}
    for event in events:
        if tokens.failing(event):
            line = text.lines[event.line]
            weight[line.speaker] = weight.get(line.speaker, 0) + (2 if line.log else 1)
    speakers = list(dict.fromkeys(line.speaker for line in text.lines))
    if not any(weight.values()):
        main = speakers[0] if speakers else 0
    else:
        main = max(sorted(weight), key=lambda s: weight[s])
    if main == 0 and len(speakers) > 1 and 0 in weight and len([s for s in speakers if s]) == 1:
        return set(range(len(text.lines)))  # a title and one writer
    return {i for i, line in enumerate(text.lines) if line.speaker in (0, main)}


def _facts(text: document.Document, extract: facts.Extract) -> Facts:
    """The stated values in the spelling of the text."""
    values: dict[str, str] = {}
    for key, stated in extract.facts.items():
        value = stated.value
        if key not in ("framework",):
            line = text.lines[stated.line].text
            at = line.lower().find(value)
            value = line[at : at + len(value)] if at >= 0 and len(line.lower()) == len(line) else value
        if key.startswith("cudnn"):
            value = tokens.dotted(value)
        values[key] = value.strip()
    return Facts(**values)


def _cause(
    text: document.Document, candidate: rank.Candidate, stated: Facts, extract: facts.Extract, signs: tokens.Tokens,
    knowledge: dict[str, Any],
) -> Cause:  # fmt: skip
    known = knowledge["causes"][candidate.cause]
    evidence: dict[int, Evidence] = {}
    for sign in candidate.signs:
        for index in sign.lines:
            if index not in evidence and len(evidence) < MAX_EVIDENCE:
                line = text.lines[index]
                evidence[index] = Evidence(
                    line=line.number, text=line.text[:QUOTE], because=sign.because,
                    file=text.sources[line.source] if len(text.sources) > 1 else "",
                )  # fmt: skip
    return Cause(
        cause=candidate.cause,
        title=known["title"],
        confidence=candidate.confidence,
        role=candidate.role or known["role"],
        points=candidate.points,
        evidence=tuple(evidence.values()),
        fixes=advice.fixes(known, stated, signs),
        avoid=known["avoid"],
    )


def _unknown(knowledge: dict[str, Any]) -> Cause:
    known = knowledge["causes"]["insufficient-info"]
    return Cause(
        cause="insufficient-info", title=known["title"], confidence="possible", role="primary", points=0, evidence=(),
        fixes=advice.fixes(known, Facts(), {}), avoid=known["avoid"],
    )  # fmt: skip
