"""A value that never was a stream."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="garbage-stream",
    summary="The stream is a value that never was one (0xdead0000)",
    phrase="a value that never was a stream",
    shows="The driver follows the pointer: a wild value crashes and does not answer with a status.",
    cause="library-bug",
    danger="kills-process",
    points=(point("garbage", v8="SIGSEGV", v9="SIGSEGV"),),
)


def run(s: Session) -> None:
    s.primary()
    s.set_stream(s.handle(), 0xDEAD0000, "garbage")
