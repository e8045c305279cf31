"""Device memory fills up between cudnnCreate and cudnnSetStream."""

from __future__ import annotations

from typing import Any

from cudnn_doctor.live.session import NON_BLOCKING, Session
from cudnn_doctor.scenarios.base import Scenario, point

STREAMS = 4096
SCENARIO = Scenario(
    id="memory-before-set",
    summary="Device memory is full between cudnnCreate and cudnnSetStream",
    phrase="device memory that is full when the stream is set",
    shows="cudnnSetStream itself needs no memory. What fails is the next cudnnCreate, and cuStreamCreate with error 2.",
    cause="vram-exhausted",
    danger="fills-memory",
    points=(
        point("own stream", v8=0, v9=0),
        point("NULL stream", v8=0, v9=0),
        point("another handle", v8=4, v9=4000),
        point("streams until one fails", v8=2, v9=2),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    blocks = s.fill_memory()
    s.set_stream(handle, stream, "own stream")
    s.set_stream(handle, 0, "NULL stream")
    s.cudnn("cudnnCreate", label="another handle")
    status = 0
    streams: list[Any] = []
    s.wire.send(next="cuStreamCreate", label="streams until one fails")
    while status == 0 and len(streams) < STREAMS:
        status, *made = s.bindings.cuStreamCreate(NON_BLOCKING)
        streams += made if int(status) == 0 else []
        status = int(status)
    name, detail = s.bindings.decode(status)
    s.wire.send(did="cuStreamCreate", label="streams until one fails", status=status, name=name, detail=detail)
    s.wire.note("streams", len(streams))
    s.free_memory(blocks)
