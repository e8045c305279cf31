"""What `check --deep` and `report --reproduce --engines` do where there is nothing to work on."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest

from cudnn_doctor import deeper, engine
from cudnn_doctor.model import Report
from cudnn_doctor.rules.sample import sample

HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}


def healthy() -> Report:
    case = sample()
    return engine.judge(
        engine.Facts(snapshot=case.snapshot, scenarios=case.scenarios), engine.Options(), date(2026, 12, 1)
    )


@pytest.mark.parametrize("what", ["states", "engines"])
def test_nothing_to_work_on_is_no_pass_and_loses_nothing(what: str) -> None:
    before = healthy()
    assert before.verdict == "ok"
    after = deeper.add(before, engine.Options(), HIDDEN, lambda _: None, **{what: True})
    assert (after.verdict, after.exit_code) == ("no-verdict", 2)
    assert after.findings == before.findings
    assert after.notes[-1].startswith("Not gone deeper: no NVIDIA GPU that a program started here could use")


def test_a_problem_stays_a_problem() -> None:
    before = msgspec.structs.replace(healthy(), verdict="problem", reason="CD306", exit_code=1)
    after = deeper.add(before, engine.Options(), HIDDEN, lambda _: None, engines=True)
    assert (after.verdict, after.reason) == ("problem", "CD306")


def test_a_recording_cannot_be_gone_into() -> None:
    with pytest.raises(engine.UsageError, match="a recording holds no GPU"):
        deeper.add(healthy(), engine.Options(), {}, lambda _: None, engines=True, replayed=True)


def test_nothing_wanted_changes_nothing() -> None:
    before = healthy()
    assert deeper.add(before, engine.Options(), HIDDEN, lambda _: None) is before
