"""No context is current on the calling thread."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="no-context",
    summary="No context is current on the calling thread; own stream, then the special streams",
    phrase="a thread without a current context",
    shows="A worker thread that never made a context current can still set a real stream. cuStreamGetCtx "
    "refuses the special streams without a context, but cuDNN takes them.",
    cause="device-context-mixup",
    danger="harmless",
    points=(
        point("own stream", v8=0, v9=0),
        point("NULL stream", v8=0, v9=0),
        point("legacy stream", v8=0, v9=0),
        point("per-thread stream", v8=0, v9=0),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.cuda("cuCtxSetCurrent", 0, must=True)
    s.set_stream(handle, stream, "own stream")
    for value, label in ((0, "NULL stream"), (1, "legacy stream"), (2, "per-thread stream")):
        s.cuda("cuCtxSetCurrent", 0, must=True)
        s.set_stream(handle, value, label)
    s.primary()
    s.destroy(handle, stream)
