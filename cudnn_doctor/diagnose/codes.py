"""`explain 7`, `explain cudaErrorIllegalAddress`, `explain Xid 31`, `explain exit code 137`, `explain CD612`: what one
code means.

All of it is data: numbers and names in knowledge/status.yaml and in the tables of knowledge/code_tables.py, causes in
causes.yaml, code in samples.yaml, the measured evidence in the expectations of scenarios/*.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from cudnn_doctor.diagnose.code_forms import Asked, read, same_name
from cudnn_doctor.knowledge import code_tables as tables
from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.knowledge.status import (
    CudaError,
    CudnnStatus,
    cuda_error,
    cuda_error_named,
    cuda_errors,
    cudnn_statuses,
    cudnn_statuses_named,
    names,
    sources,
)
from cudnn_doctor.model.base import Base
from cudnn_doctor.model.report import Fix
from cudnn_doctor.scenarios import scenarios
from cudnn_doctor.scenarios.base import STREAM_MISMATCH, Expected, OneOf


class Meaning(Base, frozen=True, kw_only=True):
    """What a code is called and means in one library."""

    of: str  # "cuDNN 5 to 8", "cuDNN 9", "CUDA", "cudnn-doctor"
    code: str
    name: str
    text: str
    details: tuple[str, ...] = ()  # "since 9.5.0", "category: bad parameter", "sticky: yes"
    do: str = ""  # the first thing to do
    source: str = ""


class Measured(Base, frozen=True, kw_only=True):
    """A state that was made and gave this code."""

    scenario: str
    phrase: str
    seen: tuple[str, ...]  # "cuDNN 8.9.7: 7 (old stream)"


class Sample(Base, frozen=True, kw_only=True):
    framework: str
    code: str
    verify: str
    source: str


class CodeCause(Base, frozen=True, kw_only=True):
    """A cause of the code, most likely first."""

    cause: str
    title: str
    explanation: str
    measured: tuple[Measured, ...]
    fixes: tuple[Fix, ...]
    samples: tuple[Sample, ...]
    avoid: str


class CodeExplanation(Base, frozen=True, kw_only=True):
    """The document of `explain CODE`."""

    schema: Literal["cudnn-doctor/code/1"] = "cudnn-doctor/code/1"
    asked: str
    meanings: tuple[Meaning, ...]
    causes: tuple[CodeCause, ...]
    notes: tuple[str, ...] = ()
    verify: str = ""


class UnknownCodeError(ValueError):
    """The text is no code of cuDNN, CUDA or cudnn-doctor."""


def is_code(text: str) -> bool:
    """Whether `text` has the form of a code. A piece of a name counts when some table has it."""
    if re.fullmatch(r"CD\d{3}", text.strip(), re.IGNORECASE):
        return True
    asked = read(text)
    return asked is not None and (not asked.partial or any(_look_up(asked)))


def explain_code(text: str) -> CodeExplanation:
    """Everything that is known of a number, a name or a finding's code.

    Raises:
        UnknownCodeError: nothing is.
    """
    typed = text.strip()
    if re.fullmatch(r"CD\d{3}", typed, re.IGNORECASE):
        return _finding(typed.upper())
    asked = read(typed)
    statuses, errors, others = _look_up(asked) if asked else ((), (), ())
    if not statuses and not errors and not others:
        raise UnknownCodeError(_unknown(typed, asked))
    lists = [*(s.causes for s in statuses), *(e.causes for e in errors), *(c.causes for c in others)]
    causes = dict.fromkeys(c for found in lists for c in found)
    codes = {(8 if 8 in s.majors else 9, s.code) for s in statuses}
    stream = any(code == STREAM_MISMATCH[table] for table, code in codes)
    return CodeExplanation(
        asked=typed,
        meanings=(*map(_cudnn_meaning, statuses), *map(_cuda_meaning, errors), *map(_other_meaning, others)),
        causes=tuple(_cause(c, codes, errors) for c in causes),
        notes=(*_notes(statuses, errors, stream), *_which(asked, errors, others)),
        verify="cudnn-doctor reproduce --faults shows which of these give it on this machine" if stream else "",
    )


def _unknown(typed: str, asked: Asked | None) -> str:
    if asked and asked.number is not None and asked.number < 0:
        return f"{typed!r}: CUDA and cuDNN give no negative numbers, and no signal has that number."
    if asked and asked.number is not None:
        return f"{typed!r} is no number of cuDNN (0 to 14, 1001 to 5004), CUDA or its libraries, and no exit code."
    return f"{typed!r} is no name of cuDNN, CUDA or its libraries.{near(typed)}"


def near(name: str) -> str:
    """ " Nearest: cudaErrorIllegalAddress." or nothing."""
    from difflib import get_close_matches

    known = {c.name.lower(): c.name for c in tables.codes()} | {n.lower(): n for n in names()}
    found = get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    return f" Nearest: {known[found[0]]}." if found else ""


Found = tuple[tuple[CudnnStatus, ...], tuple[CudaError, ...], tuple[tables.Code, ...]]


def _look_up(asked: Asked) -> Found:
    if asked.number is None:
        return _named(asked.name)
    number, where = asked.number, asked.tables
    if number < 0:
        return (), (), _in(-number, ("signal",)) if not where or "exit" in where else ()
    if where and where != ("cuda",):
        return (cudnn_statuses(number) if where == ("cudnn",) else ()), (), _in(number, where)
    error = cuda_error(number)
    both = () if where else cudnn_statuses(number)
    if both:  # asked for as a cuDNN status; that other libraries have these numbers too is told, not explained
        return both, (), ()
    wanted = ("cuda-runtime-10", *(() if error else ("cuda-runtime",)), *(() if where else ("exit",)))
    return (), (error,) if error else (), _in(number, wanted)


def _in(number: int, families: tuple[str, ...]) -> tuple[tables.Code, ...]:
    return tuple(c for c in tables.codes() if c.code == number and c.family in families)


def _named(name: str) -> Found:
    error = cuda_error_named(name)
    statuses = () if error else cudnn_statuses_named(name)
    full = re.match(r"(?i)cuda|cublas|cu[a-z]+_|nvml_|nccl|sig", name) is not None
    if error is None and not full and not statuses:
        error = next((e for e in cuda_errors() if same_name(name, e.name)), None)
    others = tuple(c for c in tables.codes() if c.family != "exit" and same_name(name, c.name))
    if statuses and others and not full:
        others = ()
    runtime = next((c for c in others if c.family == "cuda-runtime"), None)
    if error is None and runtime is not None:
        error = cuda_error(runtime.code)  # the driver has the same number, and says more of it
    return statuses, (error,) if error else (), others


def _which(asked: Asked | None, errors: Sequence[CudaError], others: Sequence[tables.Code]) -> Iterable[str]:
    """Asks which CUDA, where a number means two things; tells what else a small number may be."""
    if asked is None or asked.number is None:
        return
    old = next((c for c in others if c.family == "cuda-runtime-10"), None)
    new = errors[0].name if errors else next((c.name for c in others if c.family == "cuda-runtime"), "")
    if old and new and old.name != new:
        yield f"The runtime renumbered with CUDA 10.1: up to 10.0 {asked.number} is {old.name}, since then {new}."
        yield "Which CUDA does the program use? pip list or ldd tells."
    elif asked.number < 0:
        yield f"{asked.number} is how Python's subprocess gives a signal; CUDA and cuDNN have no negative numbers."
    elif old and not new:
        yield f"CUDA 10.1 and newer have no {asked.number}: it comes from a program built with CUDA 10.0 or older."


def _cudnn_meaning(status: CudnnStatus) -> Meaning:
    nine = 9 in status.majors
    details = [f"since {status.since}"] if status.since != "R1" else []
    details += [f"category: {status.category}"] if nine else []
    return Meaning(
        of="cuDNN 9" if nine else "cuDNN 5 to 8",
        code=str(status.code),
        name=status.name,
        text=status.meaning,
        details=tuple(details),
        source=sources()["cudnn_9" if nine else "cudnn_8"],
    )


def _cuda_meaning(error: CudaError) -> Meaning:
    details = [f"sticky: {error.sticky}"] if error.sticky else []
    details += ["the process must be ended (cuda.h)"] if error.process_dead else []
    details += [f"Xid in the kernel log: {error.xid}"] if error.xid else []
    return Meaning(
        of="CUDA",
        code=str(error.code),
        name=error.name,
        text=error.meaning or tables.meaning_of(error.name)["text"],
        details=tuple(details),
        do=tables.meaning_of(error.name).get("do", ""),
        source=sources()["cuda"],
    )


def _other_meaning(code: tables.Code) -> Meaning:
    return Meaning(of=code.of, code=str(code.code), name=code.name, text=code.text, do=code.do, source=code.source)


def _notes(statuses: Sequence[CudnnStatus], errors: Sequence[CudaError], stream: bool) -> Iterable[str]:
    majors = {m for s in statuses for m in s.majors}
    if stream and 9 not in majors:
        yield "cuDNN 9 has no status 7: what cudnnSetStream said with 7 is 2007 there; MAPPING_ERROR became 4006."
        yield "A log with (7 vs. 0) therefore comes from a build with cuDNN 8 or older."
    if stream and majors == {9}:
        yield "Up to cuDNN 8 the same is 7, CUDNN_STATUS_MAPPING_ERROR."
    if stream:
        yield (
            "In public reports of TensorFlow's (7 vs. 0)Failed to set cuDNN stream. the line is mostly the messenger "
            "of an earlier fault: look for the first error before it. No report shows a version mismatch as its "
            "cause, and neither full memory nor a version mix gave it in any measurement."
        )
    if any(s.name == "CUDNN_STATUS_MAPPING_ERROR" for s in statuses) and 9 in majors:
        yield "The name compiles to 4006 with cuDNN 9's headers; what cudnnSetStream gives there is 2007."
    if len({s.code for s in statuses}) == 1 and statuses and statuses[0].code < 16:
        other = cuda_error(statuses[0].code)
        if other and other.code:
            old = next(iter(_in(other.code, ("cuda-runtime-10",))), None)
            before = f", up to CUDA 10.0 {old.name}" if old else ""
            yield f"As a CUDA error the number {other.code} is {other.name}{before}: something else."
    for error in errors:
        if error.process_dead:
            yield f"After {error.code} nothing works in that context any more; cuDNN's next status is only its echo."


def _cause(name: str, codes: set[tuple[int, int]], errors: Sequence[CudaError]) -> CodeCause:
    known: dict[str, Any] = next(c for c in knowledge("causes") if c["id"] == name)
    return CodeCause(
        cause=name,
        title=known["title"],
        explanation=" ".join(known["explanation"].split()),
        measured=tuple(_measured(name, codes | {(0, e.code) for e in errors})),
        fixes=tuple(
            Fix(text=_for(f) + f["text"], command=f.get("command", ""), verify=f.get("verify", ""))
            for f in known["fixes"]
        ),
        samples=tuple(
            Sample(framework=s["framework"], code=s["code"], verify=s["verify"], source=s["source"])
            for s in knowledge("samples")
            if s["cause"] == name
        ),
        avoid=known.get("avoid", ""),
    )


def _for(fix: dict[str, Any]) -> str:
    only = [
        v for values in fix.get("for", {}).values() for v in (values if isinstance(values, list) else [str(values)])
    ]
    return f"[{', '.join(only)}] " if only else ""


def _measured(cause: str, codes: set[tuple[int, int]]) -> Iterable[Measured]:
    """States of this cause in whose expectations the code stands; table 0 is CUDA's, the same for every cuDNN."""
    for state in (s for _, s in scenarios().values() if s.cause == cause):
        seen: dict[str, list[str]] = {}
        for p in state.points:
            versions = [
                v for v, value in p.values.items() if any(_is(value, c) for t, c in codes if t in (0, _table(v)))
            ]
            if versions:
                seen.setdefault(", ".join(versions), []).append(p.label)
        if seen:
            lines = tuple(f"{', '.join(labels)} (cuDNN {versions})" for versions, labels in seen.items())
            yield Measured(scenario=state.id, phrase=state.phrase, seen=lines)


def _table(version: str) -> int:
    return 8 if version.startswith("8.") else 9


def _is(value: Expected, code: int) -> bool:
    return value == code or (isinstance(value, OneOf) and code in value.of)


def _finding(code: str) -> CodeExplanation:
    from cudnn_doctor.rules import RETIRED, all_rules, engines, states
    from cudnn_doctor.rules.base import Rule

    found = {r.code: r for r in all_rules()}
    for module in (engines, states):
        found |= {r.code: r for r in vars(module).values() if isinstance(r, Rule)}
    if code in RETIRED:
        raise UnknownCodeError(f"{code} is retired: no rule gives it any more.")
    if code not in found:
        raise UnknownCodeError(f"there is no finding {code}; `cudnn-doctor check --list` shows every rule.")
    rule = found[code]
    meaning = Meaning(
        of="cudnn-doctor",
        code=code,
        name=rule.title,
        text=" ".join(rule.explain.split()),
        details=(f"severity: {rule.severity}", f"to be mended by the owner of the {rule.owner}"),
        source=rule.source,
    )
    return CodeExplanation(asked=code, meanings=(meaning,), causes=tuple(_cause(c, set(), ()) for c in rule.causes))
