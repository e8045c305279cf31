"""No device is visible (CUDA_VISIBLE_DEVICES is empty)."""

from __future__ import annotations

from typing import Any

from cudnn_doctor.live.session import bare_create
from cudnn_doctor.live.wire import Wire
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="no-device",
    summary="No device is visible (CUDA_VISIBLE_DEVICES is empty)",
    phrase="no visible device",
    shows='An empty CUDA_VISIBLE_DEVICES hides every GPU: cuInit says 100 and cuDNN "not initialised", not a mismatch.',
    cause="environment-restriction",
    danger="harmless",
    alone=True,
    set_env=(("CUDA_VISIBLE_DEVICES", ""),),
    points=(point("cuInit", v8=100, v9=100), point("cudnnCreate", v8=1, v9=1001)),
)


def run_bare(wire: Wire, args: dict[str, Any]) -> None:
    bare_create(wire, args)
