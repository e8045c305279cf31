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

WHOLE = 1 << 20
EDGE = 64 << 10  # bytes kept of each end of a larger source
LINE = 8 << 10  # longest piece of one line that is kept
MAX_LINES = 60_000  # of one source
AROUND = 800  # bytes kept before and after a hit
KEY = 48  # bytes that make two hits the same
SAME_HITS = 4  # kept hits with the same words: a log repeats itself
LITERAL_HITS = 6  # kept hits of one literal; enough of it is known then
PATIENCE = 3_000  # hits for nothing; then what floods the log is passed over, which costs a new expression
MAX_CHANGES = 40  # of the expression
MAX_WORDS = 3_000  # different words after literals that are counted

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
FEW = 64  # backticks of a block that are looked at singly
MAX_ASSERTS = 2_000  # every thread of a kernel prints one


class Raw:
    """A line, or a piece of an overlong one, as bytes.

    A plain class with slots, as all small records of this package: a NamedTuple takes longer to define than a ticket
    takes to be read.
    """

    __slots__ = ("at", "data", "number")

    def __init__(self, number: int, data: bytes, at: int = 0) -> None:
        self.number = number  # 0 where lines were not counted: `at` tells the place
        self.data = data
        self.at = at  # bytes of the source before it


class Kept:
    __slots__ = ("data", "lines", "total_bytes", "whole")

    def __init__(self, lines: list[Raw], total_bytes: int, *, whole: bool, data: bytes = b"") -> None:
        self.lines = lines
        self.total_bytes = total_bytes
        self.whole = whole
        self.data = data  # all of a source that is kept whole, uncut


def alternatives() -> str:
    """What the scan looks for, as one extended regular expression for grep -E (the measure of its speed)."""
    return "|".join((*LITERALS, ASSERT))


def keep(pieces: Iterable[bytes], *, count: bool = True) -> Kept:
    """Reads to the end and keeps what matters. Without `count` the lines of the middle and the tail get no numbers:
    counting takes as long as the search, and few of them are ever quoted (`numbers`)."""
    stream = iter(pieces)
    head = bytearray()
    for piece in stream:
        head += piece
        if len(head) > WHOLE:
            return _large(bytes(head), stream, count)
    data = bytes(head)
    lines = list(_split(data, 1, 0))
    return Kept(lines[:MAX_LINES], len(data), whole=len(lines) <= MAX_LINES, data=data)


def numbers(pieces: Iterable[bytes], places: Iterable[int]) -> dict[int, int]:
    """The number of the line that holds each of these bytes of a source, which is read again for it."""
    found: dict[int, int] = {}
    wanted = sorted(set(places), reverse=True)
    before, line = 0, 1
    for piece in pieces:
        first = 0
        while wanted and wanted[-1] < before + len(piece):
            place = wanted.pop()
            line += piece.count(b"\n", first, place - before)
            first = place - before
            found[place] = line
        if not wanted:
            break
        line += piece.count(b"\n", first)
        before += len(piece)
    return found | dict.fromkeys(wanted, line)  # a file that shrank


def _split(data: bytes, number: int, at: int) -> Iterator[Raw]:
    for line in data.split(b"\n"):
        if len(line) <= LINE:
            yield Raw(number, line, at)
        else:
            # The middle of an overlong line is searched like the middle of an overlong file.
            yield Raw(number, line[:LINE], at)
            found = zip(_compiled(LITERALS).finditer(line, LINE, len(line) - LINE), range(SAME_HITS), strict=False)
            for match, _ in found:
                start = max(LINE, match.start() - 400)
                yield Raw(number, line[start : match.start() + 800], at + start)
            yield Raw(number, line[-LINE:], at + len(line) - LINE)
        number += number > 0
        at += len(line) + 1


def _compiled(literals: Iterable[str], passed_over: dict[str, list[bytes]] | None = None) -> re.Pattern[bytes]:
    return re.compile(_tree(sorted(literals), "", passed_over or {}).encode("latin-1"))


