"""The stream belongs to another device."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="other-device",
    summary="Handle on one GPU, stream of another, with either current; and the other way round",
    phrase="a stream of another GPU",
    shows="Layers of one model on two GPUs, or a thread that lost track of its device.",
    cause="device-context-mixup",
    danger="needs-two-gpus",
    source="measured on two NVIDIA H200, driver 580.159.04, with cuDNN 8.9.7 and 9.19.0",
    points=(
        point("stream's GPU current", but={"8.9.7": 7, "9.19.0": 2007}),
        point("handle's GPU current", but={"8.9.7": 7, "9.19.0": 2007}),
        point("own stream, other GPU current", but={"8.9.7": 0, "9.19.0": 0}),
        point("other way round", but={"8.9.7": 7, "9.19.0": 2007}),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handle, own = s.handle("first GPU"), s.stream("first GPU")
    s.primary(s.other_device)
    second, foreign = s.handle("second GPU"), s.stream("second GPU")
    s.set_stream(handle, foreign, "stream's GPU current")
    s.primary()
    s.set_stream(handle, foreign, "handle's GPU current")
    s.primary(s.other_device)
    s.set_stream(handle, own, "own stream, other GPU current")
    s.set_stream(second, own, "other way round")
    s.destroy(second, foreign)
    s.primary()
    s.destroy(handle, own)
