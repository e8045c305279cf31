"""The context of handle and stream is destroyed under them."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import OneOf, Scenario, point

SCENARIO = Scenario(
    id="context-destroyed",
    summary="The context of handle and stream was destroyed under them; a new stream, then the old one",
    phrase="a context that was destroyed under its handle",
    shows="The handle is what is lost: a good stream of another context does not bring it back. With the old stream "
    "the behaviour is undefined: a mismatch, an internal error or a crash, by version and from run to run.",
    cause="context-reset",
    danger="kills-process",
    points=(
        point("before", v8=0, v9=0),
        point("new stream", v8=OneOf((7, "SIGSEGV")), v9=2007),
        point("old stream", v8=OneOf((7, "SIGSEGV")), v9=OneOf((2007, 4000, "SIGSEGV"))),
        point("new stream after the old", v8=OneOf((7, "SIGSEGV")), v9=OneOf((2007, "SIGSEGV"))),
    ),
)


def run(s: Session) -> None:
    s.primary()
    fresh = s.stream("primary context")
    own = s.new_context()
    handle, second, stream = s.handle(), s.handle("second"), s.stream("own context")
    s.set_stream(handle, stream, "before")
    s.cuda("cuCtxDestroy", own, must=True)
    s.primary()
    s.set_stream(second, fresh, "new stream")
    s.set_stream(handle, stream, "old stream")
    s.set_stream(handle, fresh, "new stream after the old")
