"""JSON Schemas of the documents, made from their types. `python -m cudnn_doctor.schemas` writes them anew."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

DOCUMENTS = {
    "fleet-1": "model.fleet:Fleet",
    "inspection-1": "model.inspection:Inspection",
    "report-1": "model.report:Report",
    "snapshot-1": "model.report:SnapshotFile",
    "reproduction-1": "model.reproduction:Reproduction",
    "engines-1": "model.engines:EnginesReport",
    "explanation-1": "model.explanation:Explanation",
    "code-1": "diagnose.codes:CodeExplanation",
}


def path_of(name: str) -> Path:
    """Where the schema of a document lies in the package."""
    return Path(__file__).parent / f"{name}.schema.json"


def made_from_types(name: str) -> str:
    """The schema as the types give it now."""
    import msgspec

    module, kind = DOCUMENTS[name].split(":")
    schema: dict[str, Any] = msgspec.json.schema(getattr(import_module(f"cudnn_doctor.{module}"), kind))
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"cudnn-doctor/{name.replace('-', '/')}",
    }
    return json.dumps({**head, **schema}, indent=2, ensure_ascii=False) + "\n"
