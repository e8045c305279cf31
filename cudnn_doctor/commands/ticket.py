"""`report`: everything about a case in one document. Joins what the other commands find out, then redacts all of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from time import monotonic

from cudnn_doctor import trials
from cudnn_doctor.commands import live_tests
from cudnn_doctor.model.base import Base
from cudnn_doctor.model.explanation import Explanation
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Report
from cudnn_doctor.model.run_recording import RunRecording, encode_run
from cudnn_doctor.redact.changes import Change, doubtful
from cudnn_doctor.redact.redactor import Redaction, Redactor, marked, this_machine
from cudnn_doctor.render.archive import Attachment

SECONDS = 60.0  # for unpacking a log
LOG_LIMIT = 1 << 20  # bytes of a log that go into the archive, from its end; redaction takes 0.4 s for each MiB


class Request(Base, frozen=True, kw_only=True):
    """What the user wants in the document."""

    options: Options
    replay: str | None = None
    logs: tuple[Path, ...] = ()
    states: bool = False
    engines: bool = False
    run: RunRecording | None = None  # of `run`, with what came of it
    explanation: Explanation | None = None
    redact: bool = True


class Ticket(Base, frozen=True, kw_only=True):
    """The document's parts, redacted unless the user declined it."""

    report: Report
    explanation: Explanation | None
    logs: tuple[Attachment, ...]
    redactions: tuple[Redaction, ...]
    changes: tuple[Change, ...] = ()
    doubtful: tuple[str, ...] = ()  # lines of the logs that were left and look as if they held a secret


def make(request: Request, environ: Mapping[str, str], today: date, progress: Callable[[str], None]) -> Ticket:
    """Examines, explains and redacts.

    Raises:
        UsageError: as `examine.gather`, `recordings.load`, `examine.live_targets` and `judge`.
        OSError, InputError: a log that cannot be read.
    """
    progress("examining this machine" if request.replay is None else "judging the recording")
    facts, report = trials.check(request.options, environ, request.replay, today)
    report = live_tests.add(
        report, request.options, environ, progress,
        states=request.states, engines=request.engines, replayed=request.replay is not None,
    )  # fmt: skip
    logs = tuple(end for p in request.logs for end in _ends(p))
    explanation = request.explanation
    if request.logs:
        from cudnn_doctor.diagnose import explain

        progress("reading the logs")
        explanation = explain(request.logs, snapshot=facts.snapshot)
    if not request.redact:
        logs = (*_recorded(request.run), *logs)
        return Ticket(report=marked(report, None), explanation=explanation, logs=logs, redactions=())
    progress("redacting")
    redactor = Redactor(this_machine(environ))
    for document in (report, explanation, request.run):
        if document is not None:
            redactor.learn(document)
    for log in logs:
        redactor.learn(log.text)
    clean = redactor.struct(report)
    told = redactor.struct(explanation) if explanation is not None else None
    run = redactor.struct(request.run) if request.run is not None else None
    logs = tuple(Attachment(name=redactor.text(a.name), text=redactor.text(a.text)) for a in logs)
    logs = (*_recorded(run), *logs)
    return Ticket(
        report=marked(clean, redactor.redactions),
        explanation=told,
        logs=logs,
        redactions=redactor.redactions,
        changes=tuple(redactor.changes()),
        doubtful=tuple(dict.fromkeys(line for log in logs for line in doubtful(log.text))),
    )


def _recorded(run: RunRecording | None) -> tuple[Attachment, ...]:
    """The recording of a run for the archive; `explain` reads it."""
    return (Attachment(name="run.jsonl", text=encode_run(run).decode()),) if run is not None else ()


def _ends(path: Path) -> Iterator[Attachment]:
    """The end of a log as text, whatever it is packed and written in: of bytes that are no text no pattern would know
    what to replace. A zip gives one for each file in it.

    Raises:
        OSError: a pipe or a device.
        InputError: it cannot be read.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(f"--log {path} is a pipe or a device: write it to a file first, a log is read twice.")
    from cudnn_doctor.logs.sources import open_sources

    for stream in open_sources([str(path)], monotonic() + SECONDS, []):
        if stream.again:  # a plain file
            with path.open("rb") as f:
                size = os.fstat(f.fileno()).st_size  # 0 in /proc
                f.seek(max(0, size - LOG_LIMIT))
                end = f.read(LOG_LIMIT)
        else:
            size, end = 0, b""
            for piece in stream.pieces:
                size += len(piece)
                end = (end + piece)[-LOG_LIMIT:]
        name = Path(stream.name)  # what was packed is not any more
        name = name.with_suffix("") if name.suffix in (".gz", ".xz", ".bz2", ".zst") else name
        yield Attachment(name=name.name, text=_whole_lines(end.decode("utf-8", "replace"), size))


def _whole_lines(text: str, size: int) -> str:
    """From the beginning of a line: half a line might be half a secret, and no pattern knows it."""
    if size <= LOG_LIMIT:
        return text
    kept = text.partition("\n")[2]
    return f"[... the first {size - len(kept.encode())} bytes are left out ...]\n{kept}"
