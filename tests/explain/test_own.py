"""Tickets of our own, in words that no rule was written from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.explain.plain import answer
from tests.explain.scoring import same

TICKETS: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "own.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TICKETS)
def test_answer(name: str, tmp_path: Path) -> None:
    ticket = TICKETS[name]
    file = tmp_path / "ticket.txt"
    file.write_text(ticket["text"], encoding="utf-8")
    told = answer([file])
    causes = [c["cause"] for c in told["causes"]]
    given = causes[0] if told["verdict"] == "cause-found" else told["verdict"]
    assert given in {ticket["want"], *ticket.get("accept", ())}, causes
    assert given not in ticket.get("never", ())
    if told["verdict"] == "undetermined":
        assert told["questions"]
    for key, value in ticket.get("facts", {}).items():
        assert same(key, value, told["facts"].get(key)), (key, told["facts"])
