"""Over all forms: the same verdict, and no text that acts or breaks the document."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudnn_doctor.model.report import Evidence, Finding, Fix, Report, Severity
from cudnn_doctor.model.verdict import exit_code
from cudnn_doctor.model.verdict import verdict_of as judge
from cudnn_doctor.redact.redactor import Identity, redact
from cudnn_doctor.render import FORMATS, render
from cudnn_doctor.schemas import path_of
from tests.render.build import report
from tests.render.test_html import EVIL, Page, full
from tests.test_redact import PEOPLE, planted

if TYPE_CHECKING:
    from cudnn_doctor.render import Format

texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            EVIL,
            "\x1b[31m",
            "::error::x",
            "##[error]x",
            "a\n::warning::b",
            "]]>",
            "</testcase>",
            "\ud800",
            "|",
            "",
            "`",
            "%0A",
        ]
    ),
)
fixes = st.builds(Fix, text=texts, command=texts, verify=texts)
evidence = st.builds(Evidence, pointer=texts, value=texts, source=texts)
findings = st.builds(
    Finding,
    code=st.from_regex(r"CD[1-6]0[1-9]", fullmatch=True),
    status=st.sampled_from(["ok", "problem", "unknown", "skipped", "crashed"]),
    severity=st.sampled_from(["error", "warning", "note"]),
    owner=st.sampled_from(["node", "environment", "program"]),
    subject=texts,
    title=texts,
    detail=texts,
    evidence=st.lists(evidence, max_size=2).map(tuple),
    fixes=st.lists(fixes, max_size=2).map(tuple),
)


def judged(found: tuple[Finding, ...], fail_on: Severity, note: str) -> Report:
    verdict, reason = judge(found, fail_on=fail_on)
    code = exit_code(verdict, found)
    return report(findings=found, verdict=verdict, reason=reason, exit_code=code, fail_on=fail_on, notes=(note,))


reports = st.builds(
    judged, st.lists(findings, max_size=6).map(tuple), st.sampled_from(["error", "warning", "note"]), texts
)
SCHEMA = jsonschema.Draft202012Validator(json.loads(path_of("report-1").read_text(encoding="utf-8")))


def exit_code_of(fmt: Format, text: str) -> int:
    """The exit code that a reader of this form sees."""
    if fmt == "json":
        SCHEMA.validate(json.loads(text))
        return int(json.loads(text)["exit_code"])
    if fmt == "junit":
        root = ElementTree.fromstring(text)  # noqa: S314  our own text
        return int(root[0][0].get("name", "").removeprefix("exit code "))
    if fmt == "sarif":
        return int(json.loads(text)["runs"][0]["invocations"][0]["exitCode"])
    if fmt == "html":
        return int(re.findall(r"Exit code (\d)\. Checks", Page(text).text("p"))[-1])
    found = re.findall(r"\(exit\s+code\s+(\d)\)", text)
    return int(found[-1 if fmt in ("text", "github") else 0])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(reports)
def test_the_same_verdict_in_every_form(one: Report) -> None:
    for fmt in FORMATS:
        text = render(one, fmt)
        if fmt == "quiet":
            assert (text == "") == (one.exit_code == 0)
        elif fmt == "nagios":
            assert (" UNKNOWN - " in text[:20]) == (one.verdict == "no-verdict")
            assert (" CRITICAL - " in text[:20]) <= (one.exit_code == 1)
        else:
            assert exit_code_of(fmt, text) == one.exit_code, fmt


@pytest.mark.parametrize("fmt", FORMATS)
@given(one=reports)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_control_character_and_no_command_of_others(fmt: Format, one: Report) -> None:
    text = render(one, fmt)
    text.encode("utf-8")
    assert not set(text) & set(map(chr, [*range(9), 11, 12, *range(14, 32), 127, *range(0x80, 0xA0), 0x2028, 0x202E]))
    if fmt != "json":  # one string of JSON is one line and quoted
        commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
        ours = render(report(findings=one.findings), fmt).count("\n") if fmt == "github" else 0
        assert len(commands) == ours
    if fmt in ("text", "markdown", "quiet", "nagios"):
        assert "##[" not in text


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_hostile_text_in_every_place(fmt: Format) -> None:
    text = render(full(EVIL), fmt)
    assert not set(text) & {"\x1b", "\x07", "\x00", "\ufffe", "\ud800"}
    if fmt == "junit":
        assert "<script>alert(1)</script>" in "".join(ElementTree.fromstring(text).itertext())  # noqa: S314  ours
        assert "<script>" not in text


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("who", PEOPLE)
def test_nothing_planted_leaks(fmt: Format, who: str) -> None:
    home, user, host = PEOPLE[who]
    clean, _ = redact(planted(home, user, host), Identity(users=(user,), hosts=(host,), homes=(home,)))
    text = render(clean, fmt)
    planted_values = [
        "10.1.2.3",
        "aa:bb:cc",
        "ghp_",
        "GPU-4a3b8c1d",
        "1654523003107",
        "manhattan",
        f"@{host}",
        f"{home}/run.sh",
    ]
    if who in ("alice", "home in /x/cudnn"):
        planted_values += [user, host]
    assert [v for v in planted_values if v in text] == []
    if fmt not in ("quiet", "nagios"):
        assert exit_code_of(fmt, text) == clean.exit_code
