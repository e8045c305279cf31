"""A handle is created while a stream is being captured."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="handle-in-capture",
    summary="A handle is created while a stream is being captured, in each capture mode",
    phrase="a handle created during a capture",
    shows="cudnnCreate allocates, which a capture forbids unless it is relaxed: it fails with a memory status and "
    "ruins the capture (901). Create handles before the capture.",
    cause="library-bug",
    danger="harmless",
    points=(
        point("create in global mode", v8=2, v9=4004),
        point("end of global mode", v8=901, v9=901),
        point("create in thread_local mode", v8=2, v9=4004),
        point("end of thread_local mode", v8=901, v9=901),
        point("create in relaxed mode", v8=0, v9=0),
        point("end of relaxed mode", v8=0, v9=0),
    ),
)


def run(s: Session) -> None:
    s.primary()
    stream = s.stream()
    for mode in ("GLOBAL", "THREAD_LOCAL", "RELAXED"):
        s.begin_capture(stream, mode)
        created = s.cudnn("cudnnCreate", label=f"create in {mode} mode".lower())
        s.end_capture(stream, f"end of {mode} mode".lower())
        if created.status == 0:
            s.destroy(created.value)
    s.cuda("cuStreamDestroy", stream)
