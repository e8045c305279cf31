"""A log or ticket goes in, the root cause comes out. Importing this loads nothing heavy.

Every verdict is an answer (exit code 0); only input that cannot be read is none (`InputError`, exit code 2).
"""

from __future__ import annotations

from collections.abc import Sequence

from cudnn_doctor.model.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from cudnn_doctor.diagnose.given import GivenFinding
    from cudnn_doctor.model.explanation import Explanation
    from cudnn_doctor.model.facts import Snapshot

    Source = str | PathLike[str]

__all__ = ["TIMEOUT", "InputError", "explain", "explain_each"]

TIMEOUT = 60.0  # seconds for reading


def explain(
    sources: Sequence[Source],
    *,
    snapshot: Snapshot | None = None,
    findings: tuple[GivenFinding, ...] = (),
    timeout: float = TIMEOUT,
) -> Explanation:
    """The explanation of the sources as one case. `"-"` is standard input; a snapshot or report of cudnn-doctor among
    them tells of the machine.

    `snapshot`: facts of the machine that wrote the text. `findings`: what is known of it otherwise. `timeout`: seconds
    for reading; what has come until then is explained.

    Raises:
        InputError: a source cannot be read.
    """
    from cudnn_doctor.diagnose.diagnose import explain_case
    from cudnn_doctor.diagnose.given import Given

    return explain_case(sources, beside=Given(snapshot=snapshot, findings=findings), timeout=timeout)


def explain_each(
    sources: Sequence[Source], *, snapshot: Snapshot | None = None, timeout: float = TIMEOUT
) -> list[Explanation]:
    """One explanation for each source (`--separate`).

    Raises:
        InputError: a source cannot be read.
    """
    return [explain([source], snapshot=snapshot, timeout=timeout) for source in sources]
