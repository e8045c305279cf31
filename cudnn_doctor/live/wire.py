"""The child's side of the result channel: JSON lines on a descriptor of its own.

A line says which native call comes next, before it is made, so that a crash inside it still tells where it was.
Standard library only: every import here is paid by every child.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

LOST_CHANNEL = 96  # exit code of a child whose result channel was closed or replaced by a library


class Answer(NamedTuple):
    """What a native call gave: its status and whatever it returned beside it."""

    status: int
    values: tuple[Any, ...]

    @property
    def value(self) -> Any:
        """The first value, None when the call failed."""
        return self.values[0] if self.values else None


class StopTask(Exception):  # noqa: N818 - not an error: the steps written so far say what happened
    """Nothing to go on with after the last answer."""


class Wire:
    """Writes what happens; one object a child process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._identity = self._inode()

    def _inode(self) -> tuple[int, int]:
        s = os.fstat(self._fd)
        return s.st_dev, s.st_ino

    def send(self, **fields: Any) -> None:
        """One line. A library that closes descriptors ends the process here: with its number gone, or given to another
        file, nothing may be written any more; the parent names the call from the last line."""
        data = json.dumps(fields, separators=(",", ":")).encode() + b"\n"
        try:
            if self._inode() != self._identity:
                os._exit(LOST_CHANNEL)
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            os._exit(LOST_CHANNEL)

    def note(self, name: str, value: Any = None, detail: str = "", label: str = "") -> None:
        """A fact that is no call: a count, a version, why something was left out."""
        self.send(note=name, value=value, detail=detail, label=label)

    def call(
        self,
        name: str,
        fn: Callable[..., Any],
        *args: Any,
        label: str = "",
        must: bool = False,
        decode: Callable[[int], tuple[str, str]] | None = None,
    ) -> Answer:
        """Makes one native call between a `next` and a `did` line.

        `fn` returns a status, or a tuple that begins with one. `label` tells like calls of one task apart. `decode`
        gives name and detail of a status.

        Raises:
            StopTask: `must` is set and the status is not 0.
        """
        self.send(next=name, label=label)
        start = time.perf_counter_ns()
        result = fn(*args)
        ms = (time.perf_counter_ns() - start) / 1e6
        status, values = (int(result[0]), tuple(result[1:])) if isinstance(result, tuple) else (int(result), ())
        text, detail = decode(status) if decode else ("", "")
        self.send(did=name, label=label, status=status, name=text, detail=detail, ms=round(ms, 3))
        if must and status:
            raise StopTask
        return Answer(status, values)
