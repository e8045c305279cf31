"""The context of the handle is destroyed; only then a stream of the primary context is set."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="context-destroyed-new-stream",
    summary="The context of the handle was destroyed; a new stream of the primary context",
    phrase="a handle that outlived its context, with a new stream",
    shows="The handle is what is lost: a good stream does not bring it back.",
    cause="context-reset",
    danger="kills-process",
    points=(point("before", v8=0, v9=0), point("new stream", v9=2007)),
)


def run(s: Session) -> None:
    s.primary()
    own = s.new_context()
    handle, stream = s.handle(), s.stream("own context")
    s.set_stream(handle, stream, "before")
    s.cuda("cuCtxDestroy", own, must=True)
    s.primary()
    s.set_stream(handle, s.stream("new"), "new stream")
