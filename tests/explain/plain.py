"""Explanations as plain data, in the form of `explain --format json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cudnn_doctor.diagnose import explain
from cudnn_doctor.model.facts import Snapshot


def answer(sources: Sequence[str | Path], *, snapshot: Snapshot | None = None, timeout: float = 60.0) -> dict[str, Any]:
    """As `explain`, plain."""
    found: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(explain(sources, snapshot=snapshot, timeout=timeout))
    )
    return found
