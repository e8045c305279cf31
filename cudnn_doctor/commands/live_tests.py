"""What `check --deep` and `report` add to an examination: the states of `reproduce`, the quick form of `engines`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from cudnn_doctor import examine
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Finding, Report, Verdict
from cudnn_doctor.model.verdict import exit_code, verdict_of


def add(
    report: Report,
    options: Options,
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
        UsageError: the report is of a recording, or the user wants the GPUs left alone.
    """
    if not options.live and (states or engines):
        raise UsageError("--deep, --reproduce and --engines use the GPUs, and --no-live leaves them alone.")
    if replayed and (states or engines):
        raise UsageError("a recording holds no GPU: --deep, --reproduce and --engines work on this machine.")
    try:
        if states:
            report = _with_states(report, options, environ, progress)
        if engines:
            report = _with_engines(report, options, environ, progress)
    except ValueError as e:
        verdict: Verdict = "no-verdict" if report.verdict == "ok" else report.verdict
        report = msgspec.structs.replace(
            report,
            verdict=verdict,
            reason=str(e) if report.verdict == "ok" else report.reason,
            exit_code=exit_code(verdict, report.findings, options.exit_style),
            notes=(*report.notes, f"Extra live tests were not run: {e}"),
        )
    return report


def _with_states(
    report: Report, options: Options, environ: Mapping[str, str], progress: Callable[[str], None]
) -> Report:
    from cudnn_doctor.reproduce.command import Wanted, reproduce_here

    wanted = Wanted(cudnn="all" if options.all_cudnn else None, devices=options.devices)
    patient = examine.find_target_env(options, environ)
    document = reproduce_here(wanted, patient, environ, lambda done, of, state: progress(f"{done} of {of}: {state}"))
    before = len(report.scenarios)
    rest = msgspec.to_builtins(msgspec.structs.replace(document, scenarios=(), findings=()))
    report = msgspec.structs.replace(report, scenarios=(*report.scenarios, *document.scenarios), reproduction=rest)
    return _joined(report, [_repointed(f, lambda p: _in_report(p, before)) for f in document.findings], options)


def _in_report(pointer: str, before: int) -> str:
    """A pointer into the document of `reproduce` as one into the report, whose first `before` scenarios are others."""
    _, head, *rest = pointer.split("/")
    if head != "scenarios":
        return f"/reproduction{pointer}"
    return "/".join(["", head, *([str(int(rest[0]) + before), *rest[1:]] if rest else [])])


def _repointed(finding: Finding, pointer: Callable[[str], str]) -> Finding:
    evidence = tuple(msgspec.structs.replace(e, pointer=pointer(e.pointer)) for e in finding.evidence)
    return msgspec.structs.replace(finding, evidence=evidence)


def _with_engines(
    report: Report, options: Options, environ: Mapping[str, str], progress: Callable[[str], None]
) -> Report:
    from cudnn_doctor.engines.run import run
    from cudnn_doctor.model.engines import EngineOptions
    from cudnn_doctor.render.engines import progress_line
    from cudnn_doctor.rules.engines import findings

    bench = examine.live_targets(options, environ, None)
    ((path, preload), *_) = bench.copies
    wanted = EngineOptions(cudnn=path, preload=preload, device=bench.devices[0], quick=True)
    seen = run(wanted, lambda p: progress(progress_line(p)))
    report = msgspec.structs.replace(report, engines=msgspec.to_builtins(seen))
    return _joined(report, findings(seen, at="/engines"), options)


def _joined(report: Report, findings: Sequence[Finding], options: Options) -> Report:
    """The report with more findings; they can make the verdict worse, never better."""
    together = (*report.findings, *findings)
    verdict, reason = verdict_of(together, fail_on=options.fail_on)
    if verdict == "ok" and report.verdict != "ok":
        verdict, reason = report.verdict, report.reason
    return msgspec.structs.replace(
        report,
        findings=together,
        verdict=verdict,
        reason=reason,
        exit_code=exit_code(verdict, together, options.exit_style),
    )
