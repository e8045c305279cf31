"""JSON Schemas of the documents, made from the types in model.py. `python -m cudnn_doctor.schemas` writes them anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cudnn_doctor.model import Report, SnapshotFile

DOCUMENTS: dict[str, type] = {"report-1": Report, "snapshot-1": SnapshotFile}


def path_of(name: str) -> Path:
    """Where the schema of a document lies in the package."""
    return Path(__file__).parent / f"{name}.schema.json"


def made_from_types(name: str) -> str:
    """The schema as the types give it now."""
    import msgspec

    schema: dict[str, Any] = msgspec.json.schema(DOCUMENTS[name])
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"cudnn-doctor/{name.replace('-', '/')}",
    }
    return json.dumps({**head, **schema}, indent=2, ensure_ascii=False) + "\n"
