"""A case from its sources to its document: typed form, several sources, reports of our own, the machine's facts."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from cudnn_doctor.diagnose import InputError, explain, explain_each
from cudnn_doctor.model.base import encode, known
from cudnn_doctor.model.explanation import Explanation
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.rules import sample
from cudnn_doctor.rules.sample import EX
from tests.explain.plain import answer

OOM = "RuntimeError: CUDA error: out of memory\n"
MAPPING = "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR\n"


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_plain_and_typed_answer_are_one(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", f"torch 1.4.0\n{MAPPING}")
    typed = explain([log])
    assert isinstance(typed, Explanation)
    assert msgspec.convert(answer([log]), Explanation) == typed
    assert json.loads(msgspec.json.encode(typed))["facts"] == {"framework": "pytorch", "framework_version": "1.4.0"}
    assert typed.schema == "cudnn-doctor/explanation/1"


def test_answer_is_the_same_every_time(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", f"torch 1.4.0 on an RTX 2070\n{MAPPING}{OOM}")
    assert answer([log]) == answer([log])


def test_several_sources_are_one_case_and_evidence_names_its_file(tmp_path: Path) -> None:
    a = write(tmp_path, "train.log", f"start\n{MAPPING}")
    b = write(tmp_path, "dmesg", "NVRM: Xid (PCI:0000:0a:00): 79, pid=2211, GPU has fallen off the bus.\n")
    told = answer([a, b])
    assert told["causes"][0]["cause"] == "hardware-or-power"
    places = {(e["file"], e["line"]) for e in told["causes"][0]["evidence"]}
    assert (str(b), 1) in places
    assert told["sources"] == [str(a), str(b)]


def test_one_source_needs_no_file_name(tmp_path: Path) -> None:
    told = answer([write(tmp_path, "a.log", OOM + MAPPING)])
    assert all("file" not in e for c in told["causes"] for e in c["evidence"])


def test_each_file_for_itself(tmp_path: Path) -> None:
    a, b = write(tmp_path, "a.log", MAPPING), write(tmp_path, "b.log", "ValueError: shapes do not match\n")
    assert [e.verdict for e in explain_each([a, b])] == ["undetermined", "not-cudnn"]


def test_own_report_beside_a_log_brings_its_problems(tmp_path: Path) -> None:
    report = {
        "schema": "cudnn-doctor/report/1",
        "findings": [
            {"code": "CD321", "title": "Two cuDNNs", "status": "problem", "causes": ["cudnn-shadowed"]},
            {"code": "CD101", "title": "No driver", "status": "ok", "causes": ["driver-too-old"]},
        ],
    }
    log = write(tmp_path, "a.log", MAPPING)
    told = answer([log, write(tmp_path, "report.json", json.dumps(report, indent=1))])
    assert told["causes"][0]["cause"] == "cudnn-shadowed"
    assert told["causes"][0]["evidence"][0]["line"] == 0
    assert told["notes"] == [
        f"{tmp_path / 'report.json'}: a cudnn-doctor document; its facts and problems join the text's"
    ]
    assert all(c["cause"] != "driver-too-old" for c in told["causes"])


@pytest.mark.parametrize("indent", [None, 2])
def test_own_report_may_be_one_long_line(tmp_path: Path, indent: int | None) -> None:
    finding = {"code": "CD321", "title": "x" * 200, "status": "problem", "causes": ["cudnn-shadowed"]}
    text = json.dumps({"schema": "cudnn-doctor/report/1", "findings": [finding] * 100}, indent=indent)
    told = answer([write(tmp_path, "a.log", MAPPING), write(tmp_path, "r.json", text)])
    assert told["causes"][0]["cause"] == "cudnn-shadowed"


def test_document_that_only_claims_to_be_ours_is_named(tmp_path: Path) -> None:
    broken = write(tmp_path, "x.json", '{"schema": "cudnn-doctor/report/1", ')
    with pytest.raises(InputError, match="looks like a cudnn-doctor document and is not one: Input data was truncated"):
        answer([broken])


def snapshot(gpu: str, driver: str) -> Snapshot:
    changes = {"gpus.0.name": known(gpu, EX), "driver.version": known(driver, EX), "frameworks": (), "cudnn": ()}
    return sample.sample(changes).snapshot


def test_snapshot_fills_what_the_text_does_not_state(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", f"torch 1.0.1 from pip\n{MAPPING}")
    told = answer([log], snapshot=snapshot("NVIDIA GeForce RTX 3090", "470.57"))
    assert told["facts"] == {"framework": "pytorch", "framework_version": "1.0.1"}  # what the text itself states
    assert told["causes"][0]["cause"] == "gpu-too-new-for-build"
    assert told["sources"] == [str(log), "this machine"]
    without = {c["cause"]: c["points"] for c in answer([log])["causes"]}
    assert without["gpu-too-new-for-build"] == 0  # possible, as the GPU is not stated


def test_text_wins_over_the_machine(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", f"torch 1.0.1 from pip on a GTX 1080\n{MAPPING}")
    told = answer([log], snapshot=snapshot("NVIDIA GeForce RTX 3090", "470.57"))
    assert "gpu-too-new-for-build" not in [c["cause"] for c in told["causes"]]


def test_snapshot_file_beside_a_log(tmp_path: Path) -> None:
    text = encode(snapshot("NVIDIA GeForce RTX 3090", "470.57")).decode()
    file = write(tmp_path, "s.json", f'{{"schema": "cudnn-doctor/snapshot/1", "snapshot": {text}}}')
    told = answer([write(tmp_path, "a.log", f"torch 1.0.1 from pip\n{MAPPING}"), file])
    assert "gpu-too-new-for-build" in [c["cause"] for c in told["causes"]]