def _tree(words: list[str], begun: str, passed_over: dict[str, list[bytes]]) -> str:
    """An alternation factored by common beginnings: the engine tries branches one after the other."""
    if words == [""]:
        flood = "|".join(re.escape(key).decode("latin-1") for key in passed_over.get(begun, ()))
        return f"(?!{flood})" if flood else ""
    branches = []
    for letter in dict.fromkeys(w[:1] for w in words):
        rest = [w[1:] for w in words if w[:1] == letter]
        branches.append(re.escape(letter) + _tree(rest, begun + letter, passed_over))
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _large(head: bytes, stream: Iterator[bytes], count: bool) -> Kept:
    cut = head.rfind(b"\n", 0, EDGE) + 1 or EDGE
    lines = list(_split(head[:cut].removesuffix(b"\n"), 1, 0))[: MAX_LINES // 3]
    middle = _Middle(head.count(b"\n", 0, cut) + 1 if count else 0, cut)
    middle.feed(head[cut:])
    for piece in stream:
        middle.feed(piece)
    tail = middle.finish()
    start = middle.at - len(tail)
    lines += [hit for hit in middle.kept if hit.at < start]
    number = middle.line - tail.count(b"\n") if count else 0
    lines += list(_split(tail, number, start))[-MAX_LINES // 3 :]
    return Kept(lines, middle.at, whole=False)


def _merged(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(stretches):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


class _Middle:
    """Scans piece by piece, and keeps the hits and the last pieces."""

    def __init__(self, line: int, at: int) -> None:
        self.line = line  # number of the line that the next block begins with, 0 when lines are not counted
        self.at = at  # bytes of the source before the next block
        self.kept: list[Raw] = []
        self._carry = b""
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._errors: re.Pattern[bytes] | None = _compiled(LITERALS)
        self._asserts = MAX_ASSERTS
        self._same: dict[tuple[str, bytes], int] = {}
        self._of_literal: dict[str, int] = {}
        self._wasted = 0  # hits that were not kept, since the expression changed
        self._changes = 0
        self._wanted: list[tuple[int, int]] = []  # stretches of the source to keep
        self._before = b""  # the end of the block before
        self._last = 0  # bytes of the source before the end of what was kept last

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
        searched: re.Pattern[bytes] | None = None
        at = start
        while self._errors is not searched and self._errors is not None:
            searched = self._errors
            for match in searched.finditer(block, at, end):
                self._hit(block, start, match.start(), match.group().decode())
                if self._errors is not searched:  # it floods: go on with what else is looked for
                    at = match.end()
                    break
        if self._asserts:
            self._find_asserts(block, start, end)
        if self._wanted:
            self._cut(block, start, end)
        if self.line:
            self.line += block.count(b"\n", start, end)
        self.at += end - start
        last = block[max(start, end - 2 * AROUND) : end]
        self._before = last if len(last) == 2 * AROUND else (self._before + last)[-2 * AROUND :]

    def _find_asserts(self, block: bytes, first: int, end: int) -> None:
        sign, at = b"`", block.find(b"`", first, end)
        for seen in range(end - first):
            if at < 0 or not self._asserts:
                return
            if sign != b"`" or block.endswith(b"Assertion ", first, at):
                self._hit(block, first, at, "")
                self._asserts -= 1
            if seen == FEW:
                sign = ASSERT.encode()
            at = block.find(sign, at + 1, end)

    def _hit(self, block: bytes, first: int, at: int, literal: str) -> None:
        key = literal, block[at + len(literal) : at + KEY]
        same, kept = self._same.get(key, 0), self._of_literal.get(literal, 0)
        if same or len(self._same) < MAX_WORDS:
            self._same[key] = same + 1
        if same >= SAME_HITS or kept >= LITERAL_HITS:
            self._wasted += 1
            if self._wasted >= PATIENCE and self._changes < MAX_CHANGES:
                self._pass_over()
            return
        self._of_literal[literal] = kept + 1
        place = self.at + at - first
        self._wanted.append((place - AROUND, place + AROUND))

    def _cut(self, block: bytes, first: int, end: int) -> None:
        """Keeps the lines around hits as far as they are read; what is to come stays wanted."""
        text, begin, upto = self._before + block[first:end], self.at - len(self._before), self.at + end - first
        later: list[tuple[int, int]] = []
        for low, high in _merged(self._wanted):
            if high > upto:
                later.append((upto, high))
            start, stop = max(low, self._last, begin) - begin, min(high, upto) - begin
            if begin + start > self._last:  # from the start of that line to the end of the last one, within reason
                start = text.rfind(b"\n", max(0, start - AROUND), start) + 1 or start
            line_end = text.find(b"\n", stop, stop + AROUND)
            stop = stop if text.endswith(b"\n", 0, stop) else line_end if line_end >= 0 else stop
            start = max(start, self._last - begin)
            if start < stop:
                number = self.line + text.count(b"\n", 0, start) - self._before.count(b"\n") if self.line else 0
                self.kept += _split(text[start:stop].removesuffix(b"\n"), number, begin + start)
                self._last = begin + stop
        self._wanted = later

    def _pass_over(self) -> None:
        """Stops looking for words that flood the log and are kept already, and for literals of which enough is kept."""
        self._wasted = 0
        self._changes += 1
        flooding: dict[str, list[bytes]] = {}
        for (literal, words), count in self._same.items():
            if count > SAME_HITS:
                flooding.setdefault(literal, []).append(words)
        looked_for = [
            literal
            for literal in LITERALS
            if self._of_literal.get(literal, 0) < LITERAL_HITS and len(flooding.get(literal, ())) < LITERAL_HITS
        ]
        self._errors = _compiled(looked_for, flooding) if looked_for else None

    def finish(self) -> bytes:
        """The last EDGE bytes or a little more."""
        self._scan(self._carry, 0, len(self._carry))
        return b"".join(self._tail)[-2 * EDGE :]
