"""All rules over every real recording in the repository: no crash, and every pointer leads somewhere."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import cudnn_doctor
from cudnn_doctor.model.base import decode
from cudnn_doctor.model.report import Report, SnapshotFile
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case
from tests.rules.test_conformance import check_finding, report_json

FOLDERS = (Path(__file__).parents[1] / "recordings", Path(cudnn_doctor.__file__).parent / "examples")


class Head(msgspec.Struct):
    schema: str = ""


def recordings() -> dict[str, Case]:
    found = {}
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.json")):
            data = path.read_bytes()
            schema = decode(data, Head).schema
            if schema == "cudnn-doctor/snapshot/1":
                snapshot = decode(data, SnapshotFile)
                found[path.stem] = Case(snapshot.snapshot, snapshot.scenarios)
            elif schema == "cudnn-doctor/report/1":
                report = decode(data, Report)
                found[path.stem] = Case(report.snapshot, report.scenarios)
    return found


RECORDINGS = recordings()
NONE = pytest.param("", marks=pytest.mark.skip(reason="no recording in tests/recordings or cudnn_doctor/examples"))


@pytest.mark.parametrize("name", RECORDINGS or [NONE])
def test_all_rules_over_a_recording(name: str) -> None:
    case = RECORDINGS[name]
    findings = tuple(f for rule in all_rules() for f in rule.apply(case))
    assert [(f.code, f.detail) for f in findings if f.status == "crashed"] == []
    document = report_json(case, findings)
    for finding in findings:
        check_finding(finding, document)
    assert any(f.status == "ok" for f in findings)
