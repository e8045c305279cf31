"""The picture of a fleet as one HTML file: a matrix of nodes by section. Nodes that stand alike share a row, so that a
thousand nodes are as many rows as there are kinds of them; every node by itself is in a part to open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cudnn_doctor.merge.nodeset import fold
from cudnn_doctor.model.fleet import Fleet, Group, Node, Section, SharedProblem
from cudnn_doctor.model.report import Verdict
from cudnn_doctor.render import fleet_summary as f
from cudnn_doctor.render.clean import one_line
from cudnn_doctor.render.html_elements import Markup, join, tag
from cudnn_doctor.render.html_page import page
from cudnn_doctor.render.html_parts import SIGNS, badge, code, fix_part, section, table
from cudnn_doctor.render.summary import State

MOST_ROWS = 2_000  # of the matrix
WORDS: dict[Verdict, tuple[State, str]] = {
    "ok": ("ok", "✓ Nothing wrong"),
    "problem": ("error", "✗ Problem"),
    "no-verdict": ("unknown", "? No verdict"),
}
STYLE = """
.matrix { width: auto; } .matrix th, .matrix td { padding: .25rem .5rem; }
.matrix thead th { vertical-align: bottom; font-size: .8rem; max-width: 7rem; position: sticky; top: 0; }
.matrix th[scope=row] { min-width: 9rem; max-width: 22rem; overflow-wrap: anywhere; }
.matrix .cell { text-align: center; white-space: nowrap; font-weight: 600; }
.matrix .reason { min-width: 15rem; max-width: 28rem; overflow-wrap: anywhere; }
.tall { max-height: 80vh; overflow: auto; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; list-style: none; padding: 0; }
.tiles li { border: 1px solid var(--line); border-radius: 10px; padding: .4rem 1rem; background: var(--card); }
.tiles strong { font-size: 1.5rem; display: block; line-height: 1.2; }
.nodes { columns: 12rem; } .nodes li { break-inside: avoid; }
@media (min-width: 64rem) { main { max-width: 88rem; } }
@media print { .tall { max-height: none; } }
"""


def render_html(fleet: Fleet) -> str:
    """The page, in UTF-8."""
    return page(f"{fleet.tool.name}: {one_line(fleet.reason)}", _parts(fleet), STYLE)


def _parts(fleet: Fleet) -> Iterable[Markup]:
    yield _banner(fleet)
    yield section("Nodes by section", _matrix(fleet))
    yield section("What differs", *(_section(s) for s in f.apart(fleet)), _rest(fleet))
    yield section(f"Problems ({len(fleet.problems)})", *(_problem(p, fleet) for p in fleet.problems))
    yield section("Every node", _every_node(fleet))
    made = f"Written by {fleet.tool.name} {fleet.tool.version}; compared with {one_line(f.compared_with(fleet))}."
    yield tag("p", made, class_="soft small")


def _banner(fleet: Fleet) -> Markup:
    state, word = WORDS[fleet.verdict]
    tiles = (
        tag("li", tag("strong", str(number)), f.HOW[name][1])
        for name, number in f.counts(fleet).items()
        if number
    )  # fmt: skip
    return join((
        tag("h1", f"{fleet.tool.name}: {len(fleet.nodes)} nodes"),
        tag(
            "div",
            tag("p", tag("span", word, class_=f"badge {state}", style="font-size: inherit"), class_="word"),
            tag("p", one_line(fleet.reason), class_="reason"),
            tag("p", f"Exit code {fleet.exit_code}; {fleet.quorum} nodes with a verdict are needed.",
                class_="soft small"),
            *(tag("p", tag("strong", "Note: "), one_line(note), class_="small") for note in fleet.notes),
            class_=f"banner {state}-edge",
        ),
        tag("ul", *tiles, class_="tiles"),
    ))  # fmt: skip


# ---------------------------------------------------------------- the matrix


Kind = tuple[f.Standing, tuple[int, ...]]


def _matrix(fleet: Fleet) -> Markup:
    kinds: dict[Kind, list[str]] = {}
    for node in fleet.nodes:
        kinds.setdefault((f.standing(fleet, node), node.groups), []).append(node.name)
    order: tuple[State, ...] = ("error", "crashed", "unknown", "warning", "ok")
    rows = sorted(kinds.items(), key=lambda item: (order.index(item[0][0].state), -len(item[1])))
    head = tag(
        "tr", *(tag("th", h, scope="col") for h in ("Nodes", "State", *(s.title for s in fleet.sections), "Why"))
    )
    body = (_row(fleet, kind, names) for kind, names in rows[:MOST_ROWS])
    hidden = sum(len(names) for _, names in rows[MOST_ROWS:])
    caption = "Nodes that stand alike share a row. ✓ is the reference; a number is another group, explained below."
    if hidden:
        caption += f" {hidden} more nodes, each of its own kind, are in the list of every node only."
    return tag(
        "div",
        tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body), class_="matrix"),
        class_="scroll tall", tabindex=0, role="region", aria_label="Nodes by section",
    )  # fmt: skip


def _row(fleet: Fleet, kind: Kind, names: Sequence[str]) -> Markup:
    how, groups = kind
    number = tag("span", f" ({len(names)})", class_="soft") if len(names) > 1 else ""
    cells = [_cell(s, g) for s, g in zip(fleet.sections, groups, strict=False)]
    cells += [tag("td", "–", class_="cell skipped")] * (len(fleet.sections) - len(cells))
    return tag(
        "tr",
        tag("th", one_line(fold(names)), number, scope="row"),
        tag("td", _badge(how)),
        *cells,
        tag("td", one_line(f"{how.words}: {how.reason}" if how.reason else how.words), class_="reason"),
    )


def _badge(how: f.Standing) -> Markup:
    word = "differs" if how.state == "warning" else how.words.partition(",")[0]
    return tag("span", f"{SIGNS[how.state].split()[0]} {word}", class_=f"badge {how.state}")


def _cell(part: Section, group: int) -> Markup:
    if group < 0:
        return tag("td", "–", class_="cell skipped")
    role = part.groups[group].role
    if role == "reference":
        return tag("td", "✓", class_="cell ok")
    state = "warning" if role == "different" else "note"
    return tag("td", tag("a", _number(part, group), href=f"#{part.name}-{group}"), class_=f"cell {state}")


def _number(part: Section, group: int) -> str:
    """The name of a group: the reference is none of the numbered ones."""
    first = 0 if part.groups[0].role == "reference" else 1
    return str(group + first)


# ---------------------------------------------------------------- what differs, what is wrong


def _section(part: Section) -> Markup:
    places = {id(group): i for i, group in enumerate(part.groups)}
    cards = [_group(part, group, places[id(group)]) for group in f.shown(part)]
    hidden = f.hidden(part)
    return join((
        tag("h3", one_line(f.headline(part))),
        *cards,
        tag("p", hidden, class_="soft") if hidden else "",
    ))  # fmt: skip


def _group(part: Section, group: Group, place: int) -> Markup:
    state: State = "warning" if group.role == "different" else "note"
    title = f"{_number(part, place)}: {one_line(f.who(group))}"
    rows = [
        (code(d.leaf), code(d.value), *((code(d.expected),) if d.expected else ()))
        for d in group.differences
    ]  # fmt: skip
    head = ("Leaf", "Here", "Reference")[: len(rows[0]) if rows else 2]
    more = tag("p", f"{group.more} more differences", class_="soft small") if group.more else ""
    shown = (
        table(f"{part.title}, group {_number(part, place)}: where it differs", head, rows, class_="wide")
        if rows
        else tag("p", "nothing stands out")
    )
    return tag("article", tag("h4", title), shown, more, class_=f"card {state}-edge", id=f"{part.name}-{place}")


def _rest(fleet: Fleet) -> Markup:
    rest = f.the_rest(fleet)
    return tag("p", rest, class_="soft") if rest else Markup("")


def _problem(problem: SharedProblem, fleet: Fleet) -> Markup:
    return tag(
        "article",
        tag("h3", badge(problem.severity), " ", one_line(f.problem_heading(problem))),
        tag("p", one_line(f.on(problem, fleet))),
        *((tag("p", problem.detail),) if problem.detail else ()),
        *(fix_part(fix) for fix in problem.fixes),
        class_=f"card {problem.severity}-edge",
    )


def _every_node(fleet: Fleet) -> Markup:
    rows = ((one_line(n.name), *_about(fleet, n)) for n in fleet.nodes)
    body = table("Each by itself", ("Node", "State", "Why", "Taken at", "Tool"), rows)
    return tag("details", tag("summary", f"All {len(fleet.nodes)} nodes"), body)


def _about(fleet: Fleet, node: Node) -> Iterable[str]:
    how = f.standing(fleet, node)
    yield _badge(how)
    yield one_line(f"{how.words}: {how.reason}" if how.reason else how.words)
    yield node.taken_at or "–"
    yield node.tool or "–"
