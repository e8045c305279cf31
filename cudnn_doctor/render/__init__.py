"""Forms of a report: pure functions from `Report` to text. Nothing here prints, reads the machine or judges."""

from __future__ import annotations

from importlib import import_module
from typing import Literal, get_args

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudnn_doctor.model.report import Report

# A format is its word here and a module of that name with a function `render_<format>`.
Format = Literal["text", "json", "markdown", "html", "junit", "sarif", "github"]
Short = Literal["quiet", "nagios"]  # one line, chosen by options of their own
FORMATS: tuple[Format | Short, ...] = (*get_args(Format), *get_args(Short))
_MODULES = {"json": "json_", "quiet": "short", "nagios": "short"}  # where the module has another name


def render(
    report: Report,
    fmt: Format | Short,
    *,
    width: int = 80,
    color: bool = False,
    verbose: bool = False,
    encoding: str = "utf-8",
) -> str:
    """The report in the form `fmt`. `width`, `color`, `verbose` and `encoding` matter to `text` alone; the others are
    documents in UTF-8."""
    if fmt == "text":
        from cudnn_doctor.render.text import render_text

        return render_text(report, width=width, color=color, verbose=verbose, encoding=encoding)
    module = import_module(f"cudnn_doctor.render.{_MODULES.get(fmt, fmt)}")  # on use: others are not paid for
    document: str = getattr(module, f"render_{fmt}")(report)
    return document
