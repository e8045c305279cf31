"""Which nodes are alike in one section, which group is the reference, and in which leaves the others differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from cudnn_doctor.merge.canonical import JOINT, NODE, Canonical
from cudnn_doctor.merge.nodeset import fold, natural
from cudnn_doctor.model.fleet import Difference, Group, Section

MOST_LEAVES = 50  # differences of one group that are listed
MOST_COMPARED = 20  # groups that are laid side by side where there is no majority
NOTHING = "not there"
Role = Literal["reference", "different", "one-of-several"]
State = Literal["alike", "different", "no-majority", "not-compared"]


class Place(NamedTuple):
    """Where a node's section stands in the store of contents; -1 for none."""

    node: str
    plain: int
    nameless: int = -1


def compare(
    name: str,
    title: str,
    places: Sequence[Place],
    content: Callable[[int], Canonical],
    expected: Canonical | None = None,
) -> tuple[Section, dict[str, int]]:
    """The section, and the index of its group for every node that can be compared. `places` are in natural order."""
    compared = [p for p in places if content(p.plain).compared]
    left_out = fold(p.node for p in places if not content(p.plain).compared)
    groups = _joined(_grouped(compared), content)
    if not groups:
        return Section(name=name, title=title, state="not-compared", not_compared=left_out), {}
    reference, at = _reference(groups, content, expected, len(compared))
    if reference is not None and at >= 0:
        groups = _reconciled(groups, content, reference, at)
    ordered = sorted(groups, key=lambda g: (g.key != at, -len(g.nodes), natural(g.nodes[0])))
    differing = _varying(ordered, content) if reference is None else frozenset()
    made: list[Group] = []
    for group in ordered:
        if reference is None:
            made.append(_shown(group, "one-of-several", _values(content(group.key), differing)))
        elif group.key == at:
            made.append(_shown(group, "reference", []))
        else:
            made.append(_shown(group, "different", list(differences(content(group.key), reference))))
    state: State = "no-majority" if reference is None else "different" if len(made) > 1 or at < 0 else "alike"
    indexes = {node: i for i, group in enumerate(ordered) for node in group.nodes}
    return Section(name=name, title=title, state=state, groups=tuple(made), not_compared=left_out), indexes


class _Group(NamedTuple):
    key: int  # of its content
    nodes: list[str]


def _shown(group: _Group, role: Role, found: list[Difference]) -> Group:
    return Group(
        nodes=fold(group.nodes),
        count=len(group.nodes),
        role=role,
        differences=tuple(found[:MOST_LEAVES]),
        more=max(0, len(found) - MOST_LEAVES),
    )


def _grouped(places: Iterable[Place]) -> list[_Group]:
    """By content, without the node's own name unless fewer nodes are alike then: a path with that name in it differs on
    every node. Where the plain text is shared by more, the name is just a word in it."""
    places = list(places)
    plain = Counter(p.plain for p in places)
    nameless = Counter(p.nameless for p in places if p.nameless >= 0)
    groups: dict[int, list[str]] = {}
    for p in places:
        key = p.nameless if p.nameless >= 0 and nameless[p.nameless] >= plain[p.plain] else p.plain
        groups.setdefault(key, []).append(p.node)
    return [_Group(key, nodes) for key, nodes in groups.items()]


def _joined(groups: list[_Group], content: Callable[[int], Canonical]) -> list[_Group]:
    """Groups that differ only in what one of them did not look at are one."""
    kept: list[_Group] = []
    for group in sorted(groups, key=lambda g: (len(content(g.key).unknown), -len(g.nodes), natural(g.nodes[0]))):
        mine = content(group.key)
        fitting = (
            (g for g in kept[:MOST_COMPARED] if not any(differences(mine, content(g.key)))) if mine.unknown else ()
        )
        home = next(iter(fitting), None)
        if home is None:
            kept.append(group)
        else:
            home.nodes[:] = sorted((*home.nodes, *group.nodes), key=natural)
    return kept


def _reference(
    groups: list[_Group], content: Callable[[int], Canonical], expected: Canonical | None, compared: int
) -> tuple[Canonical | None, int]:
    """What the others are held against, and the key of the group that has it (-1: none has). The majority is more than
    half of the nodes; less is no majority."""
    if expected is not None:
        fitting = (g.key for g in groups if not any(differences(content(g.key), expected)))
        return expected, next(fitting, -1)
    largest = max(groups, key=lambda g: len(g.nodes))
    if 2 * len(largest.nodes) > compared:
        return content(largest.key), largest.key
    return None, -1


def _reconciled(
    groups: list[_Group], content: Callable[[int], Canonical], reference: Canonical, at: int
) -> list[_Group]:
    """Takes a node to the reference that differs only because its own name is also a word that all nodes have: on a
    node called `opt` the folder /opt/cuda became /<node>/cuda."""
    home = next(g for g in groups if g.key == at)
    kept = [home]
    for group in groups:
        if group is home:
            continue
        node = group.nodes[0]
        found = differences(content(group.key), reference) if len(group.nodes) == 1 else iter(())
        if len(group.nodes) == 1 and all(_named(d.value, node) == _named(d.expected, node) for d in found):
            home.nodes[:] = sorted((*home.nodes, node), key=natural)
        else:
            kept.append(group)
    return kept


def _named(text: str, node: str) -> str:
    return text.replace(NODE, node)


def differences(one: Canonical, reference: Canonical) -> Iterator[Difference]:
    """The leaves in which `one` is not as the reference, in the reference's order; what either did not look at is no
    difference."""
    for leaf, expected in reference.leaves.items():
        value = one.leaves.get(leaf)
        if value != expected and not (value is None and _unknown(leaf, one)):
            yield Difference(leaf=leaf, value=NOTHING if value is None else value, expected=expected)
    for leaf, value in one.leaves.items():
        if leaf not in reference.leaves and not _unknown(leaf, reference):
            yield Difference(leaf=leaf, value=value, expected=NOTHING)


def _unknown(leaf: str, canonical: Canonical) -> bool:
    return any(leaf == begin or leaf.startswith(begin + JOINT) for begin in canonical.unknown)


def _varying(groups: Sequence[_Group], content: Callable[[int], Canonical]) -> frozenset[str]:
    """Leaves in which the largest groups are not all the same."""
    first, *others = (content(g.key) for g in groups[:MOST_COMPARED])
    return frozenset(d.leaf for other in others for d in differences(other, first))


def _values(canonical: Canonical, leaves: frozenset[str]) -> list[Difference]:
    here = [Difference(leaf=leaf, value=text) for leaf, text in canonical.leaves.items() if leaf in leaves]
    gone = sorted(leaf for leaf in leaves - canonical.leaves.keys() if not _unknown(leaf, canonical))
    return [*here, *(Difference(leaf=leaf, value=NOTHING) for leaf in gone)]
