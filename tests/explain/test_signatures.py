"""Every signature and statement matches its own examples and none of its near misses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cudnn_doctor.explain.document import Document, build
from cudnn_doctor.explain.knowledge import FILE, compile_all
from cudnn_doctor.explain.scan import Raw
from cudnn_doctor.explain.signatures import Signature, find, form
from cudnn_doctor.knowledge.load import knowledge
from tests.explain.regenerate import text

ENTRIES: list[dict[str, Any]] = [*knowledge("signatures"), *({"kind": "says", **s} for s in knowledge("statements"))]
KINDS = {"cudnn", "fault", "cuda", "memory", "version", "loader", "arch", "driver", "process", "symptom", "noise"}
KINDS |= {"other", "good", "fact", "says"}


def document(*lines: str) -> Document:
    return build([("test", [Raw(i + 1, line.encode()) for i, line in enumerate(lines)])])


def matches(entry: dict[str, Any], line: str) -> bool:
    anchor, also = tuple(entry["anchor"]), entry.get("also", ())
    name, kind, pattern = entry["id"], entry["kind"], entry["pattern"]
    signature = Signature(name, kind, anchor, form(pattern), pattern, "", "", True, also)
    return bool(find(document(*line.split("\n")), [signature]))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e["id"])
def test_examples_match_and_near_misses_do_not(entry: dict[str, Any]) -> None:
    assert entry["examples"]
    assert entry["not"]
    assert entry["source"]
    assert entry["kind"] in KINDS
    for example in entry["examples"]:
        assert matches(entry, example), example
    for near_miss in entry["not"]:
        assert not matches(entry, near_miss), near_miss
    for anchor in entry["anchor"]:
        assert anchor == anchor.lower()


def test_ids_are_unique() -> None:
    ids = [e["id"] for e in ENTRIES]
    assert len(ids) == len(set(ids))


def test_the_compiled_file_is_current() -> None:
    """python -m tests.explain.regenerate writes it."""
    assert Path(FILE).read_text(encoding="utf-8") == text()
    assert compile_all()["signatures"]
