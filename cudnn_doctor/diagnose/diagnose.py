"""One case from its sources to its explanation, as plain data of the form of `types.Explanation`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from cudnn_doctor.diagnose import advice, circumstances, rank, values
from cudnn_doctor.logs import compare, document, scan, signatures, sources
from cudnn_doctor.logs import observe as tokens
from cudnn_doctor.logs import stated as facts
from cudnn_doctor.logs.patterns import load
from cudnn_doctor.model.errors import InputError
from cudnn_doctor.model.observations import Tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cudnn_doctor.diagnose import Source
    from cudnn_doctor.model.facts import Snapshot

Again = Callable[[], Iterator[bytes]]  # reads a source once more

MAX_EVIDENCE = 4
QUOTE = 300  # characters of a line that are quoted
OURS = 200  # bytes within which a document of cudnn-doctor names its schema
BLANK = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and white space


def explain_case(given: Sequence[Source], *, snapshot: Snapshot | None, timeout: float) -> dict[str, Any]:
    """See `explain.answer`."""
    notes: list[str] = []
    deadline = time.monotonic() + timeout
    read: list[tuple[str, list[scan.Raw]]] = []
    total = 0
    machine: list[str] = []
    again: dict[int, Again] = {}
    for stream in sources.open_sources([os.fspath(s) for s in given], deadline, notes):
        kept = scan.keep(stream.pieces, count=stream.again is None)
        total += kept.total_bytes
        if kept.data.lstrip(BLANK)[:1] == b"{" and b'"cudnn-doctor/' in kept.data[:OURS]:
            from cudnn_doctor.logs.machine import from_document

            machine += from_document(stream.name, kept.data, notes)
            continue
        if stream.again is not None:
            again[len(read)] = stream.again
        read.append((stream.name, kept.lines))
        if not kept.whole:
            notes.append(
                f"{stream.name}: {kept.total_bytes >> 20} MiB; its head, its tail and the lines around errors were "
                "read closely"
            )
    if not total:
        raise InputError("; ".join(notes) or f"nothing to explain: {', '.join(map(str, given)) or 'no input'} is empty")
    if snapshot is not None:
        from cudnn_doctor.logs.machine import from_snapshot

        machine += from_snapshot(snapshot)
    return _explain(document.build(read), machine, notes, again)


def _explain(
    text: document.Document, machine: list[str], notes: list[str], again: dict[int, Again]
) -> dict[str, Any]:  # fmt: skip
    knowledge = load()
    patterns = [signatures.Signature(*s) for s in knowledge["signatures"]]
    events = signatures.find(text, patterns)
    events += signatures.find(text.prose(), [signatures.Signature(*s) for s in knowledge["statements"]])
    chosen = _one_speaker(text, events)
    events = [e for e in events if e.line in chosen]
    extract = facts.extract(text, events, sorted(chosen), knowledge["facts"])
    stated = _facts(text, extract)
    if machine:
        text, events, extract = _with_machine(text, machine, events, extract, patterns, knowledge)
    signs = tokens.derive(text, events, extract, knowledge["tables"])
    for token, at in circumstances.circumstances(text.lowered, knowledge["circumstances"]).items():
        signs.setdefault(token, at)
    found = values.values(stated, circumstances.wanted_major(text.lowered), knowledge["tables"])
    signs |= values.tokens(found)
    ranking = rank.rank(signs, knowledge)
    quoted = [_quoted(text, c) for c in ranking.candidates]
    numbers = _numbers(text, {index for evidence in quoted for index in evidence}, again)
    causes = [
        _shown(c.cause, c, _evidence(text, e, numbers), stated, signs, knowledge, found)
        for c, e in zip(ranking.candidates, quoted, strict=True)
    ]
    if ranking.verdict == "undetermined" and not causes:
        causes = [_unknown(knowledge)]
    return _runnable({
        "schema": "cudnn-doctor/explanation/1",
        "verdict": ranking.verdict,
        "summary": advice.summary(ranking, causes),
        "causes": causes,
        "questions": advice.questions(ranking, signs, stated, knowledge),
        "facts": stated,
        "experiments": advice.experiments_for(ranking, stated, signs, knowledge),
        "doubts": advice.doubts(text, extract, knowledge),
        "notes": notes,
        "sources": list(text.sources),
    }, circumstances.script([line.text for line in text.lines]))  # fmt: skip


def _runnable(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """Commands with the program's own file, where the text names it."""
    if name:
        steps = [*(fix for cause in answer["causes"] for fix in cause["fixes"]), *answer["experiments"]]
        for step in steps:
            if "command" in step:
                step["command"] = step["command"].replace("YOUR_SCRIPT.py", name)
    return answer


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
    main = max(sorted(weight), key=lambda s: weight[s]) if weight else next(iter(speakers), 0)
    if main == 0 and 0 in weight and sum(s != 0 for s in speakers) == 1:
        return set(range(len(text.lines)))  # a title and one writer
    return {i for i, line in enumerate(text.lines) if line.speaker in (0, main)}


