"""A log or ticket goes in, the root cause comes out. Importing this loads nothing heavy.

Every verdict is an answer (exit code 0); only input that cannot be read is none (`InputError`, exit code 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cudnn_doctor.model.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from cudnn_doctor.model.explanation import Explanation
    from cudnn_doctor.model.facts import Snapshot

    Source = str | PathLike[str]

__all__ = ["TIMEOUT", "InputError", "answer", "explain", "explain_each"]

TIMEOUT = 60.0  # seconds for reading


def answer(
    sources: Sequence[Source], *, snapshot: Snapshot | None = None, timeout: float = TIMEOUT
) -> Mapping[str, Any]:
    """The explanation of the sources as one case, as plain data of the form of `types.Explanation`: for the command
    line, where starting fast matters. `"-"` is standard input.

    `snapshot`: facts of the machine itself, for what the text does not state. `timeout`: seconds for reading; what has
    come until then is explained.

    Raises:
        InputError: a source cannot be read.
    """
    from cudnn_doctor.diagnose.diagnose import explain_case

    return explain_case(sources, snapshot=snapshot, timeout=timeout)


def explain(sources: Sequence[Source], *, snapshot: Snapshot | None = None, timeout: float = TIMEOUT) -> Explanation:
    """As `answer`, typed.

    Raises:
        InputError: a source cannot be read.
    """
    import msgspec

    from cudnn_doctor.model.explanation import Explanation

    return msgspec.convert(answer(sources, snapshot=snapshot, timeout=timeout), Explanation)


def explain_each(
    sources: Sequence[Source], *, snapshot: Snapshot | None = None, timeout: float = TIMEOUT
) -> list[Explanation]:
    """One explanation for each source (`--separate`).

    Raises:
        InputError: a source cannot be read.
    """
    return [explain([source], snapshot=snapshot, timeout=timeout) for source in sources]
