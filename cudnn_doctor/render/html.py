"""The report as one HTML file: no script, no request, readable from disk, in a mail client and on paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.facts import Gpu
from cudnn_doctor.model.report import Finding, Report
from cudnn_doctor.render import category_facts, summary
from cudnn_doctor.render.clean import one_line, size, time
from cudnn_doctor.render.html_elements import Markup, join, tag
from cudnn_doctor.render.html_page import page
from cudnn_doctor.render.html_parts import (
    badge,
    card,
    code,
    concluded,
    explanation_part,
    fact,
    folded,
    heat_map,
    section,
    short_list,
    table,
)  # fmt: skip
from cudnn_doctor.render.picture import cudnn_picture, memory_bar

if TYPE_CHECKING:
    from cudnn_doctor.model.explanation import Explanation
    from cudnn_doctor.rules.base import Rule

WORDS: dict[str, tuple[summary.State, str]] = {
    "ok": ("ok", "✓ Nothing wrong"),
    "problem": ("error", "✗ Problem"),
    "no-verdict": ("unknown", "? No verdict"),
}


def render_html(report: Report, *, explanation: Explanation | None = None, rules: Sequence[Rule] | None = None) -> str:
    """The page, in UTF-8; `rules` are all rules of the tool where None."""
    if rules is None:
        from cudnn_doctor.rules import all_rules

        rules = all_rules()
    by_code = {r.code: r for r in rules}
    title = f"{report.tool.name}: {one_line(report.reason)}"
    return page(title, _sections(report, explanation, by_code))


def _sections(report: Report, explanation: Explanation | None, rules: dict[str, Rule]) -> Iterable[Markup]:
    bad = summary.causes(report, "crashed", "error", "warning")
    notes = summary.causes(report, "note")
    yield _banner(report)
    found = summary.categories(report)
    parts = (
        tag("li", tag("strong", c.name), tag("span", badge(c.state)), tag("div", _lines(c.facts) or "–")) for c in found
    )
    yield section("Overview", tag("ul", *parts, class_="overview") if found else "")
    yield section(f"Problems ({len(bad)})", *(card(c, rules.get(c.finding.code)) for c in bad))
    if explanation is not None:
        yield section("What the log says", explanation_part(explanation))
    yield section("Compatibility", _compatibility(report))
    yield section("cuDNN copies", _copies(report))
    gpus = value_or(report.snapshot.gpus, ())
    yield section("GPUs and their memory", *(_gpu(g) for g in gpus))
    live = [r for r in report.scenarios if r.scenario == "live-check"]
    runs = ((category_facts.live_subject(r), category_facts.live_outcome(r), time(r.ms)) for r in live)
    yield section("Live check", table("cuDNN used for real, in child processes", ("Where", "Outcome", "Time"), runs))
    provoked = [r for r in report.scenarios if r.scenario != "live-check"]
    yield section("Provoked states", *concluded(category_facts.conclusions(report)), heat_map(provoked))
    yield section(f"Notes ({len(notes)})", *(card(c, rules.get(c.finding.code)) for c in notes))
    yield section("Could not be decided", short_list(summary.ordered(report.findings, "unknown")))
    yield section("Details", *_details(report))
    checked = f", compatibility data of {report.tool.matrix_checked_on}" if report.tool.matrix_checked_on else ""
    made = f"Written by {report.tool.name} {report.tool.version}{checked}; facts read {report.snapshot.taken_at}."
    yield tag("p", made, class_="soft small")


def _banner(report: Report) -> Markup:
    state, word = WORDS[report.verdict]
    tally = ", ".join(f"{n} {kind}" for n, kind in summary.counts(report))
    return join((
        tag("h1", f"{report.tool.name} report"),
        tag(
            "div",
            tag("p", tag("span", word, class_=f"badge {state}", style="font-size: inherit"), class_="word"),
            tag("p", one_line(report.reason), class_="reason"),
            tag("p", summary.next_step(report)),
            tag("p", f"{summary.machine(report)}. Exit code {report.exit_code}. Checks: {tally or 'none'}.",
                class_="soft small"),
            *(tag("p", tag("strong", "Note: "), note, class_="small") for note in report.notes),
            class_=f"banner {state}-edge",
        ),
    ))  # fmt: skip


def _lines(facts: Sequence[str]) -> Markup:
    return join(tag("p", one_line(f)) for f in facts)


def _compatibility(report: Report) -> Markup:
    """Three verdicts a framework, then each answer of the compatibility rules with what it rests on."""
    questions = tuple(question for question, _ in summary.COMPATIBILITY)
    verdicts = (
        (one_line(subject), *(_verdict(f) for f in answers)) for subject, answers in summary.three_verdicts(report)
    )
    found = [f for f in report.findings if f.code.startswith("CD4") and f.status != "skipped"]
    by_subject = sorted(found, key=lambda f: (f.subject, f.code))
    rows = ((one_line(f.subject) or "–", badge(summary.state_of(f)), _answer(f)) for f in by_subject)
    caption = "The cuDNN that each framework would load: three verdicts, of which only the first decides"
    every = table("Each answer with its sources", ("Of", "State", "Answer and what it rests on"), rows, class_="wide")
    return join((
        table(caption, ("Framework", *questions), verdicts, class_="wide"),
        folded("Every answer on compatibility", every),
    ))  # fmt: skip


def _verdict(finding: Finding | None) -> Markup:
    if finding is None:
        return tag("span", "– not judged", class_="soft")
    return join((badge(summary.state_of(finding)), tag("p", one_line(finding.title or finding.detail))))


def _answer(finding: Finding) -> Markup:
    detail = finding.detail if finding.title else ""
    return join((
        tag("p", f"{finding.code} {one_line(finding.title or finding.detail)}"),
        tag("p", one_line(detail)) if detail else "",
        *(
            tag("p", code(e.value), f" ({one_line(e.source)})" if e.source else "", class_="soft small")
            for e in finding.evidence
        ),
    ))  # fmt: skip


def _copies(report: Report) -> Markup:
    s = report.snapshot
    picture = cudnn_picture(s)
    shown = tag("div", picture, class_="scroll", tabindex=0, role="region", aria_label="Picture of the cuDNN copies")
    copies = (
        (fact(c.version), code(c.real_path), _names(c.found_by), fact(c.package), fact(c.cudart)) for c in s.cudnn
    )
    loads = (
        (one_line(r.consumer), code(r.wanted), fact(r.real_path), one_line(r.step) or "–")
        for r in category_facts.loads(s)
    )
    return join((
        shown if picture else Markup(""),
        folded("The same in words", join((
            table("Every copy", ("Version", "File", "Found by", "Package", "Built with CUDA"), copies),
            table("Who loads which", ("By", "Wanted", "File", "Step of the search"), loads),
        ))) if s.cudnn else Markup(""),
    ))  # fmt: skip


def _names(names: Sequence[str]) -> str:
    return one_line(", ".join(names))


def _gpu(gpu: Gpu) -> Markup:
    name = f"GPU {gpu.index}: {value_or(gpu.name, 'unnamed')} ({value_or(gpu.compute_capability, '?')})"
    total = f", {size(gpu.memory_total.value)}" if hasattr(gpu.memory_total, "value") else ""
    state = [
        f"compute mode {value_or(gpu.compute_mode, 'unknown')}",
        f"MIG {'on' if value_or(gpu.mig, False) else 'off'}",
        *(f"slowed down by {reason}" for reason in value_or(gpu.throttle, ()) if reason != "gpu-idle"),
    ]
    uuid = tag("p", "; ".join(state), "; UUID ", fact(gpu.uuid), class_="soft small")
    return tag("article", tag("h3", one_line(name + total)), memory_bar(gpu), uuid, class_="card")


def _details(report: Report) -> Iterable[Markup]:
    s = report.snapshot
    steps = (
        (
            one_line(r.consumer),
            code(r.wanted),
            one_line(step.step),
            code(step.directory),
            "found" if step.found else one_line(step.skipped) or "nothing",
        )
        for r in s.resolutions
        for step in r.steps
    )
    yield folded(
        "How the loader searched", table("Every place, in order", ("For", "Wanted", "Step", "Folder", "Result"), steps)
    )
    packages = value_or(s.packages, ())
    rows = ((p.name, code(p.version), code(p.location)) for p in packages)
    yield folded(f"Packages ({len(packages)})", table("Installed and relevant", ("Name", "Version", "Place"), rows))
    variables = ((name, code(value)) for name, value in sorted(s.host.environment.items()))
    yield folded("Environment variables", table("Those on the allow-list", ("Variable", "Value"), variables))
    for title, state in (("Checks in order", "ok"), ("Checks that did not apply", "skipped")):
        chosen = [f for f in report.findings if f.status == state]
        yield folded(f"{title} ({len(chosen)})", short_list(chosen))
