"""Scores explanations against labelled tickets (tickets/labels.yaml), as people would judge them.

A ticket that an expert can decide is right when the first cause is the label or an accepted one. One that nobody can
decide is right when the answer says so and asks. A borderline one is right either way. Harmful is a cause that would
mislead the person, named as found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

SILENT = frozenset({"no-problem", "not-cudnn"})
STATED = frozenset({"cuda", "cudnn_loaded", "cudnn_built", "driver", "gpu"})
_VERSIONS = frozenset({"cuda", "cudnn_loaded", "cudnn_built", "driver", "framework_version"})


def version(text: str) -> str:
    """One dotted form of 7201, 90100, "7.2.1", "v7.2" and "(8, 5, 0)"."""
    plain = text.strip().lower()
    if match := re.match(r"\(?\s*(\d+)[,. ]+\s*(\d+)(?:[,. ]+\s*(\d+))?", plain):
        return ".".join(g for g in match.groups() if g is not None)
    if re.fullmatch(r"\d{4,5}", plain):
        base = 1000 if len(plain) == 4 else 10000
        return f"{int(plain) // base}.{int(plain) % base // 100}.{int(plain) % 100}"
    return plain.lstrip("v")


def same(key: str, want: object, got: object) -> bool:
    """Whether two spellings of a fact mean the same."""
    a, b = str(want).lower(), str(got).lower()
    if key in _VERSIONS:
        x, y = version(a), version(b)
        return x == y or x.startswith(f"{y}.") or y.startswith(f"{x}.") or x in b or y in a

    def letters(text: str) -> str:
        return re.sub(r"[^a-z0-9]+", "", text.replace("nvidia", "").replace("geforce", ""))

    return letters(a) in letters(b) or letters(b) in letters(a)


def judged(label: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, bool]:
    """What kind of ticket it is, and whether the answer is right."""
    verdict, causes = answer["verdict"], [c["cause"] for c in answer["causes"]]
    top = causes[0] if causes else None
    good = {label["cause"], *(label.get("accept") or ())}
    if label["cause"] in SILENT or label["cause"] == "harmless-noise":
        return "quiet", verdict in {label["cause"], *(good & SILENT)} or (top in good and top == "harmless-noise")
    asks = verdict == "undetermined" and bool(answer["questions"])
    if label["certainty"] == "undetermined":
        return "abstain", asks
    found = verdict == "cause-found" and top in good
    if label["certainty"] == "borderline":
        near = asks and bool(good & {*causes[:3], "insufficient-info"})
        return "border", near or found or verdict in good & SILENT
    return "cause", found


class Tally:
    """Counts of what was asked and what was right."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.right: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.harmful: list[str] = []

    def add(self, name: str, label: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Judges one answer."""
        kind, right = judged(label, answer)
        self._count(kind, right)
        top = answer["causes"][0] if answer["causes"] else None
        if not right:
            self.wrong.append(f"{name}: {answer['verdict']} {top and top['cause']}, not {label['cause']}")
        if top and answer["verdict"] == "cause-found" and top["cause"] in (label.get("must_not") or ()):
            self.harmful.append(name)
        if top and label.get("role") in ("primary", "consequence"):
            self._count("role", top["role"] == label["role"])
        wanted, facts = label.get("facts") or {}, answer["facts"]
        for key, value in wanted.items():
            self._count("facts found", key in facts and same(key, value, facts[key]))
        for key, value in facts.items():
            if key in STATED:
                self._count("facts right", key in wanted and same(key, wanted[key], value))

    def _count(self, what: str, right: bool) -> None:
        self.of[what] += 1
        self.right[what] += right

    def percent(self, what: str) -> float:
        """How many of these were right, rounded to a tenth of a percent."""
        return round(100 * self.right[what] / self.of[what], 1)
