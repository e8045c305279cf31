"""Two threads share one handle and set their own streams."""

from __future__ import annotations

import threading
import time

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Between, Scenario, point

PAIRS = 2000
SECONDS = 0.5  # at most, a thread
SCENARIO = Scenario(
    id="threads-share-handle",
    summary="Two threads share a handle and set their own streams: how often the other's stream is found",
    phrase="a handle shared by threads",
    shows="No status says it: each thread's kernels go to whichever stream was set last.",
    cause="handle-shared-by-threads",
    danger="harmless",
    points=(
        point("% of the other's stream", v8=Between(0.01, 100), v9=Between(0.01, 100)),
        point("failed calls", v8=0, v9=0),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handle = s.handle()
    race(s, (handle, handle))
    s.destroy(handle)


def race(s: Session, handles: tuple[int, int]) -> None:
    """Each thread sets its own stream on its handle and asks which is set."""
    context = s.primary()
    streams = (s.stream("first"), s.stream("second"))
    wrong, failed, done = [0, 0], [0, 0], [0, 0]
    barrier = threading.Barrier(2)

    def work(i: int) -> None:
        s.bindings.cuCtxSetCurrent(context)
        barrier.wait()
        end = time.monotonic() + SECONDS
        while done[i] < PAIRS and time.monotonic() < end:
            set_status = s.library.cudnnSetStream(handles[i], streams[i])
            get_status, stream = s.library.get_stream(handles[i])
            wrong[i] += stream != streams[i]
            failed[i] += bool(set_status or get_status)
            done[i] += 1

    s.wire.send(next="cudnnSetStream", label="two threads")
    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    s.wire.note("pairs", sum(done))
    s.wire.note("share", round(100 * sum(wrong) / max(1, sum(done)), 2), label="% of the other's stream")
    s.wire.note("failed", sum(failed), label="failed calls")
    for stream in streams:
        s.cuda("cuStreamDestroy", stream)
