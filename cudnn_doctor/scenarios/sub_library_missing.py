"""A sub-library is missing."""

from __future__ import annotations

from cudnn_doctor.live.session import Session, mapped
from cudnn_doctor.scenarios.base import NO_MISMATCH, Scenario, point
from cudnn_doctor.scenarios.live_check import convolve

SCENARIO = Scenario(
    id="sub-library-missing",
    summary="libcudnn_cnn (8: cnn_infer) cannot be found; cudnnSetStream, then a convolution",
    phrase="a missing sub-library",
    shows="A broken install fails where its library is needed, by its own statuses or an abort; never as a mismatch.",
    cause="cudnn-sublibs-mixed",
    danger="kills-process",
    points=(point("own stream", v8=NO_MISMATCH, v9=NO_MISMATCH), point("convolution", v8=NO_MISMATCH, v9=NO_MISMATCH)),
)
HIDE = ("libcudnn_cnn",)  # cnn in 9, cnn_infer and cnn_train in 8


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.set_stream(handle, stream, "own stream")
    convolve(s, handle, stream)
    # It worked: the loader finds the library without the folder of this copy.
    s.wire.note("found all the same", mapped("libcudnn_cnn"))
