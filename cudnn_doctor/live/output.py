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


FATAL = "Fatal Python error: "


def split_traceback(text: str) -> tuple[str, str]:
    """What the libraries printed, and where Python was when it died, in one line: "wire.py:80 call < ..."."""
    printed, found, trace = text.partition(FATAL)
    frames = []
    for line in trace.splitlines():
        parts = line.strip().split('"')
        if len(parts) == 3 and parts[0] == "File " and parts[2].startswith(", line "):
            number, _, function = parts[2].removeprefix(", line ").partition(" in ")
            frames.append(f"{parts[1].rpartition('/')[2]}:{number} {function}")
    return printed.strip(), f"died at {' < '.join(frames[:4])}" if found and frames else ""


def clean(text: str) -> str:
    """Printable text and line ends only: no escape sequence of a library reaches a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "" for c in text).strip()
