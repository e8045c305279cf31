"""Bodies that misbehave in ways that need no library. Child side."""

from __future__ import annotations

import os
import time
from typing import Any

from cudnn_doctor.live.wire import StopTask, Wire


def count(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    shared["n"] = shared.get("n", 0) + args["add"]
    wire.note("n", shared["n"])


def fail(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    wire.note("before")
    raise ValueError("no\x1b[31m such\nthing")


def stop(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    wire.call("cuThing", lambda: 3, label="l", must=True, decode=lambda s: (f"NAME_{s}", "why"))


def die(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    wire.send(next="cudnnCreate")
    os.kill(os.getpid(), args["signal"])


def sleep(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    def nap() -> int:
        time.sleep(args["seconds"])
        return 0

    wire.call("nap", nap)


def around(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """What the child is: environment, limits, session, stdin."""
    import resource

    wire.note("env", {k: os.environ.get(k) for k in args["names"]})
    wire.note("core", resource.getrlimit(resource.RLIMIT_CORE))
    wire.note("stack", resource.getrlimit(resource.RLIMIT_STACK)[0])
    wire.note("leader", os.getsid(0) == os.getpid())
    wire.note("stdin", os.read(0, 1).decode())
    wire.note("stop", [m for m in ("msgspec", "yaml", "typer", "rich") if m in __import__("sys").modules])


def flood(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """More notes than a parent should keep."""
    for _ in range(40):
        wire.note("big", "x" * 500_000)


def fork_and_leave(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """A grandchild outside the process group that holds every pipe open."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.write(write, str(os.getpid()).encode())
        time.sleep(args["seconds"])
        os._exit(0)
    wire.note("grandchild", int(os.read(read, 20)))


__all__ = ["StopTask"]
