"""The process started under a small stack limit."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="stack-limit",
    summary="The process was started under a stack limit of 256 KiB (a launcher's `ulimit -s`)",
    phrase="a stack limit of 256 KiB",
    shows="A report blames a launcher's stack limit for status 7. At 256 KiB cuDNN works; at 64 KiB no program starts.",
    cause="environment-restriction",
    danger="kills-process",
    stack_limit=256 << 10,
    points=(point("own stream", v8=0, v9=0), point("own stream kept", v8=1, v9=1)),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.set_stream(handle, stream, "own stream")
    got = s.cudnn("cudnnGetStream", handle).value
    s.wire.note("stream kept", int(got == stream), label="own stream kept")
    s.destroy(handle, stream)
