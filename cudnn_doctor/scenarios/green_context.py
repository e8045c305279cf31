"""A stream of a green context (a share of the SMs) with a handle of the primary context."""

from __future__ import annotations

from cudnn_doctor.live.session import NON_BLOCKING, Session
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="green-context",
    summary="Stream of a green context with a handle of the primary context (CUDA 12.4 and later)",
    phrase="a stream of a green context",
    shows="A green context shares its parent's memory and is no other context to cuDNN.",
    cause="device-context-mixup",
    danger="harmless",
    points=(point("green stream", v8=0, v9=0),),
)
SMS = 8  # the least share on Hopper; rounded up by the driver where more is the least


def run(s: Session) -> None:
    s.primary()
    handle = s.handle()
    device = s.cuda("cuDeviceGet", s.device, must=True).value
    sm = s.bindings.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    whole = s.cuda("cuDeviceGetDevResource", device, sm, must=True).value
    groups = s.cuda("cuDevSmResourceSplitByCount", 1, whole, 0, SMS, must=True).value
    description = s.cuda("cuDevResourceGenerateDesc", groups[:1], 1, must=True).value
    flag = s.bindings.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
    green = s.cuda("cuGreenCtxCreate", description, device, flag, must=True).value
    stream = int(s.cuda("cuGreenCtxStreamCreate", green, NON_BLOCKING, 0, must=True).value)
    s.set_stream(handle, stream, "green stream")
    s.set_stream(handle, 0, "NULL stream")
    s.destroy(handle, stream)
    s.cuda("cuGreenCtxDestroy", green)
