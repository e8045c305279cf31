"""The context of handle and stream is destroyed under them; the old stream."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import OneOf, Scenario, point

SCENARIO = Scenario(
    id="context-destroyed",
    summary="The context of handle and stream was destroyed under them; their old stream, then one of the primary",
    phrase="a context that was destroyed under its handle",
    shows="What is left after a library tore its context down: a mismatch, an internal error or a crash, by version.",
    cause="context-reset",
    danger="kills-process",
    points=(
        point("before", v8=0, v9=0),
        point("old stream", v8=7, v9=4000, but={"9.1.0": OneOf((2007, "SIGSEGV"))}),
        point("primary stream", v8=7, v9=2007),
    ),
)


def run(s: Session) -> None:
    s.primary()
    foreign = s.stream("primary context")
    own = s.new_context()
    handle, stream = s.handle(), s.stream("own context")
    s.set_stream(handle, stream, "before")
    s.cuda("cuCtxDestroy", own, must=True)
    s.primary()
    s.set_stream(handle, stream, "old stream")
    s.set_stream(handle, foreign, "primary stream")
