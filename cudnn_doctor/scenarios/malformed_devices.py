"""CUDA_VISIBLE_DEVICES names no device ("gpu0")."""

from __future__ import annotations

from typing import Any

from cudnn_doctor.live.session import bare_create
from cudnn_doctor.live.wire import Wire
from cudnn_doctor.scenarios.base import Scenario, point

SCENARIO = Scenario(
    id="malformed-devices",
    summary='CUDA_VISIBLE_DEVICES names no device ("gpu0")',
    phrase="a malformed CUDA_VISIBLE_DEVICES",
    shows="The list ends at its first entry that is no device, without any message: here nothing is left of it.",
    cause="environment-restriction",
    danger="harmless",
    alone=True,
    set_env=(("CUDA_VISIBLE_DEVICES", "gpu0"),),
    points=(point("cuInit", v8=100, v9=100), point("cudnnCreate", v8=1, v9=1001)),
)


def run_bare(wire: Wire, args: dict[str, Any]) -> None:
    bare_create(wire, args)
