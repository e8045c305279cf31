"""Device memory is full before cudnnCreate."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="memory-before-create",
    summary="Device memory is full before cudnnCreate",
    phrase="device memory that is full when the handle is created",
    shows="Full memory fails cudnnCreate with an internal error; it is not a stream mismatch.",
    cause="vram-exhausted",
    danger="fills-memory",
    points=(point("create", v8=4, v9=4000),),
)


def run(s: Session) -> None:
    s.primary()
    blocks = s.fill_memory()
    s.cudnn("cudnnCreate", label="create")
    s.free_memory(blocks)
