"""One case from its sources to its explanation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from cudnn_doctor.diagnose import advice, circumstances, rank, values
from cudnn_doctor.diagnose.given import Given, add_findings
from cudnn_doctor.diagnose.ledger import Ledger
from cudnn_doctor.logs import document, scan, signatures, sources
from cudnn_doctor.logs.observe import failing, observe
from cudnn_doctor.logs.patterns import Knowledge, load
from cudnn_doctor.logs.stated import Extract, extract
from cudnn_doctor.logs.stated_machine import stated_machine
from cudnn_doctor.logs.values import dotted
from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.errors import InputError
from cudnn_doctor.model.explanation import Cause, Evidence, Experiment, Explanation, Facts, Fix
from cudnn_doctor.model.observations import Tokens, TokenSet
from cudnn_doctor.model.stated import NO_VERSION, NOT_STATED

if TYPE_CHECKING:
    from cudnn_doctor.diagnose import Source
    from cudnn_doctor.model.facts import Snapshot

Step = TypeVar("Step", Fix, Experiment)
Again = Callable[[], Iterator[bytes]]  # reads a source once more

MAX_EVIDENCE = 4
OURS = 200  # bytes within which a document of cudnn-doctor names its schema
BLANK = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and white space
QUOTE = 300  # characters of a line that are quoted


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of a case: a text, what was given beside it, remarks, and how to read a source again."""

    text: document.Document
    beside: Given
    notes: list[str]
    again: dict[int, Again]


def explain_case(sources_: Sequence[Source], *, beside: Given, timeout: float) -> Explanation:
    """See `diagnose.explain`."""
    return _explain(_read(sources_, beside, timeout))


def _read(sources_: Sequence[Source], beside: Given, timeout: float) -> Read:
    notes: list[str] = []
    deadline = time.monotonic() + timeout
    texts: list[tuple[str, list[scan.Raw]]] = []
    total = 0
    again: dict[int, Again] = {}
    for stream in sources.open_sources([os.fspath(s) for s in sources_], deadline, notes):
        kept = scan.keep(stream.pieces, count=stream.again is None)
        total += kept.total_bytes
        if _is_ours(kept.data):
            from cudnn_doctor.diagnose import documents

            beside |= documents.read(stream.name, kept.data.lstrip(BLANK))
            notes.append(f"{stream.name}: a cudnn-doctor document; its facts and problems join the text's")
            continue
        if stream.again is not None:
            again[len(texts)] = stream.again
        texts.append((stream.name, kept.lines))
        if not kept.whole:
            notes.append(
                f"{stream.name}: {kept.total_bytes >> 20} MiB; its head, its tail and the lines around errors were "
                "read closely"
            )
    if not total:
        nothing = f"nothing to explain: {', '.join(map(str, sources_)) or 'no input'} is empty"
        raise InputError("; ".join(notes) or nothing)
    return Read(text=document.build(texts), beside=beside, notes=notes, again=again)


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What a text and a machine show together, before it is weighed."""

    text: document.Document  # with the machine's facts behind it
    signs: Tokens
    stated: Extract
    view: Snapshot | None  # the stated facts over those of the machine; None where neither says enough
    differences: tuple[str, ...]  # where the two contradict each other


def observed(text: document.Document, beside: Given, knowledge: Knowledge) -> Observed:
    """The observations of a text and of what was given beside it."""
    events = signatures.find(text, knowledge.signatures) + signatures.find(text.prose(), knowledge.statements)
    chosen = _one_speaker(text, events)
    events = [e for e in events if e.line in chosen]
    extracted = extract(text, events, sorted(chosen), knowledge.names)
    ledger = Ledger(text, chosen)
    found = observe(text, events, extracted, knowledge.statuses)
    stated = stated_machine(text, extracted, events)
    view: Snapshot | None = None
    doubts: tuple[str, ...] = ()
    if stated.comparable or stated.names_gpu or beside.snapshot is not None:
        from cudnn_doctor.diagnose.together import differences, together  # loads the rules

        view = together(stated, None if _is_quiet(text, found) else beside.snapshot, knowledge, ledger, found)
        doubts = tuple(differences(beside.snapshot, stated)) if beside.snapshot is not None else ()
    add_findings(beside.findings, ledger, found)
    for token, lines in circumstances.circumstances(text.lowered, knowledge.circumstances).items():
        if token not in found.found:
            found.add(token, *lines)
    return Observed(text=ledger.document(), signs=found.found, stated=extracted, view=view, differences=doubts)


def _is_quiet(text: document.Document, found: TokenSet) -> bool:
    """Whether there is a text and nothing fails in it: then no fault of the machine explains it."""
    failures = {sign for sign in found.found if sign.startswith("kind:")} - {"kind:noise", "kind:warning"}
    complaints = {"fails", "traceback"} & found.found.keys()
    return bool(text.lines) and not failures and (not complaints or "python-error" in found.found)


def _is_ours(data: bytes) -> bool:
    """Whether a source claims to be a document of cudnn-doctor."""
    return data.lstrip(BLANK)[:1] == b"{" and b'"cudnn-doctor/' in data[:OURS]


def _explain(read: Read) -> Explanation:
    knowledge = load()
    seen = observed(read.text, read.beside, knowledge)
    facts = _facts(seen.text, seen.stated)
    known = _of_machine(seen.view) | facts
    filling = values.values(known, circumstances.wanted_major(seen.text.lowered), knowledge)
    signs = seen.signs | values.tokens(filling)
    ranking = rank.rank(signs, knowledge)
    quoted = [_quoted(seen.text, c) for c in ranking.candidates]
    numbers = _numbers(seen.text, {index for evidence in quoted for index in evidence}, read.again)
    case = advice.Weighed(
        ranking=ranking,
        signs=signs,
        facts=known,
        values=filling,
        knowledge=knowledge,
    )
    causes = tuple(
        _shown(c, case, _evidence(seen.text, e, numbers)) for c, e in zip(ranking.candidates, quoted, strict=True)
    )
    if ranking.verdict == "undetermined" and not causes:
        causes = (_shown(rank.Candidate(cause="insufficient-info"), case, ()),)
    script = circumstances.script([line.text for line in seen.text.lines])
    return Explanation(
        verdict=ranking.verdict,
        summary=advice.summary(ranking, causes),
        causes=tuple(replace(c, fixes=tuple(_runnable(fix, script) for fix in c.fixes)) for c in causes),
        questions=advice.questions(case, machine=read.beside.snapshot),
        facts=Facts(**facts),
        experiments=tuple(_runnable(experiment, script) for experiment in advice.experiments_for(case)),
        doubts=(*advice.doubts(seen.text, seen.stated, knowledge), *seen.differences),
        notes=tuple(read.notes),
        sources=seen.text.sources,
    )


def _runnable(step: Step, script: str) -> Step:
    """The step with the program's own file in its command, where the text names it."""
    return replace(step, command=step.command.replace("YOUR_SCRIPT.py", script)) if script else step


