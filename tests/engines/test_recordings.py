"""Real examinations, tests/recordings/engines: what was seen on an H200, and that today's rules say the same of it."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import pytest

from cudnn_doctor.engines.problems import OPERATIONS
from cudnn_doctor.model.base import decode
from cudnn_doctor.model.engines import EngineRow, EnginesReport, Totals
from cudnn_doctor.render.engines import render_engines
from cudnn_doctor.rules.engines import findings

FOLDER = Path(__file__).parents[1] / "recordings" / "engines"
NAMES = sorted(p.name.removesuffix(".json.gz") for p in FOLDER.glob("[0-9]*.json.gz"))  # not those of test_frontend
# evidence/setstream_states.yaml, plan_handle_stream: the engines of the 210 plans seen before, all in the given stream.
SEEN_BEFORE = {0, 1, 3, 22, 23, 27, 28, 35, 38, 41, 45, 46, 47, 48, 62, 67, 70, 71}


@cache
def recording(name: str) -> EnginesReport:
    return decode(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()), EnginesReport)


def rows(report: EnginesReport) -> list[EngineRow]:
    return [row for part in report.problems for row in part.rows]


def test_the_full_form_of_9_19() -> None:
    report = recording("9.19.0-full")
    assert report.totals == Totals(
        problems=118,
        plans=5478,
        engines=127,
        ok=5478,
        unsupported=5859,
        left_out=84,
        threads_tested=5476,
        destroyed_tested=5478,
        clones=2117,
    )
    assert (report.capture_control.planted, report.capture_control.seen) == (5478, 5478)
    assert (report.held_control.planted, report.held_control.seen) == (5478, 5478)
    assert (report.verdict, report.exit_code) == ("ok", 0)
    assert {f.code: f.status for f in findings(report)} == {f"CD65{n}": "ok" for n in range(5)}


def test_9_19_agrees_with_the_210_plans_seen_before() -> None:
    parts = [
        p
        for p in recording("9.19.0-full").problems
        if (p.operation, p.layout, p.shape) == ("conv-forward", "nhwc", "3x3") and p.data_type != "int8"
    ]
    assert [p.data_type for p in parts] == ["fp16", "bf16", "fp32"]
    assert {row.engine for p in parts for row in p.rows} >= SEEN_BEFORE
    assert sum(row.plans for p in parts for row in p.rows) >= 210
    assert {row.verdict for p in parts for row in p.rows} == {"ok"}


def test_8_9_7_stays_in_the_given_stream_and_cannot_share_plans() -> None:
    report = recording("8.9.7-full")
    t = report.totals
    assert (t.plans, t.ok, t.engines, t.unsupported) == (3421, 3421, 103, 3918)
    assert (t.threads_differ, t.threads_tested, t.own_differ, t.own_tested) == (1194, 2741, 0, 1147)
    assert (t.destroyed_bad, t.destroyed_tested, t.clones_wrong, t.clones) == (0, 3421, 0, 1774)
    by_code = {f.code: f for f in findings(report)}
    assert by_code["CD650"].status == "ok"
    shared = by_code["CD653"]
    assert (shared.status, shared.severity) == ("problem", "note")
    assert "1194 of 2741 plans" in shared.detail
    assert shared.detail.endswith("with a plan for each thread 0 of 1147.")
    assert report.exit_code == 0


def test_9_1_shares_plans() -> None:
    report = recording("9.1.0-full")
    t = report.totals
    assert (t.plans, t.ok, t.engines, t.unsupported, t.crashed) == (3552, 3552, 102, 4046, 0)
    assert (t.threads_differ, t.threads_tested, t.destroyed_bad, t.destroyed_tested) == (0, 3549, 0, 3552)
    assert (t.clones_wrong, t.clones) == (0, 1766)
    assert {f.status for f in findings(report)} == {"ok"}


@pytest.mark.parametrize("version", ["8.9.7", "9.1.0", "9.19.0"])
def test_the_full_form_comes_to_its_end(version: str) -> None:
    """All but the attention in one operation, which came with 9.13."""
    report = recording(f"{version}-full")
    assert len(report.problems) == 118
    assert all(p.finished for p in report.problems)
    unheard = [p.shape for p in report.problems if p.error]
    assert unheard == ([] if version == "9.19.0" else ["unified", "unified"])
    for operation in OPERATIONS:
        assert sum(row.plans for p in report.problems if p.operation == operation for row in p.rows) > 0


@pytest.mark.parametrize(("version", "plans"), [("8.9.7", 354), ("9.1.0", 361), ("9.19.0", 357)])
def test_the_quick_form_within_ten_seconds(version: str, plans: int) -> None:
    report = recording(f"{version}-quick")
    assert (report.quick, report.totals.plans, report.totals.ok, report.verdict) == (True, plans, plans, "ok")
    assert report.ms < 10_000


def test_9_1_without_cublas_is_examined_around_the_engines_that_abort() -> None:
    report = recording("9.1.0-without-cublas-140s")
    assert (report.totals.plans, report.totals.ok, report.totals.crashed) == (410, 355, 55)
    killed = [f for f in findings(report) if f.code == "CD652"]
    assert killed
    assert {f.status for f in killed} == {"problem"}
    assert all("killed by SIGABRT in step engine" in f.evidence[0].value for f in killed)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_consistent(name: str) -> None:
    report = recording(name)
    for count in ("plans", "ok", "wrong_stream", "suspect", "crashed", "unknown", "threads_differ", "destroyed_bad"):
        assert sum(getattr(row, count) for row in rows(report)) == getattr(report.totals, count)
    for row in rows(report):
        assert row.plans == row.ok + row.wrong_stream + row.suspect + row.crashed + row.unknown
    for control in (report.capture_control, report.held_control):
        assert control.planted == control.seen > 0
    assert report.totals.wrong_stream == report.totals.suspect == 0
    assert report.device_name == "NVIDIA H200"
    text = render_engines(report, findings(report))
    assert text.startswith(f"Engines of cuDNN {report.cudnn_version} on NVIDIA H200 (device 0): ")


def test_every_recording_is_described() -> None:
    described = (FOLDER / "README.md").read_text()
    assert NAMES
    assert [n for n in NAMES if f"`{n}`" not in described] == []
