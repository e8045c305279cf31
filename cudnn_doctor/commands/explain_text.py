"""The whole of `explain`: a code or logs in, text in the wanted form out."""

from __future__ import annotations

import os
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from cudnn_doctor.model.explanation import Explanation
    from cudnn_doctor.model.facts import Snapshot

    Form = Literal["text", "json", "markdown"]

RECORDING = b'"schema":"cudnn-doctor/run/1"'
HEAD, LIMIT = 64, 64 << 20  # bytes within which a recording names itself, and that are read of it


def answer(
    what: Sequence[str],
    form: Form,
    *,
    separate: bool = False,
    snapshot: Snapshot | None = None,
    timeout: float = 60.0,
    width: int = 100,
    color: bool = False,
    encoding: str = "utf-8",
) -> str:
    """What is known of a code, where `what` is one and no file of that name exists; else what the logs tell.

    Raises:
        ValueError: a code that nobody knows, or a source that cannot be read.
    """
    if what[0] != "-" and not any(map(os.path.lexists, what)):
        from cudnn_doctor.diagnose.codes import explain_code, is_code

        asked = " ".join(what)
        if is_code(asked):
            found = explain_code(asked)
            if form == "json":
                from cudnn_doctor.model.base import encode

                return encode(found).decode()
            from cudnn_doctor.render.code_answer import render_code

            return render_code(found, width=width, color=color and form == "text", encoding=encoding)
    from cudnn_doctor.diagnose import explain
    from cudnn_doctor.render.explain import as_json, render

    cases = [[w] for w in what] if separate else [list(what)]
    answers = [_recorded(c) or explain(c, snapshot=snapshot, timeout=timeout) for c in cases]
    if separate and form == "json":
        return as_json(answers)
    return "\n".join(render(a, form, width=width, color=color, encoding=encoding) for a in answers)


def _recorded(case: Sequence[str]) -> Explanation | None:
    """The explanation of a recording of `run`, where the case is one."""
    if len(case) != 1 or case[0] == "-" or not os.path.isfile(case[0]):
        return None
    with open(case[0], "rb") as file:
        if RECORDING not in file.read(HEAD):
            return None
        file.seek(0)
        data = file.read(LIMIT)
    from cudnn_doctor.commands.run_report import judge
    from cudnn_doctor.model.run_recording import decode_run

    return judge(decode_run(data, case[0]))
