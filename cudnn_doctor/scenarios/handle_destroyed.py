"""The handle was destroyed before it is used."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="handle-destroyed",
    summary="The handle was destroyed before cudnnSetStream",
    phrase="a handle that was destroyed",
    shows="Undefined behaviour that mostly answers with the mismatch: what is left of the handle holds no context.",
    cause="stream-or-handle-destroyed",
    danger="kills-process",
    points=(point("destroyed handle", v8=7, v9=2007),),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.cudnn("cudnnDestroy", handle, must=True)
    s.set_stream(handle, stream, "destroyed handle")
