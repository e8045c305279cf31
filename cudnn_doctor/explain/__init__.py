"""A log or ticket goes in, the root cause comes out. Importing this loads nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudnn_doctor.explain.types import Explanation
    from cudnn_doctor.model import Snapshot

TIMEOUT = 60.0  # seconds for reading


def explain(
    sources: Sequence[Path | str], *, snapshot: Snapshot | None = None, timeout: float = TIMEOUT
) -> Explanation:
    """Explains the sources as one case; `"-"` is standard input.

    `snapshot`: facts of the machine itself, for what the text does not state. `timeout`: seconds for reading; what has
    come until then is explained.

    Raises:
        InputError: a source cannot be read.
    """
    from cudnn_doctor.explain.case import explain_case

    return explain_case(sources, snapshot=snapshot, timeout=timeout)


def explain_each(
    sources: Sequence[Path | str], *, snapshot: Snapshot | None = None, timeout: float = TIMEOUT
) -> list[Explanation]:
    """One explanation for each source (`--separate`).

    Raises:
        InputError: a source cannot be read.
    """
    return [explain([source], snapshot=snapshot, timeout=timeout) for source in sources]
