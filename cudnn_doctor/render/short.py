"""One-line forms: `--quiet` for prologs and health checks, and the status line of Nagios plugins."""

from __future__ import annotations

from cudnn_doctor.model.report import Report
from cudnn_doctor.model.verdict import RANK, exit_code
from cudnn_doctor.render import summary
from cudnn_doctor.render.clean import disarmed, one_line

NAGIOS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


def render_quiet(report: Report) -> str:
    """Nothing when the verdict is ok, else a line a problem that counts, with its first fix; the reason where there is
    none."""
    if report.verdict == "ok":
        return ""
    counting = [
        c
        for c in summary.causes(report, "error", "warning", "note")
        if RANK[c.finding.severity] >= RANK[report.fail_on]
    ]
    lines = [_line(c) for c in counting] or [f"{report.verdict}: {report.reason}"]
    return "".join(f"{disarmed(one_line(line))}\n" for line in lines)


def _line(cause: summary.Cause) -> str:
    finding = cause.finding
    fix = finding.fixes[0] if finding.fixes else None
    proof = f" ({fix.proof.text})" if fix and fix.proof else ""
    remedy = f"; fix: {fix.command or fix.text}{proof}" if fix else ""
    return f"{finding.severity}: {cause.heading}{remedy}"


def render_nagios(report: Report) -> str:
    """ "CUDNN CRITICAL - CD301 ... | errors=1 warnings=0 unknown=0 live_ms=420": the plugin guidelines' one line, in
    which a "|" begins the performance data."""
    state = NAGIOS[exit_code(report.verdict, report.findings, "nagios")]
    found = [summary.state_of(f) for f in report.findings if not f.consequence_of]
    worst = summary.causes(report, "error", "warning")
    reason = worst[0].heading if worst and report.verdict != "no-verdict" else report.reason
    more = f" (and {len(worst) - 1} more)" if len(worst) > 1 else ""
    numbers = {
        "errors": f"{found.count('error')}",
        "warnings": f"{found.count('warning')}",
        "unknown": f"{found.count('unknown') + found.count('crashed')}",
    }
    slowest = max((r.ms for r in report.scenarios if r.scenario == "live-check"), default=None)
    if slowest is not None:
        numbers["live"] = f"{slowest:.0f}ms"
    data = " ".join(f"{name}={value}" for name, value in numbers.items())
    return disarmed(f"CUDNN {state} - {one_line(reason).replace('|', '/')}{more} | {data}\n")
