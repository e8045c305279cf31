"""A NULL handle."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="null-handle",
    summary="The handle is NULL",
    phrase="a NULL handle",
    shows="A handle whose creation failed is told apart from a stream mismatch: it gives 3 (2000 in cuDNN 9).",
    cause="library-bug",
    danger="harmless",
    points=(point("NULL handle", v8=3, v9=2000),),
)


def run(s: Session) -> None:
    s.primary()
    stream = s.stream()
    s.set_stream(0, stream, "NULL handle")
    s.cuda("cuStreamDestroy", stream)
