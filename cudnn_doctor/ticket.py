"""`report`: everything about a case in one document. Joins what the other commands find out, then redacts all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

from cudnn_doctor import deeper, engine
from cudnn_doctor.explain.types import Explanation
from cudnn_doctor.model import Base, Report
from cudnn_doctor.redact import Redaction, Redactor, marked, this_machine
from cudnn_doctor.report_file import Attachment

LOG_LIMIT = 1 << 20  # bytes of a log that go into the archive, from its end; redaction takes 0.3 s for each MiB


class Request(Base, frozen=True, kw_only=True):
    """What the user wants in the document."""

    options: engine.Options
    replay: str | None = None
    logs: tuple[Path, ...] = ()
    states: bool = False
    engines: bool = False
    redact: bool = True


class Ticket(Base, frozen=True, kw_only=True):
    """The document's parts, redacted unless the user declined it."""

    report: Report
    explanation: Explanation | None
    logs: tuple[Attachment, ...]
    redactions: tuple[Redaction, ...]


def make(request: Request, environ: Mapping[str, str], today: date, progress: Callable[[str], None]) -> Ticket:
    """Examines, explains and redacts.

    Raises:
        UsageError: as `engine.gather`, `engine.load`, `engine.bench` and `engine.judge`.
        OSError: a log that cannot be read.
    """
    progress("examining this machine" if request.replay is None else "judging the recording")
    facts = engine.facts(request.options, environ, request.replay)
    report = engine.judge(facts, request.options, today)
    report = deeper.add(
        report, request.options, environ, progress,
        states=request.states, engines=request.engines, replayed=request.replay is not None,
    )  # fmt: skip
    logs = tuple(Attachment(name=p.name, text=_tail(p)) for p in request.logs)
    explanation = None
    if request.logs:
        from cudnn_doctor.explain import explain

        progress("reading the logs")
        explanation = explain(request.logs, snapshot=facts.snapshot)
    if not request.redact:
        return Ticket(report=marked(report, None), explanation=explanation, logs=logs, redactions=())
    progress("redacting")
    redactor = Redactor(this_machine(environ))
    for document in (report, explanation):
        if document is not None:
            redactor.learn(document)
    for log in logs:
        redactor.learn(log.text)
    clean = redactor.struct(report)
    told = redactor.struct(explanation) if explanation is not None else None
    logs = tuple(Attachment(name=redactor.text(a.name), text=redactor.log(a.text)) for a in logs)
    return Ticket(
        report=marked(clean, redactor.redactions), explanation=told, logs=logs, redactions=redactor.redactions
    )


def _tail(path: Path) -> str:
    """The end of a log, from the beginning of a line: half a line might be half a secret, and no pattern knows it."""
    with path.open("rb") as f:
        size = f.seek(0, 2)
        f.seek(max(0, size - LOG_LIMIT))
        text = f.read(LOG_LIMIT).decode("utf-8", "replace")
    if size <= LOG_LIMIT:
        return text
    kept = text.partition("\n")[2]
    return f"[... the first {size - len(kept.encode())} bytes are left out ...]\n{kept}"
