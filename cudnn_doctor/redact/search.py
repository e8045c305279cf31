"""Searching a long log for many patterns: only near the signs that every match of a pattern holds.

A pattern that begins with a look-behind or ignores case is tried at every character, 0.1 to 0.3 s a MiB; `str.find` for
what must be in its matches takes 0.5 ms. Where no sign is nothing can match, so that both ways give the same
(tests/test_redact_search.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

# Characters that the search for i and s that ignores case takes as well, and that `lower` leaves or makes two of.
SAME = (("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"))
BACK, AHEAD = 512, 16_384  # how far before and behind a sign a match can reach, in characters
REST = re.compile(
    r"(?:\s*[^\n]*){2}"
)  # a name, its colon and its value may stand in three lines, with blank ones between


def fold(text: str) -> str:
    """Small letters, as many characters as before."""
    if not text.isascii():
        for other, letter in SAME:  # a table for `translate` takes thirty times as long
            text = text.replace(other, letter)
    return text.lower()


class Signed:
    """A pattern and its signs: every match holds one of them, in `fold`ed text, in the line in which the match begins.
    A sign is a text without a line break, or a pattern that begins with a literal (`re` then searches fast)."""

    def __init__(self, pattern: str, *signs: str | re.Pattern[str]) -> None:
        self.pattern = re.compile(pattern)
        self.signs = signs

    def finditer(self, text: str, folded: str | None = None) -> Iterator[re.Match[str]]:
        """As `re.Pattern.finditer`; `folded` is the text in small letters where the caller has it."""
        for start, end in self._places(text, fold(text) if folded is None else folded):
            yield from self.pattern.finditer(text, start, end)

    def sub(self, replace: Callable[[re.Match[str]], str], text: str) -> str:
        """As `re.Pattern.sub`."""
        parts, done = [], 0
        for match in self.finditer(text):
            parts += [text[done : match.start()], replace(match)]
            done = match.end()
        return "".join(parts) + text[done:] if parts else text

    def _places(self, text: str, folded: str) -> list[tuple[int, int]]:
        """Where matches can be: the line of a sign, on to the end of the second next that is not blank."""
        found = []
        for sign in self.signs:
            at = _find(folded, sign, 0)
            while at >= 0:
                far = min(len(text), at + AHEAD)
                start = max(text.rfind("\n", max(0, at - BACK), at) + 1, at - BACK)
                line = text.find("\n", at, far)
                rest = REST.match(text, line, far) if line >= 0 else None
                found.append((start, rest.end() if rest else far))
                at = _find(folded, sign, line if line >= 0 else at + 1)
        merged: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        return merged


def _find(folded: str, sign: str | re.Pattern[str], start: int) -> int:
    if isinstance(sign, str):
        return folded.find(sign, start)
    match = sign.search(folded, start)
    return match.start() if match else -1
