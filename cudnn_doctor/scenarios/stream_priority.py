"""Streams with another priority than the default."""

from __future__ import annotations

from cudnn_doctor.live.session import NON_BLOCKING, Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="stream-priority",
    summary="Streams of the lowest and of the highest priority",
    phrase="a stream with another priority",
    shows="cuDNN reads the priority of the stream and keeps internal streams of it; that works here or does not.",
    cause="library-bug",
    danger="harmless",
    points=(point("lowest priority", v8=0, v9=0), point("highest priority", v8=0, v9=0)),
)


def run(s: Session) -> None:
    s.primary()
    handle = s.handle()
    lowest, highest = s.cuda("cuCtxGetStreamPriorityRange", must=True).values
    for priority, label in ((lowest, "lowest priority"), (highest, "highest priority")):
        stream = int(s.cuda("cuStreamCreateWithPriority", NON_BLOCKING, priority, must=True).value)
        s.set_stream(handle, stream, label)
        s.set_stream(handle, 0, f"NULL stream after {label}")
        s.cuda("cuStreamDestroy", stream)
    s.destroy(handle)