def _of_machine(view: Snapshot | None) -> dict[str, str]:
    """What the machine is, as a text would have stated it."""
    found: dict[str, str] = {}
    if view is None:
        return found
    for framework in view.frameworks[:1]:
        if framework.name != "other" and framework.version != NO_VERSION:
            found["framework"] = "pytorch" if framework.name == "torch" else framework.name
            found["framework_version"] = framework.version
    gpus = value_or(view.gpus, ())
    facts = {"gpu": gpus[0].name if gpus else NOT_STATED, "driver": view.driver.version, "os": view.host.os}
    return found | {key: fact.value for key, fact in facts.items() if isinstance(fact, Known)}


def _one_speaker(text: document.Document, events: list[signatures.Event]) -> set[int]:
    """Indices of the lines of the person whose error it is, and of nobody in particular.

    That person is the one with the most failing lines, the first of equals. Another person's error or versions are
    another case.
    """
    weight: dict[int, int] = {}
    for event in events:
        if failing(event):
            line = text.lines[event.line]
            weight[line.speaker] = weight.get(line.speaker, 0) + (2 if line.log else 1)
    speakers = list(dict.fromkeys(line.speaker for line in text.lines))
    main = max(sorted(weight), key=lambda s: weight[s]) if weight else next(iter(speakers), 0)
    if main == 0 and 0 in weight and sum(s != 0 for s in speakers) == 1:
        return set(range(len(text.lines)))  # a title and one writer
    return {i for i, line in enumerate(text.lines) if line.speaker in (0, main)}


def _facts(text: document.Document, extracted: Extract) -> dict[str, str]:
    """The stated values in the spelling of the text."""
    said: dict[str, str] = {}
    for key, stated in extracted.facts.items():
        value = stated.value
        if key != "framework":
            line = text.lines[stated.line].text
            at = line.lower().find(value)
            value = line[at : at + len(value)] if at >= 0 and len(line.lower()) == len(line) else value
        if key.startswith("cudnn"):
            value = dotted(value)
        said[key] = value.strip()
    return said


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


def _evidence(text: document.Document, quoted: dict[int, str], numbers: dict[int, int]) -> tuple[Evidence, ...]:
    several = len(text.sources) > 1
    return tuple(
        Evidence(
            line=numbers[index],
            text=text.lines[index].text[:QUOTE],
            because=because,
            file=text.sources[text.lines[index].source] if several else "",
        )
        for index, because in quoted.items()
    )


def _shown(candidate: rank.Candidate, case: advice.Weighed, evidence: tuple[Evidence, ...]) -> Cause:
    known = case.knowledge.causes[candidate.cause]
    return Cause(
        cause=candidate.cause,
        title=known.title,
        confidence=candidate.confidence,
        role=candidate.role or known.role,
        points=candidate.points,
        evidence=evidence,
        fixes=advice.fixes(known, case),
        avoid=known.avoid,
    )
