"""The picture of a fleet: text for people, and the choice of form."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from cudnn_doctor.render import fleet_summary as f
from cudnn_doctor.render.clean import cells, one_line
from cudnn_doctor.render.lines import Line, finish
from cudnn_doctor.render.text import VERDICTS, Layout

if TYPE_CHECKING:
    from cudnn_doctor.model.fleet import Fleet, Section, SharedProblem

FleetFormat = Literal["text", "json", "markdown", "html", "junit", "prometheus"]
_DOCUMENTS: dict[str, str] = {
    "json": "json_:render_json",
    "markdown": "fleet_documents:render_markdown",
    "html": "fleet_html:render_html",
    "junit": "fleet_documents:render_junit",
    "prometheus": "fleet_documents:render_prometheus",
}


def render_fleet(
    fleet: Fleet, fmt: FleetFormat, *, width: int = 80, color: bool = False, encoding: str = "utf-8"
) -> str:
    """The picture in the form `fmt`; the other options matter to text alone."""
    if fmt == "text":
        return finish(FleetLayout(width, encoding).fleet(fleet), color=color, encoding=encoding)
    module, name = _DOCUMENTS[fmt].split(":")
    document: str = getattr(import_module(f"cudnn_doctor.render.{module}"), name)(fleet)
    return document


class FleetLayout(Layout):
    """Lines for people: the verdict, the nodes, what differs, what is wrong, once for all nodes that have it."""

    def fleet(self, fleet: Fleet) -> Iterator[Line]:
        style, word = VERDICTS[fleet.verdict]
        yield from self.block(one_line(fleet.reason), first=((style, f"{word}: "),))
        tool = f"{fleet.tool.name} {fleet.tool.version}".rstrip()
        yield from self.block(
            f"{tool}: {len(fleet.nodes)} nodes, compared with {one_line(f.compared_with(fleet))}", style="bold"
        )
        yield from ((), (("bold", f"Nodes ({len(fleet.nodes)})"),))
        for lot in f.lots(fleet):
            words = f"{lot.standing.words}: {lot.standing.reason}" if lot.standing.reason else lot.standing.words
            number = f" ({lot.number})" if lot.number > 1 else ""
            first: Line = (self.sign(lot.standing.state), ("", " "))
            yield from self.block(one_line(f"{lot.nodes}{number}: {words}"), first=first)
        for section in f.apart(fleet):
            yield ()
            yield from self._section(section)
        rest = f.the_rest(fleet)
        if rest:
            yield ()
            yield from self.block(rest, style="dim")
        if fleet.problems:
            yield from ((), (("bold", f"Problems ({len(fleet.problems)})"),))
            for problem in fleet.problems:
                yield ()
                yield from self._problem(problem, fleet)
        if fleet.notes:
            yield ()
            for note in fleet.notes:
                yield from self.block(one_line(note), first=(("dim", "Note: "),))
        yield ()
        tally = ", ".join(f"{n} {state}" for state, n in f.counts(fleet).items() if n)
        yield from self.block(f"(exit code {fleet.exit_code}): {tally}.", first=((style, f"{word} "),))

    def _section(self, section: Section) -> Iterator[Line]:
        yield from self.block(one_line(f.headline(section)), style="bold")
        for group in f.shown(section):
            yield from self.block(one_line(f.who(group)), indent=2)
            for leaf, text in f.differences(group):
                yield from self._difference(f"{one_line(leaf)}:", one_line(text))
        if f.hidden(section):
            yield from self.block(f.hidden(section), indent=2, style="dim")

    def _difference(self, leaf: str, text: str) -> Iterator[Line]:
        """In one line where that fits, else the value below its leaf."""
        if 4 + cells(leaf) + 1 + cells(text) <= self.width:
            yield (("", f"    {leaf} {text}"),)
        else:
            yield (("", f"    {leaf}"),)
            yield from self.block(text, indent=8)

    def _problem(self, problem: SharedProblem, fleet: Fleet) -> Iterator[Line]:
        sign = self.sign(problem.severity)
        indent = cells(sign[1]) + 1
        yield from self.block(one_line(f.problem_heading(problem)), first=(sign, ("", " ")), style="bold")
        yield from self.block(one_line(f.on(problem, fleet)), indent=indent)
        if problem.detail:
            yield from self.block(problem.detail, indent=indent)
        for fix in problem.fixes:
            yield from self._fix(fix, indent)
