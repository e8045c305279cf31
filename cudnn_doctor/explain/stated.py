"""A stated value, and a line as the fact patterns see it."""

from __future__ import annotations

from typing import NamedTuple


class Stated(NamedTuple):
    """A value in the text's words (lower case) and the index of its line."""

    value: str
    line: int


class FactLine(NamedTuple):
    """A lower-case line, with what belongs before it (a heading, a table's header)."""

    place: int  # index of the line in the document
    text: str
    log: bool


# Words before a version that make it a wish, a demand or a rule instead of a statement.
NOT_STATED = (
    r"cuda capability|compute capability|(?:requires?|needs?|need|wants?|expects?|asks? for|downloading|download"
    r"|supports?(?: cuda)?|only (?:works |runs )?(?:with|on|in|from)|older than|newer than|at least|in case of"
    r"|instead of|which has|works with|recommends?|should (?:be|use)|documentation|latest is|minimum)[^.;,|]{0,28}$"
)
