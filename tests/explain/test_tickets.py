"""The labelled tickets: today's figures are the floor.

tickets/ is a copy of the labelled set that came with the task (see FITTING.md on how far rules were fitted to it).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cudnn_doctor.explain import answer
from tests.explain.scoring import Tally

TICKETS = Path(__file__).parent / "tickets"
LABELS: dict[str, dict[str, Any]] = yaml.safe_load((TICKETS / "labels.yaml").read_text(encoding="utf-8"))
FLOOR = {
    "cause": 100.0,
    "abstain": 100.0,
    "border": 100.0,
    "quiet": 100.0,
    "role": 100.0,
    "facts found": 99.8,
    "facts right": 99.5,
}


@pytest.fixture(scope="module")
def tally() -> Tally:
    found = Tally()
    for name, label in LABELS.items():
        found.add(name, label, answer([TICKETS / f"{name}.txt"]))
    return found


def test_every_ticket_has_a_label() -> None:
    assert sorted(p.stem for p in TICKETS.glob("*.txt")) == sorted(LABELS)
    assert len(LABELS) == 131


def test_no_answer_is_harmful(tally: Tally) -> None:
    assert tally.harmful == []


@pytest.mark.parametrize("what", FLOOR)
def test_score_is_not_below_the_floor(tally: Tally, what: str) -> None:
    assert tally.percent(what) >= FLOOR[what], tally.wrong
