"""Forms of a report: pure functions from `Report` to text. Nothing here prints, reads the machine or judges."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from cudnn_doctor.model.report import Report

    Format = Literal["text", "json", "markdown", "html", "junit", "sarif", "github", "quiet", "nagios"]

FORMATS: tuple[Format, ...] = ("text", "json", "markdown", "html", "junit", "sarif", "github", "quiet", "nagios")

# Loaded on use only: `--format json` must not pay for the others.
_DOCUMENTS: dict[str, str] = {
    "json": "json_:render_json",
    "markdown": "markdown:render_markdown",
    "html": "html:render_html",
    "junit": "junit:render_junit",
    "sarif": "sarif:render_sarif",
    "github": "github:render_github",
    "quiet": "short:render_quiet",
    "nagios": "short:render_nagios",
}


def render(
    report: Report, fmt: Format, *, width: int = 80, color: bool = False, verbose: bool = False, encoding: str = "utf-8"
) -> str:
    """The report in the form `fmt`. `width`, `color`, `verbose` and `encoding` matter to `text` alone; the others are
    documents in UTF-8."""
    if fmt == "text":
        from cudnn_doctor.render.text import render_text

        return render_text(report, width=width, color=color, verbose=verbose, encoding=encoding)
    module, name = _DOCUMENTS[fmt].split(":")
    document: str = getattr(import_module(f"cudnn_doctor.render.{module}"), name)(report)
    return document
