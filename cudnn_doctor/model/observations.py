"""The signs found so far, each with the lines it rests on."""

from __future__ import annotations

Tokens = dict[str, list[int]]  # token -> indices of lines, first first


class TokenSet:
    """Collects tokens; a line counts once for each."""

    def __init__(self) -> None:
        self.found: Tokens = {}

    def add(self, token: str, *lines: int) -> None:
        """Notes a token and its lines; -1 stands for no line."""
        known = self.found.setdefault(token, [])
        known.extend(line for line in lines if line >= 0 and line not in known)
