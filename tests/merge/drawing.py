"""A picture from documents, as `merge` draws it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from cudnn_doctor.merge.collecting import Arrival, Collector
from cudnn_doctor.merge.picture import Wanted, draw
from cudnn_doctor.model.fleet import Fleet, Section
from cudnn_doctor.model.report import Report, SnapshotFile


def no_snapshot(snapshot: SnapshotFile) -> Report:
    raise AssertionError("no snapshot is among these reports")


def picture(documents: Iterable[tuple[str, Any]], **wanted: Any) -> Fleet:
    """Of pairs of a name and a document, its bytes, or an arrival."""
    collector = Collector(no_snapshot)
    for name, document in documents:
        if isinstance(document, Arrival):
            collector.add(document)
        else:
            data = document if isinstance(document, bytes) else json.dumps(document, indent=2).encode()
            collector.add(Arrival(name, f"{name}.json", data))
    return draw(collector, Wanted(**wanted))


def section(fleet: Fleet, name: str) -> Section:
    return next(s for s in fleet.sections if s.name == name)


def differing(fleet: Fleet) -> dict[str, list[str]]:
    """For each node that differs somewhere the sections."""
    found: dict[str, list[str]] = {}
    for node in fleet.nodes:
        for part, group in zip(fleet.sections, node.groups, strict=False):
            if group >= 0 and part.groups[group].role == "different":
                found.setdefault(node.name, []).append(part.name)
    return found
