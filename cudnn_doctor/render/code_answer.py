"""`explain CODE` for people: what the code means where, then its causes with evidence, fixes and code."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.diagnose.codes import CodeCause, CodeExplanation
from cudnn_doctor.render.clean import one_line
from cudnn_doctor.render.lines import Line, finish
from cudnn_doctor.render.text import Layout


def render_code(document: CodeExplanation, *, width: int = 100, color: bool = False, encoding: str = "utf-8") -> str:
    """The explanation as text; `color` loads rich."""
    return finish(_Layout(width, encoding).code(document), color=color, encoding=encoding)


class _Layout(Layout):
    """The lines of an explanation."""

    def code(self, document: CodeExplanation) -> Iterator[Line]:
        for meaning in document.meanings:
            yield from self.block(f"{meaning.of}: {meaning.code} {meaning.name}", style="bold")
            yield from self.block(meaning.text, indent=2)
            if meaning.details:
                yield from self.block("; ".join(meaning.details) + ".", indent=2, style="dim")
            if meaning.do:
                yield from self.block(meaning.do, indent=2, first=(("bold", "Do: "),))
            if meaning.source:
                yield from self.block(f"Source: {meaning.source}.", indent=2, style="dim")
            yield ()
        for note in document.notes:
            yield from self.block(one_line(note), first=(("bold", "Note: "),))
        if document.notes:
            yield ()
        for number, cause in enumerate(document.causes, 1):
            yield from self._cause(number, cause)
        if document.verify:
            yield from self.block(document.verify, first=(("bold", "Then: "),))

    def _cause(self, number: int, cause: CodeCause) -> Iterator[Line]:
        yield from self.block(f"{number}. {cause.title} [{cause.cause}]", style="bold")
        yield from self.block(cause.explanation, indent=3)
        for measured in cause.measured:
            seen = "; ".join(measured.seen)
            yield from self.block(f"{measured.phrase}: {seen}", indent=3, first=(("ok", "measured: "),))
        for fix in cause.fixes:
            yield from self._fix(fix, 3)
        for sample in cause.samples:
            yield (("", "   "), ("bold", f"{sample.framework}:"))
            for line in sample.code.rstrip("\n").splitlines():
                yield (("", "     "), ("command", line))
            yield from self.block(sample.verify, indent=3, first=(("bold", "then: "),))
        if cause.avoid:
            yield from self.block(cause.avoid, indent=3, first=(("bold", "not:  "),))
        yield ()
