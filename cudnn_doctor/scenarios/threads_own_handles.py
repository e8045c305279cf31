"""The control of threads-share-handle: a handle a thread."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point
from cudnn_doctor.scenarios.threads_share_handle import race

SCENARIO = Scenario(
    id="threads-own-handles",
    summary="Two threads with a handle each (control)",
    phrase="threads with a handle each",
    shows="The cure of a shared handle: no stream is ever mixed up.",
    cause="handle-shared-by-threads",
    danger="harmless",
    points=(point("% of the other's stream", v8=0, v9=0), point("failed calls", v8=0, v9=0)),
)


def run(s: Session) -> None:
    s.primary()
    handles = (s.handle("first"), s.handle("second"))
    race(s, handles)
    for handle in handles:
        s.destroy(handle)
