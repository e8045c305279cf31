"""A device-side assert failed in a kernel (an index or label out of range); cuDNN afterwards."""

from __future__ import annotations

from cudnn_doctor.live.session import Session
from cudnn_doctor.scenarios.base import Scenario, point
from cudnn_doctor.scenarios.faults import after_fault

SCENARIO = Scenario(
    id="device-assert",
    summary="A device-side assert failed (an index or label out of range); cudnnSetStream and cudnnCreate afterwards",
    phrase="an earlier device-side assert (710)",
    shows="The context is poisoned: every later call fails, and cuDNN's status is only the messenger.",
    cause="device-assert-bad-index",
    danger="faults-context",
    points=(
        point("before", v8=0, v9=0),
        point("fault", v8=710, v9=710),
        point("own stream", v8=7, v9=4000, but={"9.1.0": 2007}),
        point("NULL stream", v8=7, v9=2007),
        point("stream of a handle that had none", v8=7, v9=2007),
        point("new handle", v8=4, v9=4000),
    ),
)
# Leaves Xid 43 or 13 in the kernel log.
HEAD = """.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 words[8] = {105, 60, 110, 0, 0, 0, 0, 0};
"""
BODY = """
    .reg .u64 %text;
    .param .b64 message;
    .param .b64 file;
    .param .b32 line;
    .param .b64 function;
    .param .b64 size;
    mov.u64 %text, words;
    cvta.global.u64 %text, %text;
    st.param.b64 [message], %text;
    st.param.b64 [file], %text;
    st.param.b32 [line], 1;
    st.param.b64 [function], %text;
    st.param.b64 [size], 1;
    call __assertfail, (message, file, line, function, size);
"""


def run(s: Session) -> None:
    after_fault(s, BODY, HEAD)
