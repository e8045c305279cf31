"""An explanation as text for people, as JSON, and as markdown to paste as an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cudnn_doctor.render.clean import cells, one_line, wrap
from cudnn_doctor.render.lines import Line, Span, Style, finish

if TYPE_CHECKING:
    from typing import Literal

    from cudnn_doctor.model.explanation import Cause, Evidence, Experiment, Explanation, Question

    Format = Literal["text", "json", "markdown"]

MIN_WIDTH, MAX_WIDTH = 40, 200
QUOTE = 300  # characters of a quoted line that people see

_HEADS: dict[str, Span] = {
    "cause-found": ("error", "CAUSE FOUND"),
    "undetermined": ("unknown", "NOT DECIDED BY THIS TEXT"),
    "no-problem": ("ok", "NO PROBLEM"),
    "not-cudnn": ("note", "NOT A cuDNN PROBLEM"),
}
_ROLES = {
    "primary": "The failing line is the fault itself.",
    "consequence": "The failing line is only the messenger.",
    "noise": "cuDNN has no part in it.",
}
_FACTS = {
    "framework": "framework",
    "framework_version": "version",
    "cuda": "CUDA",
    "cudnn_loaded": "cuDNN loaded",
    "cudnn_built": "cuDNN compiled with",
    "driver": "driver",
    "gpu": "GPU",
    "os": "system",
}


def render(
    explanation: Explanation, fmt: Format, *, width: int = 100, color: bool = False, encoding: str = "utf-8"
) -> str:
    """The explanation in the form `fmt`. `width`, `color` and `encoding` matter to text alone; JSON is pure ASCII,
    markdown is UTF-8."""
    if fmt == "json":
        return as_json(explanation)
    if fmt == "markdown":
        return "\n".join(_markdown(explanation)) + "\n"
    return finish(_Layout(width).all(explanation), color=color, encoding=encoding)


def as_json(document: Explanation | list[Explanation]) -> str:
    """JSON that a stream of any encoding can say: what a log holds may not be text at all."""
    import json

    import msgspec

    return json.dumps(msgspec.to_builtins(document), indent=2) + "\n"


def _quoted(evidence: Evidence) -> str:
    text = one_line(evidence.text)
    return text if len(text) <= QUOTE else text[: QUOTE - 3] + "..."


def _place(evidence: Evidence) -> str:
    file = f"{one_line(evidence.file)}, " if evidence.file else ""
    return f"{file}line {evidence.line}" if evidence.line else file.rstrip(", ") or "this machine"


class _Layout:
    """The lines of an explanation, wrapped; spans are a style and a text as in `render.text`."""

    def __init__(self, width: int) -> None:
        self._width = max(MIN_WIDTH, min(width, MAX_WIDTH))

    def _block(self, text: str, indent: int = 0, style: Style = "", first: tuple[Span, ...] = ()) -> Iterator[Line]:
        lead = indent + sum(cells(t) for _, t in first)
        for i, line in enumerate(wrap(one_line(text), self._width - lead)):
            start: tuple[Span, ...] = (("", " " * indent), *first) if i == 0 else (("", " " * lead),)
            yield (*start, (style, line))

    def all(self, document: Explanation) -> Iterator[Line]:
        style, head = _HEADS[document.verdict]
        causes = document.causes
        found = document.verdict == "cause-found"
        if found:
            head = f"{head} ({causes[0].confidence})"
        yield from self._block(document.summary, first=((style, f"{head}: "),))
        if found or (document.verdict == "not-cudnn" and causes):
            yield from self._cause(causes[0])
        elif any(cause.evidence for cause in causes):
            yield from ((), (("bold", "Possible, best first"),))
            quoted: set[str] = set()  # a line is shown once
            for cause in causes:
                if cause.evidence or document.verdict == "no-problem":
                    yield from self._candidate(cause, quoted)
        yield from self._experiments(document.experiments, found=found)
        yield from self._questions(document.questions)
        if found and causes[1:]:
            others = ", ".join(c.cause for c in causes[1:4])
            yield ()
            yield from self._block(others, first=(("dim", "Less likely: "),))
        yield from self._facts(document)

    def _cause(self, cause: Cause) -> Iterator[Line]:
        yield from self._block(f"{_ROLES[cause.role]} [{cause.cause}]", style="dim")
        yield from ((), (("bold", "Why"),))
        yield from self._evidence(cause)
        yield from ((), (("bold", "What to do"),))
        for number, fix in enumerate(cause.fixes, 1):
            yield from self._block(fix.text, 2, first=(("", f"{number}. "),))
            if fix.command:
                yield (("", "     "), ("command", one_line(fix.command)))
            if fix.verify:
                yield from self._block(fix.verify, 5, first=(("dim", "Verify: "),))
        yield from self._block(cause.avoid, 2, first=(("dim", "Does not help: "),))

    def _evidence(self, cause: Cause) -> Iterator[Line]:
        for evidence in cause.evidence:
            yield from self._block(_quoted(evidence), 2, first=(("bold", f"{_place(evidence)}: "),))
            if evidence.because:
                yield from self._block(evidence.because, 4, "dim", first=(("", "-> "),))

    def _candidate(self, cause: Cause, quoted: set[str]) -> Iterator[Line]:
        yield from self._block(f"{cause.title} [{cause.cause}]", 2, first=(("", "- "),))
        for evidence in cause.evidence[:1]:
            if evidence.because:
                yield from self._block(evidence.because, 4, first=(("dim", "-> "),))
            if evidence.text in quoted:
                continue
            quoted.add(evidence.text)
            yield from self._block(_quoted(evidence), 4, "dim", first=(("dim", f"{_place(evidence)}: "),))

    def _experiments(self, experiments: tuple[Experiment, ...], *, found: bool) -> Iterator[Line]:
        if not experiments:
            return
        yield from ((), (("bold", "To be sure" if found else "What decides, best first"),))
        for number, experiment in enumerate(experiments, 1):
            yield from self._block(experiment.text, 2, first=(("", f"{number}. "),))
            if experiment.command:
                yield (("", "     "), ("command", one_line(experiment.command)))
            yield from self._block(experiment.outcome, 5, first=(("dim", "-> "),))

    def _questions(self, questions: tuple[Question, ...]) -> Iterator[Line]:
        if not questions:
            return
        yield from ((), (("bold", "Please tell"),))
        for number, question in enumerate(questions, 1):
            yield from self._block(question.text, 2, first=(("", f"{number}. "),))

    def _facts(self, document: Explanation) -> Iterator[Line]:
        stated = [
            f"{name} {said}" for key, name in _FACTS.items() if (said := getattr(document.facts, key)) is not None
        ]
        if stated:
            yield ()
            yield from self._block("; ".join(stated), first=(("dim", "Stated: "),))
        for doubt in document.doubts:
            yield from self._block(doubt, first=(("warning", "Doubtful: "),))
        for note in document.notes:
            yield from self._block(note, first=(("dim", "Note: "),))


def _markdown(document: Explanation) -> Iterator[str]:
    """An answer to a ticket: what it is, from which lines, what to do, what else to send."""
    from cudnn_doctor.render import markdown_parts as md

    causes, found = document.causes, document.verdict == "cause-found"
    named = found or (document.verdict == "not-cudnn" and bool(causes))
    head = f"Cause ({causes[0].confidence})" if found else _HEADS[document.verdict][1]
    head = head.capitalize().replace("cudnn", "cuDNN")
    yield f"**{md.text(head)}:** {md.text(document.summary)}"
    if named:
        best = causes[0]
        yield from ("", f"{_ROLES[best.role]} The lines that say so:", "")
        for evidence in best.evidence:
            yield f"- {md.text(_place(evidence))}: {md.code(_quoted(evidence))} ({md.text(evidence.because)})"
        yield from ("", "What to do:", "")
        for number, fix in enumerate(best.fixes, 1):
            yield f"{number}. {md.text(fix.text)}"
            if fix.command:
                yield f"\n   {md.code(fix.command)}\n"
            if fix.verify:
                yield f"   Verify: {md.text(fix.verify)}"
        yield from ("", f"Does not help: {md.text(best.avoid)}")
    elif any(c.points for c in causes):
        yield from ("", "Possible, best first:", "")
        for cause in causes:
            lines = (f"; {md.text(_place(e))}: {md.code(_quoted(e))}" for e in cause.evidence[:1])
            yield f"- {md.text(cause.title)} ({md.code(cause.cause)}){''.join(lines)}"
    if document.experiments:
        yield from ("", "To be sure:" if found else "What decides, best first:", "")
        for number, experiment in enumerate(document.experiments, 1):
            yield f"{number}. {md.text(experiment.text)}"
            if experiment.command:
                yield f"\n   {md.code(experiment.command)}\n"
            yield f"   {md.text(experiment.outcome)}"
    if document.questions:
        yield from ("", "Please tell:", "")
        for number, question in enumerate(document.questions, 1):
            yield f"{number}. {md.text(question.text)}"
    for doubt in document.doubts:
        yield from ("", f"Doubtful: {md.text(doubt)}")
    for note in document.notes:
        yield from ("", f"Note: {md.text(note)}")
