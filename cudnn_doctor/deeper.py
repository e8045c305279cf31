"""What `check --deep` and `report` add to an examination: the states of `reproduce`, the quick form of `engines`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cudnn_doctor import engine, exits
from cudnn_doctor.model import Finding, Report, ScenarioResult, Verdict


def add(
    report: Report,
    options: engine.Options,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
    *,
    states: bool = False,
    engines: bool = False,
    replayed: bool = False,
) -> Report:
    """The report with what the wanted commands find on this machine; where they have nothing to work on, a note says
    so and the report is no pass.

    Raises:
        UsageError: the report is of a recording.
    """
    if replayed and (states or engines):
        raise engine.UsageError("a recording holds no GPU: --deep, --reproduce and --engines work on this machine.")
    try:
        if states:
            report = _joined(report, *_states(options, environ, progress), options=options)
        if engines:
            report = _joined(report, _engines(options, environ, progress), (), options=options)
    except ValueError as e:
        verdict: Verdict = "no-verdict" if report.verdict == "ok" else report.verdict
        report = msgspec.structs.replace(
            report,
            verdict=verdict,
            reason=str(e) if report.verdict == "ok" else report.reason,
            exit_code=exits.exit_code(verdict, report.findings, options.exit_style),
            notes=(*report.notes, f"Not gone deeper: {e}"),
        )
    return report


def _states(
    options: engine.Options, environ: Mapping[str, str], progress: Callable[[str], None]
) -> tuple[tuple[Finding, ...], tuple[ScenarioResult, ...]]:
    from cudnn_doctor.reproduce.command import Wanted, reproduce_here

    wanted = Wanted(cudnn="all" if options.all_cudnn else None, devices=options.devices)
    patient = engine.find_patient(options, environ)
    document = reproduce_here(
        wanted, patient, environ, lambda done, all_, state: progress(f"{done} of {all_}: {state}")
    )
    return document.findings, document.scenarios


def _engines(
    options: engine.Options, environ: Mapping[str, str], progress: Callable[[str], None]
) -> tuple[Finding, ...]:
    from cudnn_doctor.engines.run import run
    from cudnn_doctor.engines.types import EngineOptions
    from cudnn_doctor.render.engines import progress_line
    from cudnn_doctor.rules.engines import findings

    bench = engine.bench(options, environ, None)
    ((path, preload), *_) = bench.copies
    wanted = EngineOptions(cudnn=path, preload=preload, device=bench.devices[0], quick=True)
    return findings(run(wanted, lambda p: progress(progress_line(p))))


def _joined(
    report: Report,
    findings: tuple[Finding, ...],
    scenarios: tuple[ScenarioResult, ...],
    *,
    options: engine.Options,
) -> Report:
    """The report with more findings; they can make the verdict worse, never better."""
    together = (*report.findings, *findings)
    verdict, reason = exits.judge(together, fail_on=options.fail_on)
    if verdict == "ok" and report.verdict != "ok":
        verdict, reason = report.verdict, report.reason
    return msgspec.structs.replace(
        report,
        findings=together,
        scenarios=(*report.scenarios, *scenarios),
        verdict=verdict,
        reason=reason,
        exit_code=exits.exit_code(verdict, together, options.exit_style),
    )
