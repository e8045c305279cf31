"""The primary context is released by one user while another still holds it."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="context-retained-elsewhere",
    summary="The primary context is released once, while another user still retains it",
    phrase="a primary context that was released but is still retained elsewhere",
    shows="Releasing is counted: it is harmless as long as one user is left. A reset is not counted.",
    cause="context-reset",
    danger="harmless",
    points=(point("own stream", v8=0, v9=0), point("new stream", v8=0, v9=0)),
)


def run(s: Session) -> None:
    s.primary()
    device = s.cuda("cuDeviceGet", s.device, must=True).value
    s.cuda("cuDevicePrimaryCtxRetain", device, must=True)
    handle, stream = s.handle(), s.stream()
    s.cuda("cuDevicePrimaryCtxRelease", device, must=True)
    s.set_stream(handle, stream, "own stream")
    new = s.stream("new")
    s.set_stream(handle, new, "new stream")
    s.destroy(handle, stream, new)
