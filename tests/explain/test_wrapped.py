"""An error that a terminal or a mail program broke anywhere is still found, and prose is not glued into one."""

from __future__ import annotations

from typing import Any

import pytest

from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.logs.clean import clean
from cudnn_doctor.logs.document import WRAPPED, build, is_log
from cudnn_doctor.logs.observe import status_of
from cudnn_doctor.logs.patterns import load
from cudnn_doctor.logs.scan import Raw
from cudnn_doctor.logs.signatures import Event, Signature, find, form
from cudnn_doctor.logs.values import dotted

ENTRIES: list[dict[str, Any]] = knowledge("signatures")
# A sentence before the example, so that the break comes where lines are long enough to be broken.
LEAD = "2021-03-04 05:06:07.890123: and so it went on until the very end when "


def events(entry: dict[str, Any], *lines: str) -> list[Event]:
    pattern = entry["pattern"]
    signature = Signature(
        id=entry["id"],
        kind=entry["kind"],
        anchors=entry["anchor"],
        form=form(pattern),
        pattern=pattern,
        also=entry.get("also", []),
    )
    return find(build([("test", [Raw(i + 1, n.encode()) for i, n in enumerate(lines)])]), [signature])


def said(event: Event) -> tuple[str, str, str]:
    return status_of(event, load().statuses), dotted(event.groups.get("run", "")), dotted(event.groups.get("built", ""))


def found(entry: dict[str, Any], *lines: str) -> bool:
    return bool(events(entry, *lines))


@pytest.mark.parametrize("mark", ["", "> "])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e["id"])
def test_break_at_any_place(entry: dict[str, Any], mark: str) -> None:
    missed = []
    for example in (e for e in entry["examples"] if "\n" not in e):
        for cut in range(WRAPPED, len(example)):
            if clean(example[cut:]) != [(example[cut:].strip(), "")]:
                continue  # the rest looks like what a launcher puts before a line: "8: cannot open"
            if not found(entry, mark + example[:cut], mark + example[cut:]):
                missed.append(f"{example[max(0, cut - 16) : cut]}|{example[cut : cut + 16]}")
    assert missed == []


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e["kind"] in ("cudnn", "version")], ids=lambda e: e["id"])
def test_break_loses_no_status_and_no_version(entry: dict[str, Any]) -> None:
    lost = []
    for example in (LEAD + e for e in entry["examples"] if "\n" not in e):
        whole = said(events(entry, example)[0])
        for cut in range(WRAPPED, len(example)):
            if is_log(example[cut:]) or clean(example[cut:]) != [(example[cut:].strip(), "")]:
                continue  # the rest looks like a line of its own: "meError: ..."
            if whole not in [said(e) for e in events(entry, example[:cut], example[cut:])]:
                lost.append(f"{example[max(0, cut - 16) : cut]}|{example[cut : cut + 16]}")
    assert lost == []


def test_two_sentences_are_not_one_word() -> None:
    entry = next(e for e in ENTRIES if e["id"] == "out-of-memory")
    assert not found(entry, f"{LEAD} it was out of", "- memory is fine")
    assert found(entry, f"{LEAD} it was out of", "memory")
    assert found(entry, f"{LEAD} CUDA_ERROR_OUT_OF_MEM", "ORY: out of mem")
