"""The lines that an explanation rests on: those of the text, and behind them the facts of a machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.stated_machine import where
from cudnn_doctor.model.base import Known

if TYPE_CHECKING:
    from cudnn_doctor.model.report import Evidence

MACHINE = "this machine"
_NOWHERE = ("", "the text", "implied by the text", "the wheels of that release")  # sources that are no line


class Ledger:
    """Finds the line of a stated fact again, and gives a fact that no line states a line of its own (number 0)."""

    def __init__(self, text: Document, lines: Iterable[int]) -> None:
        self._text = text
        self._stated = {where(text, index): index for index in lines}
        self._facts: dict[str, int] = {}

    def line(self, fact: str) -> int:
        """The line of a fact of the machine, a new one the first time."""
        return self._facts.setdefault(fact, len(self._text.lines) + len(self._facts))

    def lines(self, evidence: Iterable[Evidence]) -> list[int]:
        """The lines that evidence rests on, those of the text first. What the tool itself added has none."""
        found: list[int] = []
        for e in evidence:
            if e.source in self._stated:
                found.append(self._stated[e.source])
            elif self.of_machine(e):
                found.append(self.line(f"{e.pointer.removeprefix('/snapshot/')}: {e.value} ({e.source})"))
        return sorted(found, key=lambda index: index >= len(self._text.lines))

    def places(self, *facts: Known[str]) -> list[int]:
        """The lines of stated facts."""
        return [self._stated[fact.source] for fact in facts if fact.source in self._stated]

    @staticmethod
    def of_machine(evidence: Evidence) -> bool:
        """Whether the evidence was read from a machine."""
        return not evidence.value.startswith("absent: ") and evidence.source not in _NOWHERE

    def document(self) -> Document:
        """The text with the machine's lines behind it."""
        return self._text.with_facts(MACHINE, list(self._facts)) if self._facts else self._text
