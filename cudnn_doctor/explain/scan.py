"""From an endless stream of bytes to a bounded number of numbered lines.

A ticket (up to WHOLE bytes) is kept whole. Of a larger log the head, the tail and the lines that hold an error's exact
spelling, with their neighbours, are kept; one pass of substring searches finds those, which is why a 1 GB log takes
seconds and constant memory. Retyped errors are a matter of tickets: in the middle of a large log only the spelling of
the software counts.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

WHOLE = 2 << 20
EDGE = 1 << 20  # bytes kept of each end of a larger source
LINE = 8 << 10  # longest piece of one line that is kept
MAX_LINES = 60_000  # of one source
AROUND = 1_500  # bytes kept before and after a hit
MAX_HITS = 600  # kept hits of the middle
SAME_HITS = 4  # of these with the same words: a log repeats itself
LITERAL_HITS = 20_000  # then a literal is no longer looked for
KEY = 48  # bytes that make two hits the same

# Every error that can come in the middle of a long run holds one of these. All begin with the same rare letter, so that
# one pass of the regular expression engine, jumping from C to C, finds them; more of them cost nothing.
LITERALS = (
    "CUDNN_STATUS_", "CUDNN failure", "CUDNN error", "CuDNN error", "CuDNN library: ", "Cudnn Error", "CUDA_ERROR_",
    "CUDA error", "CUDA out of m", "CUDA driver ver", "CUDA initializ", "CUDA kernel", "CUDA: ", "Cuda error",
    "CUBLAS_STATUS_", "CUFFT_", "CURAND_", "CUSOLVER_", "Check failed: ", "Could not lo", "Could not cre",
    "Cannot re-init", "Cannot load sym", "Cannot dlopen",
    "CI:0000",  # of "NVRM: Xid (PCI:0000:01:00): 31"
)  # fmt: skip
ASSERT = "Assertion `"  # found by its backtick, which is rarer than any letter


class Raw(NamedTuple):
    """A line, or a piece of an overlong one, as bytes."""

    number: int
    data: bytes


class Kept(NamedTuple):
    lines: list[Raw]
    total_lines: int
    total_bytes: int
    whole: bool


def alternatives() -> str:
    """What the scan looks for, as one extended regular expression for grep -E (the measure of its speed)."""
    return "|".join((*LITERALS, ASSERT))


def keep(pieces: Iterable[bytes]) -> Kept:
    """Reads to the end and keeps what matters."""
    stream = iter(pieces)
    head = bytearray()
    for piece in stream:
        head += piece
        if len(head) > WHOLE:
            return _large(bytes(head), stream)
    lines = list(_split(bytes(head), 1))
    return Kept(lines[:MAX_LINES], head.count(b"\n") + 1, len(head), len(lines) <= MAX_LINES)


def _split(data: bytes, number: int) -> Iterator[Raw]:
    for offset, line in enumerate(data.split(b"\n")):
        if len(line) <= LINE:
            yield Raw(number + offset, line)
            continue
        # The middle of an overlong line is searched like the middle of an overlong file.
        yield Raw(number + offset, line[:LINE])
        found = zip(_compiled(LITERALS).finditer(line, LINE, len(line) - LINE), range(SAME_HITS), strict=False)
        for match, _ in found:
            yield Raw(number + offset, line[max(LINE, match.start() - 400) : match.start() + 800])
        yield Raw(number + offset, line[-LINE:])


def _compiled(literals: Iterable[str]) -> re.Pattern[bytes]:
    return re.compile(_tree(sorted(literals)).encode())


def _tree(words: list[str]) -> str:
    """An alternation factored by common beginnings: the engine tries branches one after the other."""
    if words == [""]:
        return ""
    letters = dict.fromkeys(w[:1] for w in words)
    branches = [re.escape(letter) + _tree([w[1:] for w in words if w[:1] == letter]) for letter in letters]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _large(head: bytes, stream: Iterator[bytes]) -> Kept:
    cut = head.rfind(b"\n", 0, EDGE) + 1 or EDGE
    lines = list(_split(head[:cut].removesuffix(b"\n"), 1))[: MAX_LINES // 3]
    middle = _Middle(first_line=head.count(b"\n", 0, cut) + 1)
    middle.feed(head[cut:])
    for piece in stream:
        middle.feed(piece)
    tail = middle.finish()
    start = middle.line - tail.count(b"\n")
    lines += [hit for hit in middle.kept if hit.number < start]
    lines += list(_split(tail, start))[-MAX_LINES // 3 :]
    return Kept(lines, middle.line, cut + middle.bytes, whole=False)


class _Middle:
    """Scans piece by piece, and keeps the hits and the last pieces."""

    def __init__(self, first_line: int) -> None:
        self.line = first_line  # number of the line that the next block begins with
        self.bytes = 0
        self.kept: list[Raw] = []
        self._carry = b""
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._counts: dict[bytes, int] = {}
        self._errors: re.Pattern[bytes] | None = _compiled(LITERALS)
        self._looked_for = set(LITERALS)
        self._same: dict[bytes, int] = {}
        self._hits = 0
        self._last = 0  # number of the last line kept

    def feed(self, piece: bytes) -> None:
        """Scans the lines that end in this piece; the copying is left to hits and to the line across two pieces."""
        first = piece.find(b"\n") + 1
        if not first and len(self._carry) + len(piece) < 4 * LINE:
            self._carry += piece
        else:
            across = self._carry + piece[: first or len(piece)]  # a line without end is scanned in parts
            self._scan(across, 0, len(across))
            last = piece.rfind(b"\n") + 1
            self._scan(piece, first, last)
            self._carry = piece[last:] if first else b""
        self._tail.append(piece)
        self._tail_bytes += len(piece)
        while self._tail_bytes - len(self._tail[0]) >= EDGE:
            self._tail_bytes -= len(self._tail.popleft())

    def _scan(self, block: bytes, start: int, end: int) -> None:
        if self._errors is not None:
            for match in self._errors.finditer(block, start, end):
                self._hit(block, start, match.start(), match.group())
        at = block.find(b"`", start, end)
        while at >= 0:
            if block.endswith(b"Assertion ", start, at):
                self._hit(block, start, at, b"Assertion")
            at = block.find(b"`", at + 1, end)
        self.line += block.count(b"\n", start, end)
        self.bytes += end - start

    def _hit(self, block: bytes, first: int, at: int, literal: bytes) -> None:
        key = block[at : at + KEY]
        same = self._same.get(key, 0)
        if same >= SAME_HITS or self._hits >= MAX_HITS:
            self._retire(literal)
            return
        self._same[key] = same + 1
        self._hits += 1
        start = max(block.rfind(b"\n", first, max(first, at - AROUND)) + 1, at - 2 * AROUND, first)
        number = self.line + block.count(b"\n", first, start)
        for raw in _split(block[start : at + AROUND], number):
            if raw.number > self._last:
                self.kept.append(raw)
        self._last = max(self._last, number + block.count(b"\n", start, at + AROUND))

    def _retire(self, literal: bytes) -> None:
        """Stops looking for a literal that floods the log with words already kept."""
        count = self._counts[literal] = self._counts.get(literal, 0) + 1
        if count == LITERAL_HITS and literal.decode() in self._looked_for:
            self._looked_for.discard(literal.decode())
            self._errors = _compiled(self._looked_for) if self._looked_for else None

    def finish(self) -> bytes:
        """The last EDGE bytes or a little more."""
        self._scan(self._carry, 0, len(self._carry))
        return b"".join(self._tail)[-2 * EDGE :]
