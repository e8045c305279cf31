"""Does every execution plan of cuDNN's engines honour the stream of the handle that it is executed with?

The parent side is `examination` (children, restarts), `collect` and `verdicts` (what was seen, what it means); a child
runs `body` with `graphs`, `plans`, `detectors` and `gpu`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudnn_doctor.engines.types import EngineOptions, EngineProgress, EnginesReport
    from cudnn_doctor.model import Finding, Snapshot


def run(options: EngineOptions, progress: Callable[[EngineProgress], None] | None = None) -> EnginesReport:
    """Examines every engine that the options ask for. An interruption (Ctrl-C) gives the report of what there is.

    Raises:
        UsageError: an operation or data type that is not known, or no libcudnn at the path.
    """
    from cudnn_doctor.engines.examination import run

    return run(options, progress)


def findings(report: EnginesReport, snapshot: Snapshot | None = None, at: str = "") -> tuple[Finding, ...]:
    """What the rules CD650 to CD654 say of an examination; `at` is its JSON pointer in the document of the findings."""
    from cudnn_doctor.rules.engines import findings

    return findings(report, snapshot, at)
