"""A sub-library of another cuDNN is already loaded in the process."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import NO_MISMATCH, Scenario, point
from cudnn_doctor.scenarios.live_check import convolve

SCENARIO = Scenario(
    id="sub-library-foreign",
    summary="libcudnn_graph (8: ops_infer) of another copy was loaded first; cudnnSetStream, then a convolution",
    phrase="sub-libraries of two cuDNN versions in one process",
    shows="The first one loaded wins by its name, as when another framework is imported first. It aborts, fails by its "
    "own statuses or works; never as a mismatch.",
    cause="cudnn-sublibs-mixed",
    danger="kills-process",
    second_copy=True,
    points=(point("own stream", v8=NO_MISMATCH, v9=NO_MISMATCH), point("convolution", v8=NO_MISMATCH, v9=NO_MISMATCH)),
)
FIRST = {8: "libcudnn_ops_infer.so.8", 9: "libcudnn_graph.so.9"}  # what the parent preloads from the other copy


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    s.set_stream(handle, stream, "own stream")
    convolve(s, handle, stream)