def _with_machine(
    text: document.Document, machine: list[str], events: list[signatures.Event], extract: facts.Extract,
    patterns: list[signatures.Signature], knowledge: dict[str, Any],
) -> tuple[document.Document, list[signatures.Event], facts.Extract]:  # fmt: skip
    """The case with the machine's facts as further lines (number 0) for what the text does not state."""
    own = document.build([("this machine", [scan.Raw(0, line.encode(), -1) for line in machine])])
    first, source = len(text.lines), len(text.sources)
    seen = signatures.find(own, patterns)
    read = facts.extract(own, seen, list(range(len(own.lines))), knowledge["facts"])
    for line in own.lines:
        line.source = source
    for event in seen:
        event.line += first
    for stated in read.facts.values():
        stated.line += first
    extract.facts = read.facts | extract.facts
    extract.mentioned = extract.mentioned or read.mentioned
    return document.Document([*text.lines, *own.lines], (*text.sources, "this machine")), [*events, *seen], extract


def _facts(text: document.Document, extract: facts.Extract) -> dict[str, str]:
    """The stated values in the spelling of the text."""
    values: dict[str, str] = {}
    for key, stated in extract.facts.items():
        value = stated.value
        if key != "framework":
            line = text.lines[stated.line].text
            at = line.lower().find(value)
            value = line[at : at + len(value)] if at >= 0 and len(line.lower()) == len(line) else value
        if key.startswith("cudnn"):
            value = compare.dotted(value)
        values[key] = value.strip()
    return values


def _quoted(text: document.Document, candidate: rank.Candidate) -> dict[int, str]:
    """Indices of the lines that speak for a cause, the strongest first, and why. Lines whose numbers are known are
    preferred: counting those of a large file takes time."""
    reasons: dict[int, str] = {}
    for sign in candidate.signs:
        for index in [i for i in sign.lines if text.lines[i].number or text.lines[i].at < 0] or sign.lines[:1]:
            if len(reasons) < MAX_EVIDENCE:
                reasons.setdefault(index, sign.because)
    return reasons


def _numbers(text: document.Document, indices: set[int], again: dict[int, Again]) -> dict[int, int]:
    """The numbers of these lines; those of a large file's middle and tail are counted now."""
    found = {index: text.lines[index].number for index in indices}
    for source, pieces in again.items():
        places = {i: text.lines[i].at for i in indices if not found[i] and text.lines[i].source == source}
        if places:
            counted = scan.numbers(pieces(), places.values())
            found |= {i: counted[at] for i, at in places.items()}
    return found


def _evidence(text: document.Document, quoted: dict[int, str], numbers: dict[int, int]) -> list[dict[str, Any]]:
    evidence: list[dict[str, Any]] = []
    for index, because in quoted.items():
        line = text.lines[index]
        evidence.append({"line": numbers[index], "text": line.text[:QUOTE], "because": because})
        if len(text.sources) > 1:
            evidence[-1]["file"] = text.sources[line.source]
    return evidence


def _unknown(knowledge: dict[str, Any]) -> dict[str, Any]:
    nothing = rank.Candidate("insufficient-info", [])
    return _shown("insufficient-info", nothing, [], {}, {}, knowledge, {})


def _shown(
    cause: str, candidate: rank.Candidate, evidence: list[dict[str, Any]], stated: dict[str, str],
    signs: Tokens, knowledge: dict[str, Any], found: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    known = knowledge["causes"][cause]
    return {
        "cause": cause,
        "title": known["title"],
        "confidence": candidate.confidence,
        "role": candidate.role or known["role"],
        "points": candidate.points,
        "evidence": evidence,
        "fixes": advice.fixes(known, stated, signs, found),
        "avoid": known["avoid"],
    }
