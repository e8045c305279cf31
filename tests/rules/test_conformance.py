"""One test over all rules: none lacks an explanation, a source or examples, and every example gives what it says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

import msgspec
import pytest

from cudnn_doctor import rules
from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.model.base import Absent, AbsentReason, Known, blank
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.report import Finding, Owner, Report, Status, Tool
from cudnn_doctor.rules import CATEGORIES, RETIRED, SUBJECTS, all_rules
from cudnn_doctor.rules.base import Case, Rule
from cudnn_doctor.rules.sample import sample, snapshot

RULES = all_rules()  # those of `check`


def rules_of_other_commands() -> tuple[Rule, ...]:
    """Rules that judge a table of `reproduce` or `engines`: in this package, not among `all_rules`."""
    names = [m.name for m in iter_modules(rules.__path__)]
    found = [v for n in names for v in vars(import_module(f"cudnn_doctor.rules.{n}")).values() if isinstance(v, Rule)]
    return tuple({r.code: r for r in found if all(r is not mine for mine in RULES)}.values())


OTHERS = rules_of_other_commands()
EXAMPLES = [pytest.param(rule, i, id=f"{rule.code}-{i}") for rule in RULES for i in range(len(rule.examples()))]
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)


def test_every_rule_is_run_by_a_command() -> None:
    """A file of rules that SUBJECTS does not name would never judge anything."""
    run = {r.code for command in SUBJECTS for r in all_rules(command)}
    assert {r.code for r in (*RULES, *OTHERS)} - run == set()


def pointer_leads_somewhere(document: Any, pointer: str) -> bool:
    """RFC 6901 over plain JSON."""
    node = document
    for written in pointer.split("/")[1:]:
        token = written.replace("~1", "/").replace("~0", "~")
        if isinstance(node, (list, tuple)) and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        elif isinstance(node, dict) and token in node:
            node = node[token]
        else:
            return False
    return True


def report_json(case: Case, findings: tuple[Finding, ...]) -> Any:
    return msgspec.to_builtins(
        Report(
            tool=Tool(version="0"),
            verdict="ok",
            exit_code=0,
            reason="",
            findings=findings,
            scenarios=case.scenarios,
            snapshot=case.snapshot,
        )
    )


def test_codes_are_unique_and_not_retired() -> None:
    codes = [r.code for r in (*RULES, *OTHERS)]
    assert [c for c, n in Counter(codes).items() if n > 1] == []
    assert RETIRED.isdisjoint(codes)
    assert len(codes) >= 45


@pytest.mark.parametrize("rule", [*RULES, *OTHERS], ids=lambda r: r.code)
def test_a_rule_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"CD[1-6]\d\d", rule.code)
    assert rule.category in CATEGORIES.values()
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.source
    assert len(rule.explain) > 60
    assert "-\n" not in rule.explain, "joined to one line, a hyphen at a line's end becomes a hole"
    assert rule.explain == rule.explain.strip()
    assert rule.owner in get_args(Owner)
    assert rule.causes or rule.severity == "note" or rule in OTHERS  # those take the causes of the state
    assert set(rule.causes) <= CAUSES


CAUSES = {entry["id"] for entry in knowledge("causes")}


@every_rule
def test_a_rule_has_examples_of_both_kinds(rule: Rule) -> None:
    statuses = {status for status, _ in rule.examples()}
    if "crashed" in statuses:  # CD512 speaks of our own failures alone
        assert statuses == {"crashed", "skipped"}
    else:
        assert statuses >= {"ok", "problem"}


@pytest.mark.parametrize("rule", OTHERS, ids=lambda r: r.code)
def test_rules_of_other_commands_have_examples_that_hold(rule: Rule) -> None:
    examples = rule.examples()
    assert examples
    for status, case in examples:
        assert {f.status for f in rule.apply(case)} == {status}


@pytest.mark.parametrize(("rule", "index"), EXAMPLES)
def test_an_example_gives_what_it_says(rule: Rule, index: int) -> None:
    status, case = rule.examples()[index]
    findings = rule.apply(case)
    assert {f.status for f in findings} == {status}, [f.detail for f in findings]
    document = report_json(case, findings)
    for finding in findings:
        check_finding(finding, document)


def check_finding(finding: Finding, document: Any) -> None:
    assert finding.status in get_args(Status)
    assert finding.owner in get_args(Owner)
    assert set(finding.causes) <= CAUSES
    assert finding.title
    for evidence in finding.evidence:
        assert pointer_leads_somewhere(document, evidence.pointer), evidence.pointer
        assert evidence.value
    texts = [finding.title, finding.detail, *(e.value for e in finding.evidence)]
    texts += [part for fix in finding.fixes for part in (fix.text, fix.command, fix.verify)]
    assert not [t for t in texts if re.search(r"Known\(|Absent\(|kind='|<\w+ object", t)]
    if finding.status == "problem":
        assert finding.evidence
        assert finding.fixes
        assert all(fix.text for fix in finding.fixes)
        assert any(fix.command or fix.verify for fix in finding.fixes)
        assert finding.causes or finding.severity == "note"
    elif finding.status == "ok":
        assert finding.evidence
        assert finding.causes == ()
    elif finding.status in ("unknown", "skipped"):
        assert finding.detail


@every_rule
def test_the_healthy_machine_has_no_problem(rule: Rule) -> None:
    findings = rule.apply(sample())
    assert {f.status for f in findings} <= {"ok", "skipped"}, findings


@every_rule
@pytest.mark.parametrize("reason", get_args(AbsentReason))
def test_nothing_known_is_never_ok(rule: Rule, reason: AbsentReason) -> None:
    findings = rule.apply(Case(blank(Snapshot, Absent(reason=reason, detail="test"))))
    assert {f.status for f in findings} <= {"unknown", "skipped"}, findings


def leaves(node: Any, path: str = "") -> Iterator[str]:
    """Dotted paths of all known facts, as `sample` takes them."""
    if isinstance(node, Known):
        yield path
        yield from leaves(node.value, path)
    elif isinstance(node, msgspec.Struct):
        for name in node.__struct_fields__:
            if name != "version_readings":  # always known
                yield from leaves(getattr(node, name), f"{path}.{name}" if path else name)
    elif isinstance(node, tuple):
        for i, item in enumerate(node):
            yield from leaves(item, f"{path}.{i}")


PATHS = list(leaves(snapshot()))


def test_there_are_facts_to_take_away() -> None:
    assert len(PATHS) > 70
    assert {"gpus.0.memory_free", "cudnn.0.sublibraries.6.version", "host.limits.stack"} <= set(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_a_missing_fact_never_crashes_a_rule(path: str) -> None:
    for reason in ("not-found", "not-supported", "error"):
        case = sample({path: Absent(reason=reason, detail="taken away")})
        findings = tuple(f for rule in RULES for f in rule.apply(case))
        assert [(f.code, f.detail) for f in findings if f.status == "crashed"] == []
        document = report_json(case, findings)
        for finding in findings:
            check_finding(finding, document)


@pytest.mark.parametrize("rule", [r for r in RULES if not r.code.startswith("CD4")], ids=lambda r: r.code)
def test_a_missing_fact_is_not_taken_for_good(rule: Rule) -> None:
    """The first fact that an ok cites is the one that it rests on: without it the ok is gone. Rules CD4xx may take the
    matrix's word instead."""
    for finding in rule.apply(sample()):
        if finding.status == "ok":
            path = finding.evidence[0].pointer.removeprefix("/snapshot/").replace("/value", "").replace("/", ".")
            if path in PATHS:
                without = rule.apply(sample({path: Absent(reason="error", detail="taken away")}))
                assert (finding.subject, finding.title, "ok") not in [(f.subject, f.title, f.status) for f in without]


def test_an_empty_box_loads_no_matrix() -> None:
    def refuse() -> Any:
        raise AssertionError("the matrix was loaded")

    gone = Absent(reason="not-found")
    empty = {"gpus": gone, "driver.init": gone, "cudnn": (), "resolutions": (), "frameworks": ()}
    case = sample({**empty, "driver.pci": Known(value=(), source="test")}, live=())
    bare = Case(case.snapshot, load_matrix=refuse)
    findings = [f for rule in RULES for f in rule.apply(bare)]
    assert [f for f in findings if f.status == "crashed"] == []
    assert {f.code for f in findings if f.status == "problem"} == set()
    titles = {f.code: f.title for f in findings if f.status == "unknown"}
    assert titles["CD101"] == "No NVIDIA GPU on this machine"
    assert titles["CD301"] == "No cuDNN on this machine"
