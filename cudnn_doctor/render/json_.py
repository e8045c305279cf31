"""The report as its own JSON document (schemas/report-1.schema.json)."""

from __future__ import annotations

from cudnn_doctor.model.base import encode
from cudnn_doctor.model.report import Report


def render_json(report: Report) -> str:
    """The document, ending in a line break."""
    return encode(report).decode("utf-8")
