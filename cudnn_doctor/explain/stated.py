"""A stated value, and a line as the fact patterns see it."""

from __future__ import annotations


class Stated:
    """A value in the text's words (lower case) and the index of its line."""

    __slots__ = ("line", "value")

    def __init__(self, value: str, line: int) -> None:
        self.value = value
        self.line = line


class FactLine:
    """A lower-case line, with what belongs before it (a heading, a table's header)."""

    __slots__ = ("log", "place", "text")

    def __init__(self, place: int, text: str, log: bool) -> None:
        self.place = place  # index of the line in the document
        self.text = text
        self.log = log


# Words before a version that make it a wish, a demand or a rule instead of a statement.
NOT_STATED = (
    r"cuda capability|compute capability|(?:requires?|needs?|need|wants?|expects?|asks? for|downloading|download"
    r"|supports?(?: cuda)?|only (?:works |runs )?(?:with|on|in|from)|older than|newer than|at least|in case of"
    r"|instead of|which has|works with|recommends?|should (?:be|use)|documentation|latest is|minimum)[^.;,|]{0,28}$"
)
