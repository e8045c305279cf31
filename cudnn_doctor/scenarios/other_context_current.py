"""The handle's own stream, while another context is current."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="other-context-current",
    summary="The handle's own stream, while another context of the device is current",
    phrase="another context being current while handle and stream belong together",
    shows="cudnnSetStream compares the handle with the stream and does not care which context is current.",
    cause="device-context-mixup",
    danger="harmless",
    points=(point("own stream", v8=0, v9=0),),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.second_context()
    s.set_stream(handle, stream, "own stream")
    s.primary()
    s.destroy(handle, stream)
