"""cuBLAS cannot be found; cuDNN 8 opens it when a handle is made."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="cublas-missing",
    summary="libcublasLt and libcublas cannot be found when cuDNN 8 makes a handle",
    phrase="a missing cuBLAS",
    shows="cuDNN 8 prints the library's name and aborts the process; no status reaches the program.",
    cause="helper-library-missing",
    danger="kills-process",
    majors=(8,),
    points=(point("create", v8="SIGABRT"), point("own stream")),
)
HIDE = ("libcublas",)


def run(s: Session) -> None:
    s.primary()
    handle = s.handle("create")
    s.set_stream(handle, s.stream(), "own stream")
