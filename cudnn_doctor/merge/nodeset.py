"""Node names in folded form: `n[1-3,5]`. ClusterShell's NodeSet does it where it is installed (it knows groups such as
`@gpu` and folds several numbers in a name); without it the last number of a name is folded and brackets are expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any

from cudnn_doctor.model.errors import UsageError

MOST = 100_000  # nodes that one expression may stand for
_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL)
_PLAIN = re.compile(r"[\w.+:-]+(?:\[[\d,-]+\][\w.+:-]*)*")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@lru_cache(maxsize=MOST)
def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which n2 comes before n10."""
    return tuple((0, int(part), part) if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name))


def fold(names: Iterable[str]) -> str:
    """The names, each once, as one expression."""
    return _folded(tuple(sorted(set(names), key=natural)))


@lru_cache(maxsize=64)  # of one picture most sections have the same nodes
def _folded(unique: tuple[str, ...]) -> str:
    clustershell = _clustershell()
    if clustershell and all(_PLAIN.fullmatch(n) and "[" not in n for n in unique):
        return str(clustershell.NodeSet.fromlist(unique, resolver=clustershell.RESOLVER_NOGROUP))
    families: dict[tuple[str, str], list[str]] = {}
    for name in unique:
        numbered = _NUMBERED.fullmatch(name)
        key, number = ((numbered[1], numbered[3]), numbered[2]) if numbered else ((name, ""), "")
        families.setdefault(key, []).append(number)
    return ",".join(_family(*key, numbers) for key, numbers in families.items())


def _family(head: str, tail: str, numbers: list[str]) -> str:
    if numbers == [""]:
        return head + tail
    if len(numbers) == 1:
        return f"{head}{numbers[0]}{tail}"
    runs: list[list[str]] = []
    for number in numbers:
        follows = runs and int(runs[-1][-1]) + 1 == int(number) and _same_padding(runs[-1][-1], number)
        if follows:
            runs[-1].append(number)
        else:
            runs.append([number])
    inner = ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"{head}[{inner}]{tail}"


def _same_padding(before: str, after: str) -> bool:
    """Whether a range from one to the other is written back the same: 09-10, 9-10, and not 9-010."""
    return f"{int(before) + 1:0{len(before)}}" == after


def expand(expression: str) -> tuple[str, ...]:
    """The names that a folded expression stands for, in natural order, each once.

    Raises:
        UsageError: it cannot be read, or stands for more than `MOST` names.
    """
    clustershell = _clustershell()
    try:
        _bounded(expression)
        names = _by_clustershell(clustershell, expression) if clustershell else list(_expanded(expression))
    except ValueError as e:
        raise UsageError(f"{expression!r} is not a set of nodes such as n[1-3,5]: {e}.") from e
    return tuple(sorted(dict.fromkeys(names), key=natural))


def _bounded(expression: str) -> None:
    """Refuses ranges that would fill the memory: ClusterShell makes each of their numbers before it counts them."""
    for word in re.findall(r"(?:[^\s,\[\]]*\[[^\]]*\]?)+", expression):
        total = 1
        for inner in re.findall(r"\[([^\]]*)", word):
            ranges = (_RANGE.match(item.strip()) for item in inner.split(","))
            total *= max(1, sum(abs(int(r[2] or r[1]) - int(r[1])) + 1 for r in ranges if r))
        if total > MOST:
            raise ValueError(f"{word} stands for more than {MOST} nodes")


def _by_clustershell(clustershell: Any, expression: str) -> list[str]:
    try:
        nodes = clustershell.NodeSet(expression)
    except clustershell.NodeSetException as e:
        raise ValueError(str(e)) from e
    return list(map(str, nodes))


def _expanded(expression: str) -> Iterator[str]:
    for part in filter(None, re.split(r"[\s,]+(?![^\[]*\])", expression.strip())):
        if part.startswith("@"):
            raise ValueError(f"{part} is a group of ClusterShell, which is not installed here")
        if not _PLAIN.fullmatch(part):
            raise ValueError(f"{part!r} has an open bracket or a character that no name has")
        pieces = [list(_numbers(p[1:-1])) if p.startswith("[") else [p] for p in re.split(r"(\[[^\]]*\])", part)]
        yield from map("".join, product(*pieces))


def _numbers(inner: str) -> Iterator[str]:
    for item in inner.split(","):
        bounds = _RANGE.fullmatch(item)
        if not bounds:
            raise ValueError(f"[{inner}] is not a list of numbers and ranges")
        first, last = int(bounds[1]), int(bounds[2] or bounds[1])
        if last < first:
            raise ValueError(f"{item} is empty")
        yield from (f"{n:0{len(bounds[1])}}" for n in range(first, last + 1))


def _clustershell() -> Any:
    try:
        from ClusterShell import NodeSet
    except ImportError:
        return None
    return NodeSet
