"""GitHub Actions: one workflow command a problem, which the run's page shows as an annotation.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions, read 2026-11-30: data escape `%`, CR and
LF; property values `:` and `,` too.
"""

from __future__ import annotations

from cudnn_doctor.model.report import Report
from cudnn_doctor.model.verdict import heading
from cudnn_doctor.render import summary
from cudnn_doctor.render.clean import one_line, visible

LEVELS: dict[summary.State, str] = {"crashed": "error", "error": "error", "warning": "warning", "note": "notice"}


def render_github(report: Report) -> str:
    """The commands, the verdict last. The job summary is `render_markdown` of the same report."""
    lines = [
        _command(LEVELS[summary.state_of(c.finding)], one_line(c.heading), "\n".join(_told(c)))
        for c in summary.causes(report, *LEVELS)
    ]
    level = {"ok": "notice", "problem": "error", "no-verdict": "error"}[report.verdict]
    verdict = f"{report.reason} (exit code {report.exit_code})\n{summary.next_step(report)}"
    return "\n".join((*lines, _command(level, f"cudnn-doctor: {report.verdict}", verdict))) + "\n"


def _told(cause: summary.Cause) -> tuple[str, ...]:
    return (*summary.in_full(cause.finding), *(f"So: {heading(f)}" for f in cause.consequences))


def _command(level: str, title: str, message: str) -> str:
    name = _data(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{_data(message or title)}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
