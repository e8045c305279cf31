"""The handle of one device works while another is current."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point
from cudnn_doctor.scenarios.live_check import convolve

SCENARIO = Scenario(
    id="other-device-current",
    summary="Handle, stream and memory on one GPU, another GPU current: cudnnSetStream, then a convolution",
    phrase="another GPU being current while handle and stream belong together",
    shows="NVIDIA asks that a handle's device stay current. cudnnSetStream does not mind, but a convolution "
    "then fails with 8 EXECUTION_FAILED under cuDNN 8.9.7; under 9.19 it comes out right all the same.",
    cause="device-context-mixup",
    danger="needs-two-gpus",
    source="measured on two NVIDIA H200, driver 580.159.04, with cuDNN 8.9.7 and 9.19.0",
    points=(
        point("own stream", but={"8.9.7": 0, "9.19.0": 0}),
        point("convolution", but={"8.9.7": 8, "9.19.0": 0}),
        point("wrong values", but={"9.19.0": 0}),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.primary(s.other_device)
    s.set_stream(handle, stream, "own stream")
    s.primary()
    convolve(s, handle, stream, before=lambda: s.primary(s.other_device))
