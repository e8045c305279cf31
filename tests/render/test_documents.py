"""Documents for machines: JUnit, SARIF, GitHub, quiet and Nagios lines."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest

from cudnn_doctor.model.report import Finding, Report
from cudnn_doctor.model.verdict import exit_code
from cudnn_doctor.model.verdict import verdict_of as judge
from cudnn_doctor.render import render
from cudnn_doctor.rules import all_rules
from tests.render.build import FINDINGS, healthy, report

xmlschema = pytest.importorskip("xmlschema", reason="xmlschema is not installed: JUnit reports are not validated")

HERE = Path(__file__).parent
JUNIT = xmlschema.XMLSchema(str(HERE / "junit.xsd"))
# The schema that the SARIF committee publishes, as the npm package @microsoft/sarif-multitool 5.7.0 (MIT) carries it.
SARIF = jsonschema.Draft202012Validator(json.loads((HERE / "sarif-2.1.0.schema.json").read_text(encoding="utf-8")))

CRASHED = Finding(
    code="CD102", status="crashed", severity="error", owner="node", subject="", title="Driver", detail="KeyError: 'x'"
)


def judged(*findings: Finding, fail_on: str = "error") -> Report:
    verdict, reason = judge(findings, fail_on=fail_on)  # type: ignore[arg-type]
    code = exit_code(verdict, findings)
    return report(findings=findings, verdict=verdict, reason=reason, exit_code=code, fail_on=fail_on)


WARNING_ONLY = tuple(f for f in FINDINGS if f.code != "CD301")
REPORTS = {
    "problem": judged(*FINDINGS),
    "ok": healthy(),
    "warning": judged(*WARNING_ONLY),
    "warning counts": judged(*WARNING_ONLY, fail_on="warning"),
    "crashed": judged(CRASHED, *healthy().findings),
    "nothing": judged(),
}


@pytest.mark.parametrize("name", REPORTS)
def test_junit_validates_and_fails_exactly_with_the_verdict(name: str) -> None:
    one = REPORTS[name]
    text = render(one, "junit")
    JUNIT.validate(text)
    root = ElementTree.fromstring(text)  # noqa: S314  our own text
    red = int(root.get("failures", "0")) + int(root.get("errors", "0"))
    assert (red > 0) == (one.exit_code != 0)
    assert red == len(root.findall(".//failure")) + len(root.findall(".//error"))
    assert int(root.get("tests", "0")) == len(one.findings) + 1 == len(root.findall(".//testcase"))


def test_junit_says_what_to_do() -> None:
    root = ElementTree.fromstring(render(report(), "junit"))  # noqa: S314  our own text
    failure = root.find(".//testsuite[@name='cudnn-doctor.cuDNN']/testcase/failure")
    assert failure is not None
    assert failure.get("type") == "CD301"
    assert failure.text == (
        "torch was built with 9.19.0; the loader finds 9.1.0 first, because LD_LIBRARY_PATH names its folder.\n"
        "Seen: 9.1.0 (cudnnGetVersion of /opt/old/lib64/libcudnn.so.9)\n"
        "Seen: /opt/old/lib64 (environment)\n"
        "Fix: Take the folder of the old copy out of LD_LIBRARY_PATH.\n"
        "  unset LD_LIBRARY_PATH\n"
        "Verify: cudnn-doctor check --only CD301"
    )


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_validates(name: str) -> None:
    one = REPORTS[name]
    document = json.loads(render(one, "sarif"))
    SARIF.validate(document)
    run = document["runs"][0]
    assert run["invocations"][0]["exitCode"] == one.exit_code
    assert run["invocations"][0]["executionSuccessful"] == (one.verdict != "no-verdict")
    told = len(run["results"]) + len(run["invocations"][0]["toolExecutionNotifications"])
    assert told == len(one.findings)
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_rules_carry_their_help() -> None:
    rules = json.loads(render(report(), "sarif"))["runs"][0]["tool"]["driver"]["rules"]
    by_code = {r["id"]: r for r in rules}
    assert len(by_code) == len(rules)
    for rule in all_rules():
        described = by_code[rule.code]
        assert described["help"]["text"].startswith(rule.explain)
        assert described["defaultConfiguration"] == {"level": rule.severity}


def test_a_code_of_a_later_version_is_not_dropped() -> None:
    later = judged(msgspec.structs.replace(FINDINGS[3], code="CD701"))
    assert 'classname="cudnn-doctor.Other" name="CD701 torch' in render(later, "junit")
    assert "[✗] Other  CD701 torch" in render(later, "text", width=120)


def test_sarif_of_a_code_that_is_no_more() -> None:
    old = msgspec.structs.replace(FINDINGS[3], code="CD999")
    document = json.loads(render(judged(old), "sarif"))
    SARIF.validate(document)
    assert document["runs"][0]["tool"]["driver"]["rules"][-1] == {"id": "CD999"}


def test_github_commands() -> None:
    assert render(report(), "github").splitlines() == [
        "::error title=CD301 torch 2.11.0%3A An older cuDNN is found before the one that it was built with::"
        "torch was built with 9.19.0; the loader finds 9.1.0 first, because LD_LIBRARY_PATH names its folder.%0A"
        "Seen: 9.1.0 (cudnnGetVersion of /opt/old/lib64/libcudnn.so.9)%0ASeen: /opt/old/lib64 (environment)%0A"
        "Fix: Take the folder of the old copy out of LD_LIBRARY_PATH.%0A  unset LD_LIBRARY_PATH%0A"
        "Verify: cudnn-doctor check --only CD301",
        "::warning title=CD402 torch 2.11.0%3A The wheel pins another cuDNN than the one that it loads::"
        "Seen: 9.19.0.56 (METADATA)%0AFix: Install the pinned wheel.%0A  pip install nvidia-cudnn-cu13==9.19.0.56",
        "::notice title=CD503 TF_FORCE_GPU_ALLOW_GROWTH%3A TensorFlow reserves nearly the whole card::"
        "Seen: not set (environment)%0AFix: Let it grow.%0A  export TF_FORCE_GPU_ALLOW_GROWTH=true",
        "::error title=cudnn-doctor%3A problem::CD301 torch 2.11.0: An older cuDNN is found before the one that it was "
        "built with (exit code 1)%0AStart with CD301: Take the folder of the old copy out of LD_LIBRARY_PATH. "
        "Then run the check again.",
    ]


@pytest.mark.parametrize("name", REPORTS)
def test_github_shows_an_error_exactly_with_the_verdict(name: str) -> None:
    one = REPORTS[name]
    lines = render(one, "github").splitlines()
    assert lines[-1].startswith("::error " if one.exit_code else "::notice ")
    assert all(line.startswith(("::error title=", "::warning title=", "::notice title=")) for line in lines)


QUIET = {
    "problem": "error: CD301 torch 2.11.0: An older cuDNN is found before the one that it was built with; "
    "fix: unset LD_LIBRARY_PATH\n",
    "ok": "",
    "warning": "",
    "warning counts": "warning: CD402 torch 2.11.0: The wheel pins another cuDNN than the one that it loads; "
    "fix: pip install nvidia-cudnn-cu13==9.19.0.56\n",
    "crashed": "no-verdict: CD102 could not be judged: KeyError: 'x'\n",
    "nothing": "no-verdict: nothing was examined\n",
}


@pytest.mark.parametrize("name", REPORTS)
def test_quiet(name: str) -> None:
    assert render(REPORTS[name], "quiet") == QUIET[name]


NAGIOS = {
    "problem": "CUDNN CRITICAL - CD301 torch 2.11.0: An older cuDNN is found before the one that it was built with "
    "(and 1 more) | errors=1 warnings=1 unknown=1 live=420ms\n",
    "ok": "CUDNN OK - examined, nothing wrong | errors=0 warnings=0 unknown=0 live=420ms\n",
    "warning": "CUDNN WARNING - CD402 torch 2.11.0: The wheel pins another cuDNN than the one that it loads "
    "| errors=0 warnings=1 unknown=1 live=420ms\n",
    "crashed": "CUDNN UNKNOWN - CD102 could not be judged: KeyError: 'x' | errors=0 warnings=0 unknown=1 live=420ms\n",
    "nothing": "CUDNN UNKNOWN - nothing was examined | errors=0 warnings=0 unknown=0 live=420ms\n",
}


@pytest.mark.parametrize("name", NAGIOS)
def test_nagios(name: str) -> None:
    line = render(REPORTS[name], "nagios")
    assert line == NAGIOS[name]
    word = line.split()[1]
    assert ("OK", "WARNING", "CRITICAL", "UNKNOWN").index(word) == exit_code(
        REPORTS[name].verdict, REPORTS[name].findings, "nagios"
    )
