"""Every signature and statement matches its own examples and none of its near misses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.logs import patterns as knowledge_module
from cudnn_doctor.logs.document import Document, build
from cudnn_doctor.logs.patterns import compile_all, load
from cudnn_doctor.logs.scan import Raw
from cudnn_doctor.logs.signatures import Signature, find, form

ENTRIES: list[dict[str, Any]] = [*knowledge("signatures"), *({"kind": "says", **s} for s in knowledge("statements"))]
KINDS = {"cudnn", "fault", "cuda", "memory", "version", "loader", "arch", "driver", "process", "symptom", "noise"}
KINDS |= {"other", "good", "fact", "says"}


def document(*lines: str) -> Document:
    return build([("test", [Raw(i + 1, line.encode()) for i, line in enumerate(lines)])])


def matches(entry: dict[str, Any], line: str) -> bool:
    pattern = entry["pattern"]
    signature = Signature(
        id=entry["id"],
        kind=entry["kind"],
        anchors=entry["anchor"],
        form=form(pattern),
        pattern=pattern,
        also=entry.get("also", []),
        success=entry.get("success", False),
    )
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


def test_the_file_of_the_build_is_used_while_it_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge_module, "FILE", str(tmp_path / "explain.json"))
    knowledge_module.write()
    assert (tmp_path / "explain.json").read_bytes() == compile_all()
    made = json.loads(compile_all())
    marked = {**made, "statuses": {"7": "from the file"}}
    (tmp_path / "explain.json").write_text(json.dumps(marked), encoding="utf-8")
    assert load.__wrapped__().statuses == {"7": "from the file"}
    (tmp_path / "explain.json").write_text(json.dumps({**marked, "made_of": 0}), encoding="utf-8")
    assert load.__wrapped__().statuses == made["statuses"]
    (tmp_path / "explain.json").unlink()
    assert load.__wrapped__().statuses == made["statuses"]


# Wordings whose place is not pinned yet: a file named without its release, or reports of people. No new ones.
UNPLACED = {
    *("set-stream-old", "enqueue", "dnn-status", "dnn-call", "conv-algo", "conv-check", "no-dnn", "dnn-init"),
    *(
        "torch-no-engine",
        "torch-frontend",
        "ort-provider",
        "check-status",
        "paddle-error",
        "opencv-error",
        "trt-create",
    ),
    *("trt-create", "jax-found", "paddle-refuses", "status-version-mismatch", "build-without-cudnn"),
    *("part-undefined-symbol", "tf-jit", "arch-mismatch", "other-device", "retrying-probe", "rocm", "metal"),
    *("free-at-start", "some-libraries"),
}


@pytest.mark.parametrize("entry", knowledge("signatures"), ids=lambda e: e["id"])
def test_a_source_leads_to_a_page_a_wheel_or_a_file_of_the_repository(entry: dict[str, Any]) -> None:
    root = Path(__file__).parents[2]
    named = re.findall(r"(?:tests|cudnn_doctor)/[\w./-]*\w", re.sub(r"https://\S+", "", entry["source"]))
    assert all((root / path).exists() for path in named), entry["source"]
    leads = bool(named) or re.search(r"https://|PyPI", entry["source"]) is not None
    assert leads != (entry["id"] in UNPLACED), entry["source"]
