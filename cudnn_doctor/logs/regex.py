"""Regular expressions compiled on first use: a text needs few of them, and compiling all costs more than a ticket."""

from __future__ import annotations

import re
from functools import cache


@cache
def rx(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern. Letters are ASCII's: Chinese and Japanese put no space around "cuDNN"."""
    return re.compile(pattern, flags | re.ASCII)
