"""The labelled tickets: today's figures are the floor.

tickets/ is a copy of the labelled set that came with the task; authors/ holds what four authors wrote who had never
seen the tool. FITTING.md tells how far the rules were fitted to both, and the figures at first sight.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.explain.plain import answer
from tests.explain.scoring import Tally

HERE = Path(__file__).parent
COUNTS = {"tickets": 131, "authors/a": 45, "authors/b": 47, "authors/c": 50, "authors/d": 36}
ALL_RIGHT = dict.fromkeys(("cause", "abstain", "border", "quiet", "role", "facts found", "facts right"), 100.0)
FLOORS = {
    "tickets": {**ALL_RIGHT, "facts found": 99.8, "facts right": 99.5},
    "authors/a": {**ALL_RIGHT, "role": 95.6},
    "authors/b": {**ALL_RIGHT, "role": 92.8, "facts found": 98.5, "facts right": 99.0},
    "authors/c": {**ALL_RIGHT, "role": 96.6, "facts found": 94.9, "facts right": 98.3},
    "authors/d": {**ALL_RIGHT, "facts found": 97.8},
}


@cache
def labels(folder: str) -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = yaml.safe_load((HERE / folder / "labels.yaml").read_text(encoding="utf-8"))
    return read


@cache
def tally(folder: str) -> Tally:
    found = Tally()
    for name, label in labels(folder).items():
        found.add(name, label, answer([HERE / folder / f"{name}.txt"]))
    return found


@pytest.mark.parametrize("folder", COUNTS)
def test_every_ticket_has_a_label(folder: str) -> None:
    assert sorted(p.stem for p in (HERE / folder).glob("*.txt")) == sorted(labels(folder))
    assert len(labels(folder)) == COUNTS[folder]


@pytest.mark.parametrize("folder", COUNTS)
def test_no_answer_is_harmful(folder: str) -> None:
    assert tally(folder).harmful == []


@pytest.mark.parametrize(("folder", "what"), [(folder, what) for folder in FLOORS for what in FLOORS[folder]])
def test_score_is_not_below_the_floor(folder: str, what: str) -> None:
    assert tally(folder).percent(what) >= FLOORS[folder][what], tally(folder).wrong
