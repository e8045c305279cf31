"""A report, or the picture of a fleet, as its own JSON document (schemas/report-1.schema.json, fleet-1.schema.json)."""

from __future__ import annotations

from cudnn_doctor.model.base import Base, encode


def render_json(document: Base) -> str:
    """The document, ending in a line break."""
    return encode(document).decode("utf-8")
