"""An answer of the matrix as text, JSON or markdown. Strings only; nothing is printed here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from cudnn_doctor.matrix.judgement import Judgement
from cudnn_doctor.matrix.question import Answer, Way
from cudnn_doctor.render import markdown_parts as md
from cudnn_doctor.render.clean import cells, visible, wrap

SIGNS = {"ok": "[ok]", "problem": "[FAIL]", "unknown": "[?]", "warning": "[warn]", "note": "[note]"}
LABEL = 34  # columns of the labels
MIN_WIDTH = 60


def render_matrix(answer: Answer, form: Literal["text", "json", "markdown"], *, width: int = 100) -> str:
    """The answer in one of the forms, with a final newline."""
    if form == "json":
        import msgspec

        return msgspec.json.format(msgspec.json.encode(as_dict(answer)), indent=2).decode() + "\n"
    return _markdown(answer) if form == "markdown" else _text(answer, max(width, MIN_WIDTH))


def as_dict(answer: Answer) -> dict[str, Any]:
    """The JSON document, "cudnn-doctor/matrix/1"."""
    import msgspec

    return {
        "schema": "cudnn-doctor/matrix/1",
        "verdict": answer.verdict,
        "exit_code": 1 if answer.verdict == "problem" else 0,
        **msgspec.to_builtins(answer),
    }


def _sign(verdict: Judgement) -> str:
    soft = verdict.verdict == "problem" and verdict.severity != "error"
    return SIGNS[verdict.severity if soft else verdict.verdict]


def _origin(source: str, checked_on: str) -> str:
    return ", checked ".join(part for part in (source, checked_on) if part)


def _text(answer: Answer, width: int) -> str:
    return "".join(line.rstrip() + "\n" for line in _lines(answer, width))


def _lines(answer: Answer, width: int) -> Iterator[str]:
    sources: dict[str, int] = {}

    def mark(source: str, checked_on: str) -> str:
        """The number of a source, "[2]"."""
        if not source:
            return ""
        return f" [{sources.setdefault(_origin(source, checked_on), len(sources) + 1)}]"

    yield visible(answer.title)
    for fact in answer.facts:
        yield from _block(fact.value + mark(fact.source, fact.checked_on), width, first=f"  {fact.label}")
    if answer.verdicts:
        yield ""
    for v in answer.verdicts:
        yield from _hanging(f"{v.text} ({v.rule}){mark(v.source, v.checked_on)}", width, first=f"{_sign(v):<7}")
    if answer.ways:
        yield from _ways(answer, width)
    elif answer.command:
        yield ""
        yield "$ " + visible(answer.command)
    if answer.command and answer.checked:
        yield from _hanging(f"fits by: {answer.checked}", width, first="  ")
    if answer.notes:
        yield ""
    for note in answer.notes:
        yield from _hanging(note, width, first="- ")
    if sources:
        yield ""
    for source, number in sources.items():
        yield from _hanging(source, width, first=f"[{number}] ")


def _ways(answer: Answer, width: int) -> Iterator[str]:
    """What to do, the cheapest first; one way alone without a number."""
    several = len(answer.ways) > 1 or any(way.changes for way in answer.ways)
    for number, way in enumerate(answer.ways, 1):
        yield ""
        if several:
            yield from _hanging(_title(way), width, first=f"{number}. ")
        if way.command:
            yield ("   " if several else "") + "$ " + visible(way.command)
        start = "     " if several else "  "
        if way.needs:
            yield from _hanging(f"needs {way.needs}", width, first=start)
        if way.costs:
            yield from _hanging(f"costs {way.costs}", width, first=start)
        for note in way.notes if number > 1 else ():
            yield from _hanging(note, width, first=start)


def _title(way: Way) -> str:
    """What changes; a way without a change is what is asked for."""
    return way.text[:1].upper() + way.text[1:]


def _block(text: str, width: int, *, first: str) -> Iterator[str]:
    """A label and its value in two columns; a long label gets a line of its own."""
    start = visible(first)
    if cells(start) >= LABEL:
        yield start
        start = ""
    for i, line in enumerate(wrap(visible(text), width - LABEL)):
        yield (start if i == 0 else "").ljust(LABEL) + line


def _hanging(text: str, width: int, *, first: str) -> Iterator[str]:
    for i, line in enumerate(wrap(visible(text), width - len(first))):
        yield (first if i == 0 else " " * len(first)) + line


def _markdown(answer: Answer) -> str:
    parts = [f"## {md.text(answer.title)}"]
    if answer.facts:
        rows = [(md.text(f.label), md.text(f.value), md.text(_origin(f.source, f.checked_on))) for f in answer.facts]
        parts.append(md.table(("", "", "source"), rows))
    if answer.verdicts:
        verdicts = [
            (_sign(v).strip("[]"), md.text(v.text), md.code(v.rule), md.text(_origin(v.source, v.checked_on)))
            for v in answer.verdicts
        ]
        parts.append(md.table(("verdict", "", "rule", "source"), verdicts))
    for way in answer.ways:
        parts.append(md.text(_title(way) + "".join(f"; {part}" for part in (way.needs, way.costs) if part)))
        if way.command:
            parts.append(md.block(way.command, "sh"))
    if answer.command and not answer.ways:
        parts.append(md.block(answer.command, "sh"))
    if answer.command and answer.checked:
        parts.append(md.text(f"fits by: {answer.checked}"))
    if answer.notes:
        parts.append(md.bullets(md.text(n) for n in answer.notes))
    return "\n\n".join(parts) + "\n"
