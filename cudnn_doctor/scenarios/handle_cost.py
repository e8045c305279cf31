"""What each further handle costs."""

from __future__ import annotations

import time

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Between, Scenario, point

HANDLES = 4
SCENARIO = Scenario(
    id="handle-cost",
    summary="Device memory and time of each further handle",
    phrase="many handles",
    shows="A handle of cuDNN 8 takes hundreds of MiB (265 on an H200), one of cuDNN 9 about nine: a handle a thread or "
    "a model fills a card.",
    cause="vram-exhausted",
    danger="harmless",
    points=(
        point("MiB a handle", v8=Between(20, 1000), v9=Between(1, 64)),
        point("handles", v8=HANDLES, v9=HANDLES),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handles = [s.handle("first")]
    before, _total = s.cuda("cuMemGetInfo", must=True).values
    times = []
    while len(handles) < HANDLES:
        free, _total = s.cuda("cuMemGetInfo", must=True).values
        if free < before / 4:  # a small card: never take more than it can spare
            break
        start = time.perf_counter_ns()
        handles.append(s.handle("further"))
        times.append((time.perf_counter_ns() - start) / 1e6)
    after, _total = s.cuda("cuMemGetInfo", must=True).values
    for handle in handles:
        s.destroy(handle)
    s.wire.note("memory", round((before - after) / (len(handles) - 1 or 1) / 2**20, 1), label="MiB a handle")
    s.wire.note("time", round(sum(times) / (len(times) or 1), 3), label="ms a handle")
    s.wire.note("count", len(handles), label="handles")
