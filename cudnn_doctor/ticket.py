"""`report`: everything about a case in one document. Joins what the other commands find out, then redacts all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

import msgspec

from cudnn_doctor import engine, exits
from cudnn_doctor.explain.types import Explanation
from cudnn_doctor.model import Base, Finding, Report, ScenarioResult
from cudnn_doctor.redact import Redaction, Redactor, marked, this_machine
from cudnn_doctor.report_file import Attachment

LOG_LIMIT = 4 << 20  # bytes of a log that go into the archive, from its end


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
    progress("examining this machine" if not request.replay else "judging the recording")
    facts = engine.load(request.replay) if request.replay else engine.gather(request.options, environ)
    report = engine.judge(facts, request.options, today)
    if request.states:
        report = _joined(report, *_states(request, environ, progress))
    if request.engines:
        report = _joined(report, _engines(request, environ, progress), ())
    logs = tuple(Attachment(name=p.name, text=_tail(p)) for p in request.logs)
    explanation = None
    if request.logs:
        from cudnn_doctor.explain import explain

        progress("reading the logs")
        explanation = explain(request.logs, snapshot=facts.snapshot)
    if not request.redact:
        return Ticket(report=marked(report, None), explanation=explanation, logs=logs, redactions=())
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


def _states(
    request: Request, environ: Mapping[str, str], progress: Callable[[str], None]
) -> tuple[tuple[Finding, ...], tuple[ScenarioResult, ...]]:
    from cudnn_doctor.reproduce import types
    from cudnn_doctor.reproduce.gather import gather
    from cudnn_doctor.reproduce.report import report
    from cudnn_doctor.reproduce.run import run_states

    patient = engine.find_patient(request.options, environ)
    found = gather(patient, environ, "all" if request.options.all_cudnn else None, request.options.devices)
    results = run_states(
        types.Request(), found.copies, found.devices, found.mps, environ, lambda d, n, s: progress(f"{d} of {n}: {s}")
    )
    return report(results, found.copies, found.devices).findings, results


def _engines(request: Request, environ: Mapping[str, str], progress: Callable[[str], None]) -> tuple[Finding, ...]:
    from cudnn_doctor.engines.run import run
    from cudnn_doctor.engines.types import EngineOptions
    from cudnn_doctor.render.engines import progress_line
    from cudnn_doctor.rules.engines import findings

    bench = engine.bench(request.options, environ, None)
    ((path, preload), *_) = bench.copies
    options = EngineOptions(cudnn=path, preload=preload, device=bench.devices[0], quick=True)
    return findings(run(options, lambda p: progress(progress_line(p))))


def _joined(report: Report, findings: tuple[Finding, ...], scenarios: tuple[ScenarioResult, ...]) -> Report:
    """The report with more findings; they can make the verdict worse, never better."""
    together = (*report.findings, *findings)
    verdict, reason = exits.judge(together)
    if verdict == "ok" and report.verdict != "ok":
        verdict, reason = report.verdict, report.reason
    return msgspec.structs.replace(
        report,
        findings=together,
        scenarios=(*report.scenarios, *scenarios),
        verdict=verdict,
        reason=reason,
        exit_code=exits.exit_code(verdict, together),
    )


def _tail(path: Path) -> str:
    with path.open("rb") as f:
        size = f.seek(0, 2)
        f.seek(max(0, size - LOG_LIMIT))
        return f.read(LOG_LIMIT).decode("utf-8", "replace")
