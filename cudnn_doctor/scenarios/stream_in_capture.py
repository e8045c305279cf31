"""The stream is being captured into a CUDA graph."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

MODES = ("GLOBAL", "THREAD_LOCAL", "RELAXED")
SCENARIO = Scenario(
    id="stream-in-capture",
    summary="The stream is being captured into a CUDA graph, in each capture mode",
    phrase="a stream that is being captured",
    shows="Capturing the stream is no reason for a mismatch by itself; what else runs during the capture may break it.",
    cause="library-bug",
    danger="harmless",
    points=tuple(point(f"{m} mode".lower(), v8=0, v9=0) for m in MODES)
    + tuple(point(f"end of {m} mode".lower(), v8=0, v9=0) for m in MODES),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    for mode in MODES:
        s.begin_capture(stream, mode)
        s.set_stream(handle, stream, f"{mode} mode".lower())
        s.end_capture(stream, f"end of {mode} mode".lower())
    s.set_stream(handle, 0, "NULL stream")
    s.destroy(handle, stream)
