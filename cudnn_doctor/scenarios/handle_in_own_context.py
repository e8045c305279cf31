"""The handle was made inside a context that is not the primary one."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="handle-in-own-context",
    summary="The handle was made in a non-primary context; a stream of that context, then one of the primary context",
    phrase="a handle made in a non-primary context and a stream of the primary one",
    shows="cuDNN binds a handle to whatever context is current at cudnnCreate, not to the device.",
    cause="device-context-mixup",
    danger="harmless",
    points=(
        point("stream of the handle's context", v8=0, v9=0),
        point("stream of the primary context", v8=7, v9=2007),
    ),
)


def run(s: Session) -> None:
    s.primary()
    foreign = s.stream("primary context")
    s.second_context()
    handle, stream = s.handle(), s.stream("own context")
    s.set_stream(handle, stream, "stream of the handle's context")
    s.set_stream(handle, foreign, "stream of the primary context")
    s.destroy(handle, stream)
    s.primary()
    s.cuda("cuStreamDestroy", foreign)
