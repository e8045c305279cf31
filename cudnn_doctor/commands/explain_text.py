"""The whole of `explain`: a code or logs in, text in the wanted form out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from cudnn_doctor.diagnose.given import GivenFinding
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
    from cudnn_doctor.render.explain import as_json, render

    cases = [[w] for w in what] if separate else [list(what)]
    answers = [_explained(c, snapshot, timeout) for c in cases]
    if separate and form == "json":
        return as_json(answers)
    return "\n".join(render(a, form, width=width, color=color, encoding=encoding) for a in answers)


def _explained(case: list[str], snapshot: Snapshot | None, timeout: float) -> Explanation:
    """A case; a recording of `run` in it tells what happened in that very run, alone or beside the log.

    Raises:
        InputError: several recordings and no log.
    """
    from cudnn_doctor.diagnose import InputError, explain

    recordings = {source: data for source in case if (data := _recorded(source, timeout))}
    if not recordings:
        return explain(case, snapshot=snapshot, timeout=timeout)
    runs = [_judged(source, data) for source, data in recordings.items()]
    texts = [source for source in case if source not in recordings]
    if texts:
        findings = tuple(found for run in runs for found in _findings(run))
        return explain(texts, snapshot=snapshot, findings=findings, timeout=timeout)
    if len(runs) > 1:
        raise InputError(f"{len(runs)} recordings of `run` are {len(runs)} cases: add --separate, or give one of them")
    return runs[0]


def _recorded(source: str, timeout: float) -> bytes:
    """A recording of `run`, packed or not; empty for any other source.

    Raises:
        InputError: the source cannot be read.
    """
    if source == "-" or not os.path.isfile(source):  # what can be read once is left to `explain`
        return b""
    import time

    from cudnn_doctor.logs.sources import open_sources

    for stream in open_sources([source], time.monotonic() + timeout, []):
        first = next(stream.pieces, b"")
        if RECORDING in first[:HEAD]:
            data = bytearray(first)
            for piece in stream.pieces:
                data += piece
                if len(data) >= LIMIT:
                    break
            return bytes(data[:LIMIT])
    return b""


def _judged(source: str, recording: bytes) -> Explanation:
    """The explanation of a recording of `run`."""
    from cudnn_doctor.commands.run_report import judge
    from cudnn_doctor.model.run_recording import decode_run

    return judge(decode_run(recording, source))


def _findings(run: Explanation) -> Iterator[GivenFinding]:
    """What a run shows beside a log: the cause that its events prove or make likely."""
    from cudnn_doctor.diagnose.given import GivenFinding

    if run.verdict == "cause-found":
        best = run.causes[0]
        title = best.evidence[0].text if best.evidence else best.title
        proved = best.confidence == "confirmed"
        yield GivenFinding(code="run", status="problem", title=title, causes=(best.cause,), proved=proved)
