"""The report as lines for people, in the manner of `flutter doctor`: the verdict, one line a category, what is wrong in
full (title, evidence, fix, how to verify), what is unknown in short, and at the end, above the prompt, the
next step."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.report import Finding, Fix, Report, Verdict
from cudnn_doctor.model.verdict import heading
from cudnn_doctor.render import summary
from cudnn_doctor.render.clean import cells, encodable, one_line, pad, visible, wrap
from cudnn_doctor.render.lines import Line, Span, Style, finish

SHOWN = 4  # consequences of a cause
LONGEST = 300  # characters of one piece of evidence
MIN_WIDTH, NARROW, MAX_WIDTH = 40, 64, 200
SIGNS: dict[summary.State, tuple[str, str]] = {
    "ok": ("[✓]", "[ok]"),
    "note": ("[i]", "[note]"),
    "warning": ("[!]", "[warn]"),
    "error": ("[✗]", "[FAIL]"),
    "unknown": ("[?]", "[?]"),
    "skipped": ("[–]", "[-]"),
    "crashed": ("[☠]", "[CRASH]"),
}

VERDICTS: dict[Verdict, Span] = {
    "ok": ("ok", "OK"),
    "problem": ("error", "PROBLEM"),
    "no-verdict": ("unknown", "NO VERDICT"),
}


class Layout:
    """Measures and signs for one stream: its width, and whether its encoding has the signs."""

    def __init__(self, width: int, encoding: str) -> None:
        self.width = max(MIN_WIDTH, min(width, MAX_WIDTH))
        signs = "".join(fancy for fancy, _ in SIGNS.values())
        self._ascii = encodable(signs, encoding) != signs
        self._gutter = max(len(pair[self._ascii]) for pair in SIGNS.values())

    def sign(self, state: summary.State) -> Span:
        return state, pad(SIGNS[state][self._ascii], self._gutter)

    def block(self, text: str, *, indent: int = 0, style: Style = "", first: tuple[Span, ...] = ()) -> Iterator[Line]:
        """`text` wrapped, continuation lines under the text of the first, which may begin with spans of its own."""
        lead = indent + sum(cells(t) for _, t in first)
        for i, line in enumerate(wrap(visible(text), self.width - lead)):
            start: tuple[Span, ...] = (("", " " * indent), *first) if i == 0 else (("", " " * lead),)
            yield (*start, (style, line))

    def report(self, report: Report, *, verbose: bool) -> Iterator[Line]:
        style, word = VERDICTS[report.verdict]
        yield from self.block(report.reason, first=((style, f"{word}: "),))
        tool = f"{report.tool.name} {report.tool.version}".rstrip()
        yield from self.block(f"{tool} on {summary.machine(report)}", style="bold")
        yield ()
        yield from self._overview(report)
        for title, states in (("Problems", ("crashed", "error", "warning")), ("Notes", ("note",))):
            chosen = summary.causes(report, *states)
            if chosen:
                yield from ((), (("bold", f"{title} ({len(chosen)})"),))
                for cause in chosen:
                    yield ()
                    yield from self._with_consequences(cause, verbose=verbose)
        unknown = summary.ordered(report.findings, "unknown")
        if unknown:
            yield from ((), (("bold", f"Could not be decided ({len(unknown)})"),))
            for finding in unknown:
                yield from self._short(finding)
        if verbose:
            yield from self._others(report)
        if report.notes:
            yield ()
            for note in report.notes:
                yield from self.block(note, first=(("dim", "Note: "),))
        yield ()
        yield from self._verdict(report)

    def _overview(self, report: Report) -> Iterator[Line]:
        found = summary.categories(report)
        column = max((cells(c.name) for c in found), default=0) + 2
        for category in found:
            first: Line = (self.sign(category.state), ("", " "), ("bold", pad(category.name, column)))
            lead = sum(cells(t) for _, t in first)
            if self.width < NARROW:
                yield first
                first, lead = (("", "    "),), 4
            bad = [f for f in category.findings if summary.state_of(f) in ("crashed", "error", "warning")]
            shown = [f for f in bad if not f.consequence_of]
            facts = list(category.facts) or ([] if shown else [f"{len(category.findings)} checks"])
            roots = {summary.cause_of(report, f).code for f in bad if f.consequence_of}
            facts += [f"failing because of {', '.join(sorted(roots))}"] if roots and not shown else []
            spans: list[tuple[Style, str]] = [("", fact) for fact in facts]
            spans += [(summary.state_of(f), heading(f)) for f in shown]
            for i, (style, text) in enumerate(spans):
                start: Line = first if i == 0 else (("", " " * lead),)
                yield from self.block(one_line(text), first=start, style=style)

    def _with_consequences(self, cause: summary.Cause, *, verbose: bool) -> Iterator[Line]:
        yield from self._finding(cause.finding, cause.heading, verbose=verbose)
        if not cause.consequences:
            return
        count = len(cause.consequences)
        if verbose:
            for finding in cause.consequences:
                yield ()
                title = f"{heading(finding)} (a consequence of {cause.finding.code})"
                yield from self._finding(finding, title, verbose=True)
            return
        indent = cells(self.sign("error")[1]) + 1
        lines = [one_line(heading(f)) for f in cause.consequences[:SHOWN]]
        lines += [f"and {count - SHOWN} more (-v shows all)"] if count > SHOWN else []
        for label, line in zip(("so:     ", *["        "] * SHOWN), lines, strict=False):
            yield from self.block(line, indent=indent, first=(("dim", label),), style="dim")

    def _finding(self, finding: Finding, title: str = "", *, verbose: bool = False) -> Iterator[Line]:
        state = summary.state_of(finding)
        sign = self.sign(state)
        indent = cells(sign[1]) + 1
        yield from self.block(one_line(title or heading(finding)), first=(sign, ("", " ")), style="bold")
        if finding.detail and finding.title:
            yield from self.block(finding.detail, indent=indent)
        for evidence in finding.evidence:
            seen = summary.evidence_text(evidence)
            if len(seen) > LONGEST and not verbose:
                seen = f"{seen[:LONGEST]} ... (-v shows all)"
            yield from self.block(seen, indent=indent, first=(("dim", "seen:   "),))
        for fix in finding.fixes:
            yield from self._fix(fix, indent)
        if state == "crashed":
            yield from self.block(
                "This rule failed on these facts: a fault of cudnn-doctor, please report it.", indent=indent
            )

    def _fix(self, fix: Fix, indent: int) -> Iterator[Line]:
        yield from self.block(fix.text, indent=indent, first=(("bold", "fix:    "),))
        for label, command in (("        ", fix.command), ("verify: ", fix.verify)):
            if label != "        " and fix.proof:
                style: Style = "ok" if fix.proof.outcome == "proved" else ""
                yield from self.block(fix.proof.text, indent=indent, first=(("", "        "),), style=style)
            for i, line in enumerate(visible(command).splitlines()):
                start = label if i == 0 else " " * len(label)
                yield (("", " " * indent), ("bold", start), ("command", line))

    def _short(self, finding: Finding) -> Iterator[Line]:
        title = heading(finding)
        text = f"{title}: {finding.detail}" if finding.detail and finding.title else title
        yield from self.block(one_line(text), first=(self.sign(summary.state_of(finding)), ("", " ")))

    def _others(self, report: Report) -> Iterator[Line]:
        parts: tuple[tuple[str, summary.State], ...] = (("In order", "ok"), ("Did not apply", "skipped"))
        for title, state in parts:
            chosen = summary.ordered(report.findings, state)
            if chosen:
                yield from ((), (("bold", f"{title} ({len(chosen)})"),))
                for finding in chosen:
                    yield from self._short(finding)
                    for evidence in finding.evidence:
                        yield from self.block(summary.evidence_text(evidence), indent=8, first=(("dim", "seen:   "),))

    def _verdict(self, report: Report) -> Iterator[Line]:
        style, word = VERDICTS[report.verdict]
        tally = ", ".join(f"{n} {state}" for n, state in summary.counts(report))
        yield from self.block(f"(exit code {report.exit_code}): {tally or 'no check'}.", first=((style, f"{word} "),))
        yield from self.block(summary.next_step(report))


def render_text(
    report: Report, *, width: int = 80, color: bool = False, verbose: bool = False, encoding: str = "utf-8"
) -> str:
    """The report for people. Width is clamped to 40..200; commands and paths are never broken, so that they can be
    copied."""
    return finish(Layout(width, encoding).report(report, verbose=verbose), color=color, encoding=encoding)
