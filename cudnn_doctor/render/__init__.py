"""Forms of a report: pure functions from `Report` to text. Nothing here prints, reads the machine or judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from cudnn_doctor.model import Report

Format = Literal["text", "json", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)


def render(
    report: Report, fmt: Format, *, width: int = 80, color: bool = False, verbose: bool = False, encoding: str = "utf-8"
) -> str:
    """The report in the form `fmt`. `width`, `color`, `verbose` and `encoding` matter to `text` alone; the others are
    documents in UTF-8."""
    if fmt == "json":
        from cudnn_doctor.render.json_ import render_json

        return render_json(report)
    if fmt == "markdown":
        from cudnn_doctor.render.markdown import render_markdown

        return render_markdown(report)
    from cudnn_doctor.render.text import render_text

    return render_text(report, width=width, color=color, verbose=verbose, encoding=encoding)
