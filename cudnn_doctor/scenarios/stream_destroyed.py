"""The stream was destroyed before it is set."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import OneOf, Scenario, point

SCENARIO = Scenario(
    id="stream-destroyed",
    summary="The stream was destroyed before cudnnSetStream",
    phrase="a stream that was destroyed",
    shows="Undefined behaviour: a mismatch or a crash, from run to run. In Python: a stream object that was collected.",
    cause="stream-or-handle-destroyed",
    danger="kills-process",
    points=(point("destroyed stream", v8=OneOf((7, "SIGSEGV")), v9=OneOf((2007, "SIGSEGV"))),),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.cuda("cuStreamDestroy", stream, must=True)
    s.set_stream(handle, stream, "destroyed stream")
