"""The control: handle and stream live in the same context."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="valid-stream",
    summary="Handle and stream in the same context; also NULL, legacy and per-thread stream",
    phrase="a valid stream",
    shows="That the healthy way works here. When this fails, no other state means anything.",
    cause="insufficient-info",
    danger="harmless",
    points=(
        point("own stream", v8=0, v9=0),
        point("own stream kept", v8=1, v9=1),
        point("NULL stream", v8=0, v9=0),
        point("legacy stream", v8=0, v9=0),
        point("per-thread stream", v8=0, v9=0),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.set_stream(handle, stream, "own stream")
    got = s.cudnn("cudnnGetStream", handle).value
    s.wire.note("stream kept", int(got == stream), label="own stream kept")
    for value, label in ((0, "NULL stream"), (1, "legacy stream"), (2, "per-thread stream")):
        s.set_stream(handle, value, label)
    s.destroy(handle, stream)
