"""Splits a stream into reports as it comes. Three forms are known: one JSON document after the other, JSON lines, and
lines that bear their node in front, as `clush`, `pdsh`, `srun --label` and `kubectl logs --prefix` print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from cudnn_doctor.merge.collecting import Arrival

LARGEST = 16 << 20  # bytes of one report; a real one has 0.2 MB
MOST_OPEN = 20_000  # nodes whose lines come interleaved
LINE = 1 << 20  # bytes that are read at once of a line without end
_LABEL = re.compile(rb"\[?((?:pod/)?[A-Za-z0-9][A-Za-z0-9._/-]{0,250})(?:\] |: )(?=[\s{}\"\]\[]|$)")
_REST = re.compile(rb"^[\s\x00]*$")
MARKS = b"\xef\xbb\xbf \t\r\n"  # that may stand before a document
WIDE = (b"\xff\xfe", b"\xfe\xff")  # UTF-16, as PowerShell writes
MIB = 1 << 20


def documents(stream: IO[bytes], source: str, node: str = "") -> Iterator[Arrival]:
    """Every report of a stream; `node` names the only one of a file. What stands before the first one, such as a remark
    of an engine, is passed over."""
    heading = b""
    while line := stream.readline(LINE):
        if _LABEL.match(line):
            yield from _labelled(line, stream, source)
            return
        if line.lstrip(MARKS).startswith(b"{") or line.startswith(WIDE):
            yield from _plain(line, stream, source, node)
            return
        heading = heading or line.strip()
    yield Arrival(node, source, heading)


def is_one(data: bytes) -> bool:
    """Whether a file holds one JSON document as this tool writes it, so that its lines need not be looked at."""
    return data.startswith(b"{\n") and data.endswith(b"\n}\n") and data.find(b"\n}\n") == len(data) - 3


def _lines(first: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    yield first
    while line := stream.readline(LINE):
        yield line


def _plain(first: bytes, stream: IO[bytes], source: str, node: str) -> Iterator[Arrival]:
    """Documents that end with a line `}` of their own, or have a line each. The first keeps the name of the file only
    where no other follows; what else is in a stream of several is counted and told once."""
    held: _Document | None = None
    others, several = 0, False
    for document in _split(first, stream):
        if held is None and not several:
            held = document
            continue
        several = True
        for one in (held, document):
            if one is not None and one.ours:
                yield one.arrival("", source)
            elif one is not None:
                others += 1
        held = None
    if held is not None:
        yield held.arrival(node, source)
    if others:
        what = f"{others} other document{'s' if others > 1 else ''} in it: no reports of cudnn-doctor"
        yield Arrival(node, source, state="unreadable", reason=what)


def _split(first: bytes, stream: IO[bytes]) -> Iterator[_Document]:
    document = _Document()
    for line in _lines(first, stream):
        if document.takes(line):
            yield document
            document = _Document()
    if not document.empty:
        yield document


def _labelled(first: bytes, stream: IO[bytes], source: str) -> Iterator[Arrival]:
    """The lines of each node by themselves, in whatever way they are mixed."""
    open_: dict[bytes, _Document] = {}
    for line in _lines(first, stream):
        label = _LABEL.match(line)
        if label is None:
            continue  # a remark of the engine
        document = open_.setdefault(label[1], _Document())
        if document.takes(line[label.end() :]):
            yield open_.pop(label[1]).arrival(_node(label[1]), source)
        elif len(open_) > MOST_OPEN:
            oldest = next(iter(open_))
            yield open_.pop(oldest).arrival(_node(oldest), source)
    for label_, document in open_.items():
        if not document.empty:
            yield document.arrival(_node(label_), source)


def _node(label: bytes) -> str:
    """`pod/name/container` of kubectl is the pod's name."""
    parts = label.decode("utf-8", "replace").split("/")
    return parts[1] if parts[0] == "pod" and len(parts) > 1 else parts[0]


class _Document:
    """The lines of one report; what is too long is counted and not kept."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    @property
    def empty(self) -> bool:
        return not self._size

    @property
    def ours(self) -> bool:
        return self._size > LARGEST or any(b'"cudnn-doctor/' in line for line in self._lines)

    def takes(self, line: bytes) -> bool:
        """Adds a line; True where it ends the document."""
        if not self._size and _REST.match(line):
            return False
        begins = not self._size
        self._size += len(line)
        if self._size <= LARGEST:
            self._lines.append(line)
        else:
            self._lines.clear()
        end = line.rstrip()
        return end == b"}" or (begins and end.startswith(b"{") and end.endswith(b"}"))

    def arrival(self, node: str, source: str) -> Arrival:
        if self._size > LARGEST:
            reason = f"it has more than {LARGEST // MIB} MiB; a report has 0.2"
            return Arrival(node, source, state="unreadable", reason=reason)
        return Arrival(node, source, b"".join(self._lines))
