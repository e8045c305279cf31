"""Names of nodes taken out of what was collected: `node-01` for each, in natural order, the same everywhere in the
picture. Groups were made before, from the real texts, so that they survive it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cudnn_doctor.merge.collecting import Row
from cudnn_doctor.merge.nodeset import natural


def renamed(rows: Iterable[Row], expected: Sequence[str]) -> tuple[list[Row], tuple[str, ...]]:
    """Rows and expected nodes under their new names. Where a report came from is left out: its path holds the name."""
    rows = list(rows)
    names = sorted({*(r.node for r in rows if r.node), *expected}, key=natural)
    width = len(str(len(names)))
    new = {name: f"node-{i:0{width}}" for i, name in enumerate(names, 1)}
    return [_renamed(r, new) for r in rows], tuple(new[name] for name in expected)


def _renamed(row: Row, new: dict[str, str]) -> Row:
    if not row.node:
        return row._replace(source="")
    name = new[row.node]

    def without(text: str) -> str:
        for old in (row.node, row.node.partition(".")[0]):
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(old)}(?![A-Za-z0-9])", name, text)
        return text

    problems = tuple((key, without(subject), counts) for key, subject, counts in row.problems)
    return row._replace(node=name, source="", reason=without(row.reason), problems=problems)
