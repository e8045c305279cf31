"""`recordings.load` and `judge` over every recording: replay, redaction, every form, odd documents, requirements."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudnn_doctor import recordings
from cudnn_doctor.model.base import decode, encode
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Finding, Owner, Report, Severity, SnapshotFile, tool
from cudnn_doctor.model.verdict import exit_code, verdict_of
from cudnn_doctor.redact.redactor import Identity, redact
from cudnn_doctor.render import FORMATS, render
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.judge import judge, requirements
from cudnn_doctor.rules.sample import sample
from tests import _cli
from tests._cli import judged, recorded_cases, recording
from tests.render.test_every_format import exit_code_of

NAMES = sorted(recorded_cases())


def answers(findings: tuple[Finding, ...]) -> list[tuple[str, str, str, str]]:
    return [(f.code, f.status, f.severity, f.owner) for f in findings]


def by_code(report: Report, code: str) -> Finding:
    (finding,) = (f for f in report.findings if f.code == code)
    return finding


@pytest.mark.parametrize("name", NAMES)
def test_judging_twice_and_replaying_give_the_same(tmp_path: Path, name: str) -> None:
    facts = recorded_cases()[name]
    first, second = judged(facts), judged(facts)
    assert first == second
    path = tmp_path / "box.json"
    path.write_bytes(encode(as_file(facts)))
    replayed = judged(recordings.load(str(path)))
    assert replayed.findings == first.findings
    assert (replayed.verdict, replayed.exit_code, replayed.reason) == (first.verdict, first.exit_code, first.reason)
    path.write_bytes(encode(replayed))
    assert judged(recordings.load(str(path))).findings == first.findings
    assert [f for f in first.findings if f.status == "crashed" and f.code != "CD512"] == []


def as_file(facts: Examination) -> SnapshotFile:
    return SnapshotFile(tool=tool(), snapshot=facts.snapshot, scenarios=facts.scenarios)


PEOPLE = (
    Identity(users=("alice",), hosts=("gpubox7",), homes=("/home/alice", "/opt/venv")),
    Identity(users=("cuda",), hosts=("driver",), homes=("/opt",)),
    Identity(users=("torch",), hosts=("libcudnn",), homes=("/usr/lib",)),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_redacted_machine_is_judged_as_the_raw_one(name: str) -> None:
    facts = recorded_cases()[name]
    before = judged(facts)
    for someone in PEOPLE:
        snapshot, _ = redact(facts.snapshot, someone)
        scenarios = tuple(redact(r, someone)[0] for r in facts.scenarios)
        after = judged(Examination(snapshot=snapshot, scenarios=scenarios, replayed="redacted"))
        assert answers(after.findings) == answers(before.findings)
        assert (after.verdict, after.exit_code) == (before.verdict, before.exit_code)


def test_the_verdicts_of_the_made_up_machines() -> None:
    assert {name: judged(recorded_cases()[name]).verdict for name in _cli.cases()} == {
        "healthy": "ok",
        "no-gpu": "no-verdict",
        "no-live-result": "no-verdict",
        "two-copies": "ok",
        "mixed": "problem",
        "abort": "problem",
        "skew": "problem",
        "xid": "ok",
        "failed-probe": "no-verdict",
    }


OWNERS: tuple[Owner | None, ...] = (None, *get_args(Owner))
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(NAMES),
    fail_on=st.sampled_from(SEVERITIES),
    owner=st.sampled_from(OWNERS),
    require=st.sets(st.sampled_from(sorted(requirements())), max_size=2),
    only=st.sets(st.sampled_from([r.code for r in all_rules()]), max_size=3),
    style=st.sampled_from(("plain", "nagios")),
)
def test_every_format_has_the_same_verdict_and_exit_code(
    name: str, fail_on: Severity, owner: Owner | None, require: set[str], only: set[str], style: Any
) -> None:
    report = judged(
        recorded_cases()[name], fail_on=fail_on, owner=owner, require=tuple(require), only=tuple(only), exit_style=style
    )
    for fmt in FORMATS:
        text = render(report, fmt)
        if fmt == "quiet":
            assert (text == "") == (report.verdict == "ok")
        elif fmt == "nagios":
            state = exit_code(report.verdict, report.findings, "nagios")
            assert text.split()[1] == ("OK", "WARNING", "CRITICAL", "UNKNOWN")[state]
        else:
            assert exit_code_of(fmt, text) == report.exit_code, fmt
    assert decode(encode(report), Report) == report
    plain = exit_code(report.verdict, report.findings)
    assert (plain == 0) == (report.verdict == "ok")
    assert report.exit_code in ((plain,) if style == "plain" else {0: (0, 1), 1: (1, 2), 2: (3,)}[plain])


HOSTILE = (
    "",
    "\x1b[31m",
    "9",
    "9.",
    "99999999999999999999",
    "-1",
    "../..",
    "%s",
    "{}",
    "<user-1>",
    "sm_",
    "\u0663",
    "a" * 3000,
)


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all texts and numbers of a document."""
    if isinstance(node, (dict, list)):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(value, (*path, key))
    elif isinstance(node, (str, int, float)) and not isinstance(node, bool):
        yield path


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(NAMES), data=st.data())
def test_no_recording_however_odd_crashes_a_rule_or_a_form(name: str, data: st.DataObject) -> None:
    document = json.loads(encode(as_file(recorded_cases()[name])))  # lists, no tuples
    places = list(leaves(document))
    for path in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=5)):
        *way, last = path
        node = document
        for key in way:
            node = node[key]
        number = not isinstance(node[last], str)
        node[last] = data.draw(st.sampled_from((0, -1, 2**63, 2**31) if number else HOSTILE))
    try:
        odd = msgspec.convert(document, SnapshotFile)
    except msgspec.ValidationError:  # a literal or a tag: `load` refuses it
        return
    report = judged(Examination(snapshot=odd.snapshot, scenarios=odd.scenarios))
    assert [(f.code, f.detail) for f in report.findings if f.status == "crashed" and f.code != "CD512"] == []
    fmt = data.draw(st.sampled_from(FORMATS))
    assert "\x1b" not in render(report, fmt)


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def test_no_number_that_is_none_crashes_a_rule() -> None:
    tried, seen = 0, set[tuple[Any, ...]]()
    for name in NAMES:
        document = json.loads(encode(as_file(recorded_cases()[name])))  # lists, no tuples
        for path in leaves(document):
            text = at(document, path)
            if not isinstance(text, str) or not re.match(r"\d+\.\d|sm_", text) or path in seen:
                continue
            seen.add(path)
            for odd in ("abc", "9" * 5000):
                changed = copy.deepcopy(document)
                at(changed, path[:-1])[path[-1]] = odd
                facts = msgspec.convert(changed, SnapshotFile)
                report = judged(Examination(snapshot=facts.snapshot, scenarios=facts.scenarios))
                crashed = [(f.code, f.detail) for f in report.findings if f.status == "crashed" and f.code != "CD512"]
                assert crashed == [], path
                tried += 1
    assert tried > 100


