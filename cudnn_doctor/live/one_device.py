"""One device for one child: cuInit takes 0.1 s for each device that it sees."""

from __future__ import annotations

from collections.abc import Mapping


def only(ordinal: int, environ: Mapping[str, str]) -> str:
    """The value of CUDA_VISIBLE_DEVICES that leaves nothing but the device with this ordinal, then number 0.

    Numbers in the variable count in the order that CUDA_DEVICE_ORDER sets, as ordinals do without it.
    """
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    entries = listed.split(",") if listed is not None else []
    return entries[ordinal].strip() if ordinal < len(entries) else str(ordinal)
