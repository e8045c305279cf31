"""The picture of a fleet as markdown, JUnit and Prometheus text."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.fleet import Fleet, Node
from cudnn_doctor.render import fleet_summary as f
from cudnn_doctor.render import markdown_parts as md
from cudnn_doctor.render.clean import disarmed, one_line, visible
from cudnn_doctor.render.html_elements import Markup, join, tag
from cudnn_doctor.render.summary import State

WORDS: dict[str, str] = {"ok": "OK", "problem": "Problem", "no-verdict": "No verdict"}
EMOJI: dict[State, str] = {"ok": "✅", "warning": "⚠️", "error": "❌", "unknown": "❔", "crashed": "❌"}


def render_markdown(fleet: Fleet) -> str:
    """For an issue or the page of a CI job."""
    return "\n\n".join(_markdown(fleet)) + "\n"


def _markdown(fleet: Fleet) -> Iterator[str]:
    yield f"## {WORDS[fleet.verdict]}: {md.text(fleet.reason)}"
    yield md.text(
        f"{fleet.tool.name} {fleet.tool.version}: {len(fleet.nodes)} nodes, compared with {f.compared_with(fleet)}; "
        f"exit code {fleet.exit_code}"
    )
    rows = (
        (md.code(lot.nodes), str(lot.number), f"{EMOJI[lot.standing.state]} {md.text(lot.standing.words)}",
         md.text(lot.standing.reason))
        for lot in f.lots(fleet)
    )  # fmt: skip
    yield md.table(("nodes", "count", "state", "reason"), rows)
    for section in f.apart(fleet):
        yield f"### {md.text(f.headline(section))}"
        lines = [
            (md.code(group.nodes), md.code(leaf), md.text(text))
            for group in f.shown(section)
            for leaf, text in f.differences(group)
        ]
        yield md.table(("nodes", "what", "value"), lines)
        if f.hidden(section):
            yield md.text(f.hidden(section))
    if f.the_rest(fleet):
        yield md.text(f.the_rest(fleet))
    if fleet.problems:
        yield "### Problems"
    for problem in fleet.problems:
        yield f"**{md.text(f.problem_heading(problem))}**: {md.text(f.on(problem, fleet))}"
        if problem.detail:
            yield md.text(problem.detail)
        for fix in problem.fixes:
            yield f"Fix: {md.text(fix.text)}"
            if fix.command:
                yield md.block(fix.command, "sh")
    if fleet.notes:
        yield md.bullets(md.text(note) for note in fleet.notes)


# ---------------------------------------------------------------- JUnit


def render_junit(fleet: Fleet) -> str:
    """A test case a node, and a first one for the verdict: a bad node fails, one without a verdict is an error, one
    that differs fails where `--fail-on difference` was asked for."""
    suites = (
        _suite("Verdict", [_verdict(fleet)]),
        _suite("Nodes", [_case(fleet, node) for node in fleet.nodes]),
    )
    body = join(suites, "\n")
    root = tag("testsuites", Markup(f"\n{body}\n"), name="cudnn-doctor fleet", **_tally(body))
    return disarmed(f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n')


def _suite(name: str, cases: list[Markup]) -> Markup:
    body = join(cases, "\n")
    return tag("testsuite", Markup(f"\n{body}\n"), name=f"cudnn-doctor.fleet.{name}", **_tally(body))


def _tally(body: str) -> dict[str, int]:
    return {
        "tests": body.count("<testcase "),
        "failures": body.count("<failure "),
        "errors": body.count("<error "),
    }


def _verdict(fleet: Fleet) -> Markup:
    kind = {"ok": "", "problem": "failure", "no-verdict": "error"}[fleet.verdict]
    child = (tag(kind, message=one_line(fleet.reason), type=fleet.verdict),) if kind else ()
    return tag("testcase", *child, classname="cudnn-doctor.fleet.Verdict", name=f"exit code {fleet.exit_code}")


def _case(fleet: Fleet, node: Node) -> Markup:
    how = f.standing(fleet, node)
    message = one_line(f"{how.words}: {how.reason}" if how.reason else how.words)
    child: tuple[Markup, ...] = ()
    if node.state == "problem" or (how.state == "warning" and fleet.fail_on == "difference"):
        child = (tag("failure", message=message, type=node.state),)
    elif node.state != "ok":
        child = (tag("error", message=message, type=node.state),)
    elif how.state == "warning":
        child = (tag("system-out", message),)
    return tag("testcase", *child, classname="cudnn-doctor.fleet.Nodes", name=one_line(node.name))


# ---------------------------------------------------------------- Prometheus


def render_prometheus(fleet: Fleet) -> str:
    """Text exposition format 0.0.4, for the textfile collector of node_exporter or a push gateway."""
    return "".join(f"{line}\n" for line in _metrics(fleet))


def _metrics(fleet: Fleet) -> Iterator[str]:
    yield from _head("cudnn_doctor_fleet_exit_code", "Exit code of the picture: 0 well, 1 a problem, 2 no verdict.")
    yield f"cudnn_doctor_fleet_exit_code {fleet.exit_code}"
    yield from _head("cudnn_doctor_fleet_nodes", "Nodes in each state.")
    for state, number in f.counts(fleet).items():
        yield f"cudnn_doctor_fleet_nodes{_labels(state=state)} {number}"
    yield from _head("cudnn_doctor_fleet_nodes_needed", "Nodes with a verdict that are needed.")
    yield f"cudnn_doctor_fleet_nodes_needed {fleet.quorum}"
    yield from _head("cudnn_doctor_node_up", "1 where a node answered and is well, else 0.")
    for node in fleet.nodes:
        yield f"cudnn_doctor_node_up{_labels(node=node.name)} {int(node.state == 'ok')}"
    yield from _head("cudnn_doctor_node_differs", "1 for each section in which a node is not as the reference.")
    for node in fleet.nodes:
        for section, group in zip(fleet.sections, node.groups, strict=False):
            if group >= 0 and section.groups[group].role == "different":
                yield f"cudnn_doctor_node_differs{_labels(node=node.name, section=section.name)} 1"
    yield from _head("cudnn_doctor_fleet_groups", "Groups of nodes with the same content, by section.")
    for section in fleet.sections:
        yield f"cudnn_doctor_fleet_groups{_labels(section=section.name)} {len(section.groups)}"
    yield from _head("cudnn_doctor_fleet_problem_nodes", "Nodes that have a problem.")
    for problem, number in _by_code(fleet).items():
        code, severity, owner = problem
        yield f"cudnn_doctor_fleet_problem_nodes{_labels(code=code, severity=severity, owner=owner)} {number}"


def _by_code(fleet: Fleet) -> dict[tuple[str, str, str], int]:
    """Most nodes of one code: a series for each title would be one for each version that a title names."""
    found: dict[tuple[str, str, str], int] = {}
    for p in fleet.problems:
        key = (p.code, p.severity, p.owner)
        found[key] = max(found.get(key, 0), p.count)
    return dict(sorted(found.items()))


def _head(name: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"


def _labels(**labels: str) -> str:
    def quoted(text: str) -> str:
        return visible(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in labels.items()) + "}"
