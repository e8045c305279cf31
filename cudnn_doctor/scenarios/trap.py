"""A kernel executed a trap instruction; cuDNN afterwards."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point
from cudnn_doctor.scenarios.faults import after_fault

SCENARIO = Scenario(
    id="trap",
    summary="A kernel executed a trap instruction; cudnnSetStream and cudnnCreate afterwards",
    phrase="an earlier kernel that ended with an exception (719)",
    shows="The context is poisoned: every later call fails, and cuDNN's status is only the messenger.",
    cause="prior-cuda-fault",
    danger="faults-context",
    points=(
        point("before", v8=0, v9=0),
        point("fault", v8=719, v9=719),
        point("own stream", v8=7, v9=4000, but={"9.1.0": 2007}),
        point("NULL stream", v8=7, v9=2007),
        point("stream of a handle that had none", v8=7, v9=2007),
        point("new handle", v8=4, v9=4000),
    ),
)
# Leaves Xid 43 in the kernel log.
HEAD = """"""
BODY = """
    trap;
"""


def run(s: Session) -> None:
    after_fault(s, BODY, HEAD)
