"""Text from elsewhere made harmless and measured in terminal cells.

Everything a report shows may come from a hostile log, file name or environment: escape sequences, bidirectional
overrides and CI commands are turned into text that shows what they were. Standard library only, nothing imported at
start beyond what the interpreter already holds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Cc and Cf hold C0, C1, DEL, bidirectional overrides, zero-width marks, tag characters; Cs lone surrogates;
# Zl and Zp are line breaks for str.splitlines and for some terminals. U+FFFE and U+FFFF are no characters: XML and
# HTML documents that hold one do not parse.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_CI_COMMAND = re.compile(r"(?m)^(\s*):(?=:)|##(?=\w*\[)")
_WORD = re.compile(r"(?:`[^`\n]{1,60}`|\S)+")
_DOWNGRADE = {0x2013: "-", 0x2014: "-", 0x2026: "...", 0x2192: "->", 0x00D7: "x", 0x2018: "'", 0x2019: "'"}


@lru_cache(maxsize=4096)
def _escape(char: str) -> str:
    if (unicodedata.category(char) not in _UNSAFE or char in "\n\t") and char not in "\ufffe\uffff":
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """`text` with every control and invisible character written as `\\x1b`; line breaks and tabs stay.

    CRLF counts as one line break, as in logs from Windows.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escape, text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """`visible` text in one line, every run of white space one space."""
    return " ".join(visible(text).split())


def disarmed(text: str) -> str:
    """What a CI runner would obey (`::error::` first on a line, `##[...]` or `##vso[...]` anywhere) as mere text."""
    return _CI_COMMAND.sub(lambda m: f"{m[1]}: " if m[0].endswith(":") else "# #", text)


def cells(text: str) -> int:
    """Terminal cells that `text`, one line without control characters, takes."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(c) for c in text)


@lru_cache(maxsize=4096)
def _cells_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pad(text: str, width: int) -> str:
    """`text` with spaces up to `width` cells."""
    return text + " " * max(0, width - cells(text))


def wrap(text: str, width: int) -> Iterator[str]:
    """Lines of at most `width` cells, broken at spaces only: a path, or a short command between backticks, stays whole,
    so that it can be copied. Line breaks in `text` are kept; an empty text gives one empty line."""
    for paragraph in text.split("\n"):
        line, used = "", 0
        for word in _WORD.findall(paragraph):
            n = cells(word)
            if line and used + 1 + n > width:
                yield line
                line, used = word, n
            else:
                line, used = (f"{line} {word}", used + 1 + n) if line else (word, n)
        yield line


def encodable(text: str, encoding: str) -> str:
    """`text` as a stream of this encoding can say it: typographic signs become ASCII, the rest `\\u1234`.

    Unknown encodings count as ASCII.
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(_DOWNGRADE)
        return plain.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return encodable(text, "ascii")
    return text


def short_path(path: str, parts: int = 3) -> str:
    """The last `parts` components of a long path: `.../nvidia/cudnn/lib`. Paths of up to parts + 1 stay whole."""
    pieces = path.rstrip("/").split("/")
    if len(pieces) <= parts + 2:
        return path
    return "/".join(("...", *pieces[-parts:]))


def size(n: int) -> str:
    """Bytes for people: "139.8 GiB", "512 MiB", "0 B"."""
    amount = float(n)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def time(ms: float) -> str:
    """Milliseconds for people: "0.4 ms", "420 ms", "2.1 s"."""
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"
