"""What a child prints: bounded and harmless to show."""

from __future__ import annotations

HEAD, TAIL = 8192, 8192  # bytes kept


class Capped:
    """The first and the last bytes of a stream, and how many were left out between them."""

    def __init__(self) -> None:
        self.head, self.tail, self.dropped = b"", b"", 0

    def feed(self, data: bytes) -> None:
        """Takes the next bytes."""
        room = HEAD - len(self.head)
        self.head += data[:room]
        tail = self.tail + data[room:]
        self.tail = tail[-TAIL:]
        self.dropped += len(tail) - len(self.tail)

    def text(self) -> str:
        """What was kept, cleaned."""
        gap = f"\n[... {self.dropped} bytes left out ...]\n".encode() if self.dropped else b""
        return clean((self.head + gap + self.tail).decode("utf-8", "replace"))


def clean(text: str) -> str:
    """Printable text and line ends only: no escape sequence of a library reaches a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "" for c in text).strip()
