"""The primary context is reset under a live handle; a new stream."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import OneOf, Scenario, point

SCENARIO = Scenario(
    id="primary-reset-new-stream",
    summary="The primary context was reset under the handle (cudaDeviceReset, numba's cuda.close()); a new stream",
    phrase="a primary context that was reset (cudaDeviceReset, numba's cuda.close()), with a new stream",
    shows="A framework that makes a new stream after the reset still holds a dead handle.",
    cause="context-reset",
    danger="kills-process",
    points=(point("before", v8=0, v9=0), point("new stream", v8=7, v9=OneOf((2007, "SIGSEGV", "hang")))),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.set_stream(handle, stream, "before")
    device = s.cuda("cuDeviceGet", s.device, must=True).value
    s.cuda("cuDevicePrimaryCtxReset", device, must=True)
    s.primary(again=True)
    s.set_stream(handle, s.stream("new"), "new stream")
