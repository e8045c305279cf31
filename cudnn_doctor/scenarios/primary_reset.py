"""The primary context is reset under a live handle; the old stream."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import OneOf, Scenario, point

SCENARIO = Scenario(
    id="primary-reset",
    summary="The primary context was reset under the handle (cudaDeviceReset, numba's cuda.close()); the old stream",
    phrase="a primary context that was reset (cudaDeviceReset, numba's cuda.close()), with the old stream",
    shows="A framework that goes on with its old stream after another library reset the device. The stream is freed "
    "memory by then: a mismatch, an internal error or a crash, from run to run.",
    cause="context-reset",
    danger="kills-process",
    points=(
        point("before", v8=0, v9=0),
        point("old stream", v8=OneOf((7, "SIGSEGV")), v9=OneOf((2007, 4000, "SIGSEGV"))),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.set_stream(handle, stream, "before")
    device = s.cuda("cuDeviceGet", s.device, must=True).value
    s.cuda("cuDevicePrimaryCtxReset", device, must=True)
    s.set_stream(handle, stream, "old stream")
