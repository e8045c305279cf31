"""The stream belongs to another context of the same device."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="other-context",
    summary="The stream belongs to another context of the same device, with either context current",
    phrase="a stream of another context of the same GPU (pycuda, TensorRT, a raw cuCtxCreate in the process)",
    shows="Two libraries in one process, one on the primary context and one on a context of its own, sharing a stream.",
    cause="device-context-mixup",
    danger="harmless",
    points=(
        point("stream's context current", v8=7, v9=2007),
        point("handle's context current", v8=7, v9=2007),
    ),
)


def run(s: Session) -> None:
    primary = s.primary()
    handle = s.handle()
    s.second_context()
    stream = s.stream()
    s.set_stream(handle, stream, "stream's context current")
    s.cuda("cuCtxSetCurrent", primary, must=True)
    s.set_stream(handle, stream, "handle's context current")
    s.destroy(handle, stream)
