"""Stated values, versions in their spellings, and lines as the fact patterns see them."""

from __future__ import annotations

import msgspec

from cudnn_doctor.logs.regex import rx
from cudnn_doctor.model.versions import from_cudnn_number


class Stated(msgspec.Struct, frozen=True):
    """A value in the text's words (lower case) and the index of its line."""

    value: str
    line: int


class FactLine(msgspec.Struct, frozen=True):
    """A lower-case line, with what belongs before it (a heading, a table's header)."""

    place: int  # index of the line in the document
    text: str
    log: bool


def major(version: str) -> str:
    """The major version of "7.6.5", "7605" or "91900"."""
    return dotted(version).split(".")[0]


def dotted(version: str) -> str:
    """7201, "7.2.1", "(8, 3, 2)" in one dotted form."""
    parts = rx(r"\d+").findall(version)
    if len(parts) == 1 and len(parts[0]) in (4, 5):
        return from_cudnn_number(int(parts[0]))
    return ".".join(parts)


# Words before a version that make it a wish, a demand or a rule instead of a statement.
WISHED = (
    r"cuda capability|compute capability|(?:requires?(?!ment already)|needs?|need|wants?|expects?|asks? for"
    r"|downloading|download|supports?(?: cuda)?"
    r"|only (?:works |runs )?(?:with|on|in|from)|older than|newer than|at least|in case of"
    r"|\bor (?:go|switch|change|downgrade|upgrade|move) (?:back )?to"
    r"|\b(?:do|should|must|shall) (?:i|we) (?:\w+ ){0,3}(?:go|switch|change|downgrade|upgrade|move|install|use|try)"
    r"|\b(?:can|could|would|will) (?:you|someone|anybody) (?:\w+ ){0,4}(?:install|put|provide|add|update|upgrade)"
    r"|\bplease (?:\w+ ){0,2}(?:install|put|provide|add|update|upgrade)"
    r"|instead of|which has|works with|recommends?|should (?:be|use)|documentation|latest is|minimum)[^.;,|]{0,28}$"
)


_FROM = r"(?:updat|upgrad|mov|migrat|switch|went)\w* (?:(?!back|down)[\w-]+ ){0,3}from "
_TO = r" (?:in)?to (?:[a-z]+[ -]?){0,2}?v?(\d[\d.]*\d)"


def upgraded(text: str, start: int, at: int, value: str) -> str:
    """The value stated at `at`, or in "updated from 1.7.1 to 1.8.0" the one it was changed to. Going back is another
    matter: what was given up is what failed."""
    to = text.startswith((" to ", " into "), at + len(value)) and rx(_TO).match(text, at + len(value))
    return to[1] if to and rx(_FROM).search(text[max(0, start - 48) : at]) else value
