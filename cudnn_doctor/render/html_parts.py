"""Parts of the HTML report: tables, cards, the heat map of provoked states, the explanation of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cudnn_doctor.model.base import Fact, Known
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.report import Finding, Fix, Proof
from cudnn_doctor.model.verdict import heading
from cudnn_doctor.render import category_facts, summary
from cudnn_doctor.render.clean import one_line, short_path
from cudnn_doctor.render.html_elements import Markup, join, tag

if TYPE_CHECKING:
    from cudnn_doctor.model.explanation import Cause, Explanation
    from cudnn_doctor.model.explanation import Fix as LogFix
    from cudnn_doctor.rules.base import Rule

SIGNS: dict[summary.State, str] = {
    "ok": "✓ ok",
    "note": "i note",
    "warning": "! warning",
    "error": "✗ error",
    "unknown": "? unknown",
    "skipped": "– skipped",
    "crashed": "☠ crashed",
}
VERDICTS = {
    "cause-found": "Cause found",
    "undetermined": "Undetermined",
    "no-problem": "No problem",
    "not-cudnn": "Not a matter of cuDNN",
}
OWNERS = {
    "node": "whoever runs this machine",
    "environment": "whoever runs this Python environment",
    "program": "whoever runs the program",
}


def badge(state: summary.State) -> Markup:
    """The state as a word on its colour."""
    return tag("span", SIGNS[state], class_=f"badge {state}")


def section(title: str, *children: str) -> Markup:
    """A part with its heading; nothing where there is nothing to show."""
    body = join(children)
    return tag("section", tag("h2", title), body) if body else Markup("")


def folded(title: str, body: Markup) -> Markup:
    """A part that the reader opens."""
    return tag("details", tag("summary", title), body) if body else Markup("")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], class_: str | None = None) -> Markup:
    """A table that scrolls sideways on narrow screens; nothing without rows. The first cell of a row heads it."""
    lines = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    if not lines:
        return Markup("")
    columns = tag("thead", tag("tr", *(tag("th", h, scope="col") if h else tag("td") for h in head)))
    body = tag("table", tag("caption", caption), columns, tag("tbody", *lines), class_=class_)
    return tag("div", body, class_="scroll", tabindex=0, role="region", aria_label=caption)


def code(text: str) -> Markup:
    """A value as the machine wrote it."""
    return tag("code", one_line(text))


def fact(value: Fact[str]) -> Markup:
    """A value, or why it is absent."""
    return code(value.value) if isinstance(value, Known) else tag("span", f"– ({value.reason})", class_="soft")


def card(cause: summary.Cause, rule: Rule | None) -> Markup:
    """A cause in full, with what follows from it folded."""
    finding = cause.finding
    state = summary.state_of(finding)
    parts = [tag("h3", badge(state), " ", one_line(cause.heading))]
    if finding.detail and finding.title:
        parts.append(tag("p", finding.detail))
    if finding.evidence:
        seen = (
            tag("li", code(e.value), tag("span", f" ({one_line(e.source)})" if e.source else "", class_="soft"))
            for e in finding.evidence
        )
        parts.append(tag("div", tag("strong", "Seen"), tag("ul", *seen)))
    parts += [fix_part(f, f.proof) for f in finding.fixes]
    if cause.consequences:
        parts.append(folded(f"What follows from it ({len(cause.consequences)})", short_list(cause.consequences)))
    parts.append(tag("p", f"Owner: {OWNERS[finding.owner]}.", class_="soft small"))
    if rule:
        why = join((tag("p", rule.explain), tag("p", "Source: ", rule.source, class_="small")))
        parts.append(folded(f"What {finding.code} looks at and why", why))
    return tag("article", *parts, class_=f"card {state}-edge")


def fix_part(fix: Fix | LogFix, proof: Proof | None = None) -> Markup:
    """What to do, the command, what its trial proved, and how to see that it worked."""
    parts = [tag("p", tag("strong", "Fix: "), fix.text)]
    if fix.command:
        parts.append(tag("pre", tag("code", fix.command)))
    if proof:
        parts.append(tag("p", tag("em", proof.text)))
    if fix.verify:
        parts += [tag("p", "Verify:"), tag("pre", tag("code", fix.verify))]
    return tag("div", *parts)


def short_list(findings: Iterable[Finding]) -> Markup:
    """A line a finding."""
    items = [tag("li", badge(summary.state_of(f)), f" {one_line(heading(f))}", _detail(f)) for f in findings]
    return tag("ul", *items, style="list-style: none; padding: 0") if items else Markup("")


def _detail(finding: Finding) -> Markup:
    detail = finding.detail if finding.title else ""
    return tag("span", f": {one_line(detail)}", class_="soft") if detail else Markup("")


# ---------------------------------------------------------------- provoked states


Column = tuple[str, int | None]  # the cuDNN, by version or by path, and the device


def heat_map(results: Sequence[ScenarioResult]) -> Markup:
    """States down, cuDNN copies and devices across; each cell the status that decides, coloured by what it means."""
    by_version = [(r.scenario, r.cudnn_version or r.cudnn, r.device) for r in results]
    unique = len(set(by_version)) == len(by_version)  # else two copies of one version: tell them apart by path
    columns: list[Column] = [
        (r.cudnn_version if unique and r.cudnn_version else f"{r.cudnn_version} {short_path(r.cudnn)}", r.device)
        for r in results
    ]
    cells = {(r.scenario, column): r for r, column in zip(results, columns, strict=True)}
    across = list(dict.fromkeys(columns))
    from cudnn_doctor.scenarios import scenarios

    known = {name: state.summary for name, (_, state) in scenarios().items()}
    rows = [
        tag("tr", _state(scenario, known), *(_cell(cells.get((scenario, column))) for column in across))
        for scenario in dict.fromkeys(r.scenario for r in results)
    ]
    if not rows:
        return Markup("")
    head = tag("tr", tag("th", "State", scope="col"), *(tag("th", _head(c), scope="col") for c in across))
    caption = "What each state gave: the deciding status, and whether that is what this cuDNN is known to do"
    body = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *rows), class_="heat")
    return tag("div", body, class_="scroll", tabindex=0, role="region", aria_label="Provoked states")


def concluded(told: Iterable[tuple[str, Sequence[str]]]) -> Iterator[Markup]:
    """Sentences with their lists; the first one of a machine, what can give the error, is open."""
    for sentence, items in told:
        if not items:
            yield tag("p", one_line(sentence))
            continue
        body = tag("ul", *(tag("li", one_line(item)) for item in items))
        yield tag("details", tag("summary", one_line(sentence)), body, open="" if sentence.startswith("On ") else None)


def _state(scenario: str, known: Mapping[str, str]) -> Markup:
    summary_ = known.get(scenario.partition("#")[0], "")
    return tag("th", scenario, *((tag("span", summary_, class_="sub"),) if summary_ else ()), scope="row")


def _head(column: Column) -> str:
    cudnn, device = column
    return f"cuDNN {cudnn.strip()}, {'no device' if device is None else f'device {device}'}"


def _cell(result: ScenarioResult | None) -> Markup:
    if result is None:
        return tag("td", "–")
    state, text, where = _meaning(result)
    words = {
        "as-expected": "as expected",
        "unknown-version": "no expectation for this version",
        "not-reached": "not reached",
    }
    judged = words.get(result.verdict, result.verdict)
    if result.verdict == "differs" and result.expected:
        judged += f"; expected: {result.expected}"
    lines = (tag("span", line, class_="sub") for line in (where, judged) if line)
    return tag("td", tag("strong", text), *lines, class_=state)


def _meaning(result: ScenarioResult) -> tuple[summary.State, str, str]:
    """Colour, status and call: success, the stream error itself (7 or 2007), another status, a death."""
    if result.skipped:
        return "skipped", "skipped", result.skipped
    if result.fate.kind != "completed":
        return "crashed", category_facts.fate_text(result), result.fate.last_label
    failed = [s for s in result.steps if s.status]
    set_stream = [s for s in failed if s.call.startswith("cudnnSetStream")]
    if not failed:
        return "ok", "0 success", ""
    decisive = (set_stream or failed)[-1]
    where = f"{decisive.call}, {decisive.label}" if decisive.label not in ("", decisive.call) else decisive.call
    name = decisive.name.removeprefix("CUDNN_STATUS_")
    return ("error" if set_stream and decisive.status in (7, 2007) else "warning"), f"{decisive.status} {name}", where


# ---------------------------------------------------------------- the log


def explanation_part(explanation: Explanation) -> Markup:
    """What the log says: causes with their decisive lines, what to ask, what it states."""
    facts = [
        (name.replace("_", " "), code(value))
        for name in explanation.facts.__struct_fields__
        if (value := getattr(explanation.facts, name))
    ]
    questions = [tag("li", q.text) for q in explanation.questions]
    remarks = [tag("p", text, class_="small soft") for text in (*explanation.doubts, *explanation.notes)]
    return join((
        tag("p", tag("strong", f"{VERDICTS[explanation.verdict]}: "), explanation.summary),
        *(_cause(c) for c in explanation.causes),
        *((tag("h3", "What to ask, the most decisive first"), tag("ol", *questions)) if questions else ()),
        table("What the log states", ("Fact", "Value"), facts),
        *remarks,
    ))  # fmt: skip


def _cause(cause: Cause) -> Markup:
    state: dict[str, summary.State] = {"confirmed": "error", "likely": "warning", "possible": "unknown"}
    lines = [
        tag("li", tag("strong", f"{e.file + ', ' if e.file else ''}line {e.line}: "), code(e.text),
            tag("span", f" {e.because}" if e.because else "", class_="soft"))
        for e in cause.evidence
    ]  # fmt: skip
    badge_ = tag("span", cause.confidence, class_=f"badge {state[cause.confidence]}")
    role = {
        "primary": "The cuDNN line is the fault itself.",
        "consequence": "The cuDNN line is the messenger of this earlier fault.",
        "noise": "The cuDNN line has no effect.",
    }[cause.role]
    parts = [tag("h3", badge_, f" {cause.title} ", tag("code", cause.cause)), tag("p", role)]
    if lines:
        parts.append(tag("div", tag("strong", "Decisive lines"), tag("ul", *lines)))
    parts += [fix_part(f) for f in cause.fixes]
    if cause.avoid:
        parts.append(tag("p", tag("strong", "Not worth trying: "), cause.avoid))
    return tag("article", *parts, class_=f"card {state[cause.confidence]}-edge")