def test_a_note_that_counts_is_a_warning_to_nagios() -> None:
    note = Finding(code="CD205", status="problem", severity="note", owner="node", subject="machine", title="t")
    verdict, _ = verdict_of([note], fail_on="note")
    assert (verdict, exit_code(verdict, [note], "nagios")) == ("problem", 1)
    assert exit_code("ok", [note], "nagios") == 0


@pytest.mark.parametrize("name", NAMES)
def test_owners_share_all_findings_out(name: str) -> None:
    facts = recorded_cases()[name]
    whole = [f for f in judged(facts).findings if f.status != "crashed"]
    parts = [f for o in get_args(Owner) for f in judged(facts, owner=o).findings if f.status != "crashed"]

    def told(findings: list[Finding]) -> list[str]:  # pointers count within a document
        return sorted(repr(msgspec.structs.replace(f, consequence_of="")) for f in findings)

    assert told(parts) == told(whole)


def test_an_error_of_the_environment_drains_no_node() -> None:
    facts = recorded_cases()["mixed"]
    assert judged(facts).exit_code == judged(facts, owner="environment").exit_code == 1
    assert judged(facts, owner="node").exit_code == 0


@pytest.mark.parametrize("what", requirements())
def test_every_requirement_can_fail_and_can_be_met(what: str) -> None:
    bare, healthy = recorded_cases()["no-gpu"], recorded_cases()["healthy"]
    missing = judged(bare, require=(what,), only=("CD504",))
    assert missing.verdict == "problem"
    assert by_code(missing, requirements()[what]).fixes
    met = judged(healthy, require=(what,), only=("CD504",))
    assert met.verdict == ("ok" if what not in ("tensorflow", "jax") else "problem")


def test_an_unknown_requirement() -> None:
    with pytest.raises(UsageError, match="--require nvcc: not known; it takes gpu, driver, cudnn, tensorflow, torch"):
        judged(recorded_cases()["healthy"], require=("nvcc",))


def test_old_data_is_told() -> None:
    facts = recorded_cases()["mixed"]
    fresh = judge(facts, Options(), date(2026, 12, 1))
    old = judge(facts, Options(), date(2028, 1, 1))
    assert len(old.notes) == len(fresh.notes) + 1
    assert "compat_matrix.yaml" in old.notes[0] or "matrix" in old.notes[0]
    assert (old.verdict, answers(old.findings)) == (fresh.verdict, answers(fresh.findings))


def test_fields_of_a_later_version_are_read_over(tmp_path: Path) -> None:
    document = msgspec.json.decode(recording(sample()))
    document["snapshot"]["host"]["from_the_future"] = {"a": [1]}
    document["more"] = True
    path = tmp_path / "later.json"
    path.write_bytes(msgspec.json.encode(document))
    assert judged(recordings.load(str(path))).findings == judged(recorded_cases()["healthy"]).findings


def test_examples_ship_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in recordings.examples():
        facts = recordings.load(f"example:{name}")
        assert facts.replayed == f"example:{name}"
        assert facts.snapshot.taken_at
    with pytest.raises(UsageError, match=r"no example '\.\./engine'; there are "):
        recordings.load("example:../engine")
