"""The report as GitHub-flavoured markdown that fits an issue: verdict and problems first, details folded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cudnn_doctor.model.base import Fact, Known, value_or
from cudnn_doctor.model.report import Finding, Fix, Report
from cudnn_doctor.model.verdict import heading
from cudnn_doctor.render import category_facts, summary
from cudnn_doctor.render.clean import disarmed, size, time
from cudnn_doctor.render.markdown_parts import block, bullets, code, folded, table, text

if TYPE_CHECKING:
    from cudnn_doctor.model.explanation import Explanation
    from cudnn_doctor.model.explanation import Fix as LogFix

LIMIT = 60_000  # characters; GitHub refuses an issue body above 65,536
SIGNS: dict[summary.State, str] = {
    "ok": "✅ ok",
    "note": "ℹ️ note",
    "warning": "⚠️ warning",
    "error": "❌ error",
    "unknown": "❔ unknown",
    "skipped": "➖ skipped",
    "crashed": "💥 crashed",
}
VERDICTS = {"ok": "✅ ok", "problem": "❌ problem", "no-verdict": "❔ no verdict"}


def render_markdown(report: Report, *, explanation: Explanation | None = None, limit: int = LIMIT) -> str:
    """Verdict, overview and problems; what no longer fits into `limit` characters is left out whole, and says so."""
    kept: list[str] = []
    used = left_out = 0
    for piece in pieces(report, explanation):
        if used + len(piece) + 2 > limit - 200:
            left_out += 1
            continue
        kept.append(piece)
        used += len(piece) + 2
    if left_out:
        kept.append(f"*{left_out} parts are left out to stay under {limit} characters; the JSON form has everything.*")
    return disarmed("\n\n".join(kept)) + "\n"


def pieces(report: Report, explanation: Explanation | None = None) -> Iterator[str]:
    """The parts of the document, the most telling first."""
    yield f"# {report.tool.name} {report.tool.version}: {VERDICTS[report.verdict]}"
    yield f"**{text(report.reason)}** (exit code {report.exit_code})"
    yield text(summary.next_step(report))
    for note in report.notes:
        yield f"> {text(note)}"
    yield overview(report)
    for title, states in (("Problems", ("crashed", "error", "warning")), ("Notes", ("note",))):
        chosen = summary.causes(report, *states)
        if chosen:
            yield f"## {title} ({len(chosen)})"
            for cause in chosen:
                yield _finding(cause)
    if explanation is not None:
        yield "## What the log says"
        yield from _explanation(explanation)
    unknown = summary.ordered(report.findings, "unknown")
    if unknown:
        yield f"## Could not be decided ({len(unknown)})"
        yield bullets(map(_short, unknown))
    yield from _details(report)


def overview(report: Report) -> str:
    """One row a category: state, name, facts."""
    return table(
        ("", "Category", "Facts"),
        ((SIGNS[c.state], c.name, "<br>".join(map(text, c.facts)) or "–") for c in summary.categories(report)),
    )


def _finding(cause: summary.Cause) -> str:
    finding = cause.finding
    parts = [f"### {SIGNS[summary.state_of(finding)]}: {text(cause.heading)}"]
    if finding.detail and finding.title:
        parts.append(text(finding.detail))
    if finding.evidence:
        parts.append(bullets(f"{code(e.value)}{f' ({code(e.source)})' if e.source else ''}" for e in finding.evidence))
    for fix in finding.fixes:
        parts += _fix(fix)
        if fix.proof:
            parts.append(f"*{text(fix.proof.text)}*")
    if cause.consequences:
        count = len(cause.consequences)
        what = "What follows from it (1)" if count == 1 else f"What follows from it ({count})"
        parts.append(folded(what, bullets(text(heading(f)) for f in cause.consequences)))
    parts.append(f"<sub>Owner: {finding.owner}</sub>")
    return "\n\n".join(parts)


def _fix(fix: Fix | LogFix) -> Iterator[str]:
    yield f"**Fix:** {text(fix.text)}"
    if fix.command:
        yield block(fix.command, "sh")
    if fix.verify:
        yield "Verify:"
        yield block(fix.verify, "sh")


def _explanation(explanation: Explanation) -> Iterator[str]:
    yield f"**{explanation.verdict}:** {text(explanation.summary)}"
    for cause in explanation.causes:
        parts = [f"### {cause.confidence}: {text(cause.title)} ({code(cause.cause)})"]
        lines = (
            f"line {e.line}{f' of {text(e.file)}' if e.file else ''}: {code(e.text)}"
            f"{f' – {text(e.because)}' if e.because else ''}"
            for e in cause.evidence
        )
        parts.append(bullets(lines))
        for fix in cause.fixes:
            parts += _fix(fix)
        yield "\n\n".join(p for p in parts if p)
    if explanation.questions:
        yield "To tell these apart, please answer:\n\n" + bullets(text(q.text) for q in explanation.questions)


def _short(finding: Finding) -> str:
    detail = f": {text(finding.detail)}" if finding.detail and finding.title else ""
    return f"{text(heading(finding))}{detail}"


def _details(report: Report) -> Iterator[str]:
    s = report.snapshot
    gpus = value_or(s.gpus, ())
    if gpus:
        rows = (
            (
                str(g.index),
                _cell(g.name),
                _cell(g.compute_capability),
                _bytes(g.memory_free),
                _bytes(g.memory_total),
                _cell(g.compute_mode),
                _cell(g.uuid),
            )
            for g in gpus
        )
        head = ("GPU", "Name", "Capability", "Free", "Total", "Compute mode", "UUID")
        yield folded(f"GPUs ({len(gpus)})", table(head, rows))
    if s.cudnn:
        copies = ((_cell(c.version), code(c.real_path), code(", ".join(c.found_by)), _cell(c.package)) for c in s.cudnn)
        columns = ("Version", "File", "Found by", "Package")
        yield folded(f"cuDNN copies ({len(s.cudnn)})", table(columns, copies))
    users = category_facts.loads(s)
    if users:
        loads = ((text(r.consumer), code(r.wanted), _cell(r.real_path), code(r.step)) for r in users)
        yield folded("Which cuDNN is loaded", table(("By", "Wanted", "File", "Step of the search"), loads))
    verdicts = summary.three_verdicts(report)
    if verdicts:
        answers = ((text(subject), *map(_verdict, found)) for subject, found in verdicts)
        questions = ("Framework", *(question for question, _ in summary.COMPATIBILITY))
        yield folded("Compatibility of the cuDNN that is loaded", table(questions, answers))
    live = [r for r in report.scenarios if r.scenario == "live-check"]
    if live:
        runs = ((text(category_facts.live_subject(r)), text(category_facts.live_outcome(r)), time(r.ms)) for r in live)
        yield folded("Live checks", table(("", "Outcome", "Time"), runs))
    provoked = [r for r in report.scenarios if r.scenario != "live-check"]
    if provoked:
        states = (
            (
                code(r.scenario),
                text(category_facts.live_subject(r)),
                text(category_facts.live_outcome(r)),
                text(r.verdict),
            )
            for r in provoked
        )
        found = "\n\n".join(
            f"{text(told)}\n\n{bullets(map(text, items))}" for told, items in category_facts.conclusions(report)
        )
        yield folded(
            f"Provoked states ({len(provoked)})",
            f"{found}\n\n{table(('State', 'On', 'Outcome', 'Verdict'), states)}".lstrip(),
        )
    packages = value_or(s.packages, ())
    if packages:
        yield folded(f"Packages ({len(packages)})", block("\n".join(f"{p.name}=={p.version}" for p in packages)))
    if s.host.environment:
        lines = "\n".join(f"{name}={value}" for name, value in sorted(s.host.environment.items()))
        yield folded(f"Environment variables ({len(s.host.environment)})", block(lines))
    for title, state in (("Checks in order", "ok"), ("Checks that did not apply", "skipped")):
        chosen = [f for f in report.findings if summary.state_of(f) == state]
        if chosen:
            yield folded(f"{title} ({len(chosen)})", bullets(map(_short, chosen)))


def _verdict(finding: Finding | None) -> str:
    if finding is None:
        return "–"
    return f"{SIGNS[summary.state_of(finding)]}: {text(finding.title or finding.detail)}"


def _cell(fact: Fact[str]) -> str:
    return code(fact.value) if isinstance(fact, Known) else f"– ({fact.reason})"


def _bytes(fact: Fact[int]) -> str:
    return size(fact.value) if isinstance(fact, Known) else f"– ({fact.reason})"
