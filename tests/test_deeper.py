"""What `check --deep` and `report --reproduce --engines` do where there is nothing to work on."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest

from cudnn_doctor.commands import live_tests
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Report
from cudnn_doctor.render import category_facts
from cudnn_doctor.render.html import render_html
from cudnn_doctor.render.markdown import render_markdown
from cudnn_doctor.rules.judge import judge
from cudnn_doctor.rules.sample import sample
from tests.reproduce.test_recordings import replay

HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}


def healthy() -> Report:
    case = sample()
    return judge(Examination(snapshot=case.snapshot, scenarios=case.scenarios), Options(), date(2026, 12, 1))


@pytest.mark.parametrize("what", ["states", "engines"])
def test_nothing_to_work_on_is_no_pass_and_loses_nothing(what: str) -> None:
    before = healthy()
    assert before.verdict == "ok"
    after = live_tests.add(before, Options(), HIDDEN, lambda _: None, **{what: True})
    assert (after.verdict, after.exit_code) == ("no-verdict", 2)
    assert after.findings == before.findings
    assert after.notes[-1].startswith(
        "Extra live tests were not run: no NVIDIA GPU that a program started here could use"
    )


def test_a_problem_stays_a_problem() -> None:
    before = msgspec.structs.replace(healthy(), verdict="problem", reason="CD306", exit_code=1)
    after = live_tests.add(before, Options(), HIDDEN, lambda _: None, engines=True)
    assert (after.verdict, after.reason) == ("problem", "CD306")


def test_a_recording_cannot_be_gone_into() -> None:
    with pytest.raises(UsageError, match="a recording holds no GPU"):
        live_tests.add(healthy(), Options(), {}, lambda _: None, engines=True, replayed=True)


def test_nothing_wanted_changes_nothing() -> None:
    before = healthy()
    assert live_tests.add(before, Options(), HIDDEN, lambda _: None) is before


def test_evidence_of_added_findings_leads_into_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The states of a real H200, added to another report: each pointer finds in the report what it found before."""
    recorded = replay("h200-cudnn-8.9.7")
    monkeypatch.setattr("cudnn_doctor.reproduce.command.reproduce_here", lambda *_: recorded)
    after = live_tests.add(healthy(), Options(), HIDDEN, lambda _: None, states=True)
    added = after.findings[len(healthy().findings) :]
    assert [f.code for f in added] == [f.code for f in recorded.findings]
    document, alone = msgspec.to_builtins(after), msgspec.to_builtins(recorded)
    pairs = [
        (a, b)
        for f, g in zip(added, recorded.findings, strict=True)
        for a, b in zip(f.evidence, g.evidence, strict=True)
    ]
    assert pairs
    for a, b in pairs:
        if b.pointer == "/scenarios":
            assert at(document, a.pointer)[1:] == at(alone, b.pointer)
        else:
            assert at(document, a.pointer) == at(alone, b.pointer)


def test_what_the_states_say_is_in_the_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = replay("h200-cudnn-8.9.7")
    monkeypatch.setattr("cudnn_doctor.reproduce.command.reproduce_here", lambda *_: recorded)
    after = live_tests.add(healthy(), Options(), HIDDEN, lambda _: None, states=True)
    (sentence, items), *others = category_facts.conclusions(after)
    assert sentence == "On NVIDIA H200 with cuDNN 8.9.7, status 7 from cudnnSetStream can come from:"
    assert (len(items), items[4]) == (11, "a handle that was destroyed")
    assert [lead for lead, _ in others][-2:] == [
        "Status 7 cannot come from:",
        "Not tried: sub-library-foreign, other-device, other-device-current.",
    ]
    lines = render_markdown(after).splitlines()
    assert lines[lines.index(sentence) + 6] == "- a handle that was destroyed"
    page = render_html(after)
    assert f'<details open=""><summary>{sentence}</summary><ul><li>a handle made in a non-primary context' in page
    assert "<details><summary>Status 7 cannot come from:</summary><ul><li>a primary context that was released" in page


def test_a_scenario_is_found_behind_those_of_the_report() -> None:
    assert live_tests._in_report("/scenarios/0/fate", 3) == "/scenarios/3/fate"
    assert live_tests._in_report("/rows/2", 3) == "/reproduction/rows/2"


def at(document: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        document = document[int(step)] if isinstance(document, list | tuple) else document[step]
    return document
