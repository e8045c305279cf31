"""The shipped schemas are what the types say."""

from __future__ import annotations

import json

import jsonschema
import pytest

from cudnn_doctor.model.base import encode
from cudnn_doctor.model.report import SnapshotFile, Tool
from cudnn_doctor.render.json_ import render_json
from cudnn_doctor.rules import sample
from cudnn_doctor.schemas import DOCUMENTS, made_from_types, path_of
from tests.render.build import healthy, report


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_file_is_what_the_types_give(name: str) -> None:
    assert path_of(name).read_text(encoding="utf-8") == made_from_types(name), "run: python -m cudnn_doctor.schemas"
    jsonschema.Draft202012Validator.check_schema(json.loads(made_from_types(name)))


def test_documents_validate() -> None:
    schema = jsonschema.Draft202012Validator(json.loads(path_of("report-1").read_text()))
    for one in (report(), healthy()):
        schema.validate(json.loads(render_json(one)))
    box = SnapshotFile(tool=Tool(), snapshot=sample.snapshot(), scenarios=(sample.live_check(),))
    jsonschema.Draft202012Validator(json.loads(path_of("snapshot-1").read_text())).validate(json.loads(encode(box)))


@pytest.mark.parametrize(
    ("path", "value"),
    [(("verdict",), "fine"), (("exit_code",), "0"), (("findings", 0, "status"), "good"), (("snapshot", "gpus"), None)],
)
def test_a_broken_document_does_not_pass(path: tuple[str | int, ...], value: object) -> None:
    document = json.loads(render_json(report()))
    node = document
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    schema = jsonschema.Draft202012Validator(json.loads(path_of("report-1").read_text()))
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(document)
