"""Context and handle were made before fork(); used in the child and in the parent."""

from __future__ import annotations

import os
import signal
import time

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point

SECONDS = 2.0  # for the forked child
SCENARIO = Scenario(
    id="after-fork",
    summary="Context and handle were made before fork(); cudnnSetStream in the child, then in the parent",
    phrase="a forked child that uses its parent's handle (multiprocessing's default start on Linux before Python 3.14)",
    shows="CUDA does not survive a fork in the child; the parent is not touched.",
    cause="fork-after-init",
    danger="harmless",
    late=True,  # for a while after a fork, cudnnCreate takes ten times as long in the parent
    points=(
        point("child: synchronize", v8=3, v9=3),
        point("child: own stream", v8=7, v9=2007),
        point("child: new handle", v8=1, v9=1001),
        point("parent: own stream", v8=0, v9=0),
    ),
)


def run(s: Session) -> None:
    s.primary()
    handle, stream = s.handle(), s.stream()
    pid = os.fork()
    if pid == 0:
        try:
            s.cuda("cuCtxSynchronize", label="child: synchronize")
            s.set_stream(handle, stream, "child: own stream")
            s.cudnn("cudnnCreate", label="child: new handle")
        finally:
            os._exit(0)
    s.wire.note("child ended by", _wait(pid))
    s.set_stream(handle, stream, "parent: own stream")
    s.destroy(handle, stream)


def _wait(pid: int) -> str:
    """How the forked child ended; killed when it hangs, which CUDA after fork may do."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return signal.Signals(-code).name if code < 0 else f"exit {code}"
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hang"
