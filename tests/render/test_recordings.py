"""Real recordings in every form: same verdict, valid documents, nothing lost by redaction."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import jsonschema
import pytest

from cudnn_doctor.model.base import decode
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Report
from cudnn_doctor.recordings import load
from cudnn_doctor.redact.redactor import Identity, redact
from cudnn_doctor.render import FORMATS, Format, Short, render
from cudnn_doctor.render.markdown import LIMIT
from cudnn_doctor.rules.judge import judge
from cudnn_doctor.schemas import path_of
from tests.render.test_documents import JUNIT, SARIF
from tests.render.test_every_format import exit_code_of
from tests.render.test_html import ALLOWED, Page

TODAY = date(2026, 11, 30)
RECORDINGS = sorted((Path(__file__).parent.parent / "recordings").glob("*.json"))
SCHEMA = jsonschema.Draft202012Validator(json.loads(path_of("report-1").read_text(encoding="utf-8")))
names = pytest.mark.parametrize("path", RECORDINGS, ids=[p.stem for p in RECORDINGS])


@pytest.fixture(scope="module")
def reports() -> dict[Path, Report]:
    return {path: judge(load(str(path)), Options(), TODAY) for path in RECORDINGS}


@names
@pytest.mark.parametrize("fmt", FORMATS)
def test_every_form(fmt: Format | Short, path: Path, reports: dict[Path, Report]) -> None:
    report = reports[path]
    text = render(report, fmt)
    if fmt == "quiet":
        assert (text == "") == (report.exit_code == 0)
        return
    if fmt == "nagios":
        assert text.count("\n") == 1
        return
    assert exit_code_of(fmt, text) == report.exit_code
    if fmt == "json":
        SCHEMA.validate(json.loads(text))
        assert decode(text.encode(), Report) == report
    elif fmt == "junit":
        JUNIT.validate(text)
    elif fmt == "sarif":
        SARIF.validate(json.loads(text))
    elif fmt == "markdown":
        assert len(text) < LIMIT
        assert "parts are left out" not in text
    elif fmt == "html":
        assert {tag for tag, _ in Page(text).elements} <= ALLOWED


@names
@pytest.mark.parametrize(
    "someone",
    [
        Identity(users=("root",), homes=("/root",), hosts=("gpubox7",)),
        Identity(users=("cuda",), homes=("/opt/torch",), hosts=("nvidia",)),
        Identity(users=("mallory",), homes=("/x/cudnn",), hosts=("h200",)),
    ],
    ids=["root", "cuda", "/x/cudnn"],
)
def test_redaction_changes_no_judgement(someone: Identity, path: Path, reports: dict[Path, Report]) -> None:
    facts = load(str(path))
    snapshot, _ = redact(facts.snapshot, someone)
    scenarios = tuple(redact(r, someone)[0] for r in facts.scenarios)
    after = judge(Examination(snapshot=snapshot, scenarios=scenarios), Options(), TODAY)
    assert [(f.code, f.status, f.severity) for f in after.findings] == [
        (f.code, f.status, f.severity) for f in reports[path].findings
    ]
    assert (after.verdict, after.exit_code) == (reports[path].verdict, reports[path].exit_code)
