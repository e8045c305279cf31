"""The authored YAML of explain is consistent: every name it uses exists, and everything in it is used."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_doctor import diagnose as explain
from cudnn_doctor.diagnose import advice
from cudnn_doctor.diagnose.circumstances import circumstances
from cudnn_doctor.diagnose.experiments import experiments
from cudnn_doctor.diagnose.rank import Ranking
from cudnn_doctor.knowledge.load import knowledge, parse_yaml
from cudnn_doctor.logs.observe import _STATUS_WORDS
from cudnn_doctor.logs.patterns import Circumstance, Name, load
from cudnn_doctor.model.explanation import Facts

HERE = Path(__file__).parent
PACKAGE = Path(explain.__file__).parents[1]
SOURCE = "\n".join(
    path.read_text(encoding="utf-8")
    for path in (*sorted((PACKAGE / "logs").glob("observe*.py")), *sorted((PACKAGE / "diagnose").glob("*.py")))
)
CAUSES: dict[str, dict[str, Any]] = {c["id"]: c for c in knowledge("causes")}
IN_A_TEXT = {name for name, cause in CAUSES.items() if "by" not in cause}  # the others only `run` sees
RULES: list[dict[str, Any]] = knowledge("ranking")["rules"]
CIRCUMSTANCES = {c["id"]: c for c in knowledge("circumstances")}
EXPERIMENTS = knowledge("experiments")
CONDITIONS = {"framework", "os", "not_os", "manager", "not_manager", "below", "from", "when", "unless"}
QUESTIONS = {q["id"]: q for q in knowledge("questions")}
MATCHED = {s["id"] for s in knowledge("signatures")}
SAID = {s["id"] for s in knowledge("statements")}
USED = {token for rule in RULES for key in ("when", "any", "unless") for token in rule.get(key, ())}


def derived() -> set[str]:
    """The observations that logs/observe*.py and diagnose/ give by name."""
    names = {n.value for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    names |= {f"status:{s}" for s in load().statuses.values()} | {f"gpu:{kind}" for kind in names}
    names |= {f"status:{s}" for s, _ in _STATUS_WORDS}
    names |= {f"kind:{s['kind']}" for s in knowledge("signatures")}
    return names | set(CIRCUMSTANCES) | {f"framework:{f['name']}" for f in knowledge("facts")["frameworks"]}


def test_causes_are_the_ones_of_the_contract() -> None:
    assert len(IN_A_TEXT) == 31
    assert {cause.get("by") for cause in CAUSES.values()} == {None, "run"}
    for cause in CAUSES.values():
        assert set(cause["kin"]) <= set(CAUSES)
        assert set(cause["asks"]) <= set(QUESTIONS)
        assert cause["asks"]
        assert cause["role"] in ("primary", "consequence", "noise")
        assert cause["avoid"]
        assert cause["fixes"]
        for fix in cause["fixes"]:
            assert fix["text"]
            assert fix["verify"]
            assert set(fix.get("for", {})) <= CONDITIONS


def case(*signs: str, built: str = "") -> advice.Weighed:
    return advice.Weighed(
        ranking=Ranking("undetermined"),
        signs={sign: [0] for sign in signs if sign},
        facts={},
        values={"cudnn_built": built, "cudnn_major": "9", "cudnn_next": "10"} if built else {},
        knowledge=load(),
    )


@pytest.mark.parametrize("system", ["", "os:windows", "os:linux", "os:wsl"])
@pytest.mark.parametrize("cause", CAUSES)
def test_everybody_gets_a_fix(cause: str, system: str) -> None:
    for others in ((), ("leak",), ("manager:conda",), ("built-known",)):
        assert advice.fixes(load().causes[cause], case(system, *others, built="9.1.0"))


@pytest.mark.parametrize("entry", CIRCUMSTANCES.values(), ids=lambda e: e["id"])
def test_circumstances_are_read_from_their_examples_alone(entry: dict[str, Any]) -> None:
    table = [msgspec.convert(entry, Circumstance)]
    for line in entry["examples"]:
        assert entry["id"] in circumstances([line.lower()], table), line
    for line in entry["not"]:
        assert entry["id"] not in circumstances([line.lower()], table), line


def test_every_circumstance_counts_for_something() -> None:
    texts = "".join(str(knowledge(name)) for name in ("ranking", "causes", "experiments"))
    assert [name for name in CIRCUMSTANCES if name.removeprefix("manager:") not in texts] == []


def test_experiments_decide_between_known_causes_by_known_tokens() -> None:
    known = MATCHED | SAID | derived() | {f"fact:{name}" for name in get_type_hints(Facts)}
    for experiment in EXPERIMENTS:
        assert set(experiment["decides"]) <= set(CAUSES)
        tokens = {*experiment.get("when", ()), *experiment.get("unless", ())}
        assert {t for t in tokens if t not in known} == set(), experiment["id"]
        assert re.search(r"https://|tests/recordings|bisection", experiment["source"])
        for form in experiment["forms"]:
            assert form["text"]
            assert form["outcome"]
            assert set(form.get("for", {})) <= CONDITIONS


@pytest.mark.parametrize("system", ["", "os:windows", "os:linux"])
def test_no_command_of_another_system(system: str) -> None:
    """An experiment and a fix for Windows name no tool of Linux, and the other way round."""
    linux, windows = r"\b(?:ldconfig|ldd|dmesg|journalctl|grep|env -u|export )\b", r"\bwhere \w|^set \w"
    foreign = linux if system == "os:windows" else windows
    signs = (system, "notebook", "custom-op", "after-while", "threads", "two-cudnn")
    own, table = {sign: [0] for sign in signs if sign}, load().experiments
    tried = experiments("undetermined", dict.fromkeys(CAUSES, 1.0), {"framework": "pytorch"}, own, table, 99)
    fixes = [fix for cause in load().causes.values() for fix in advice.fixes(cause, case(*signs))]
    commands = [*(e.command for e in tried), *(fix.command for fix in fixes)]
    assert len(commands) > 50
    assert [command for command in commands if re.search(foreign, command)] == []


def test_every_question_is_asked_by_a_cause_and_decides_known_ones() -> None:
    assert {name for cause in CAUSES.values() for name in cause["asks"]} == set(QUESTIONS)
    for question in QUESTIONS.values():
        assert set(question["decides"]) <= set(CAUSES)


def test_rules_speak_of_known_causes_and_tokens() -> None:
    known = MATCHED | SAID | derived()
    assert {t for t in USED if t not in known and not re.fullmatch(r"xid:\d+", t)} == set()
    for rule in RULES:
        assert rule["cause"] in CAUSES
        assert isinstance(rule["points"], int)
        assert rule["because"]
        assert rule.get("when") or rule.get("any")
        assert set(rule) <= {"cause", "points", "when", "any", "unless", "decisive", "role", "because"}


def test_every_cause_can_be_found() -> None:
    """The two others are not reached by points: noise alone is no problem, and nothing decisive is no cause."""
    assert IN_A_TEXT - {r["cause"] for r in RULES} == {"harmless-noise", "insufficient-info"}


def shown() -> set[str]:
    """Causes that some text or recording of the tests shows."""
    own = {ticket["want"] for ticket in parse_yaml((HERE / "own.yaml").read_bytes()).values()}
    labels = [parse_yaml(path.read_bytes()) for path in HERE.rglob("labels.yaml")]
    return own | {label["cause"] for table in labels for label in table.values()}


def test_every_cause_has_a_ticket_that_shows_it() -> None:
    """Those that only `run` can see have recordings (tests/recordings/run) instead."""
    by_text = {name for name, cause in CAUSES.items() if cause.get("by") != "run"}
    assert by_text - shown() - {"insufficient-info"} == set()


def test_every_statement_counts_for_something() -> None:
    """Signatures count by their kind; what people say counts only where a rule or the code asks for it."""
    assert {name for name in SAID if name not in USED and f'"{name}"' not in SOURCE} == set()


def test_points_decide_as_documented() -> None:
    ranking = knowledge("ranking")
    assert (ranking["found"], ranking["margin"], ranking["confirmed"]) == (5, 2, 7)


NAMES: list[Name] = [*load().names.frameworks, *load().names.systems]
GPUS = load().gpu_names


@pytest.mark.parametrize("entry", NAMES, ids=lambda e: e.stems[0])
def test_cheap_test_passes_whatever_the_expression_matches(entry: Name) -> None:
    _stems_hold(entry.words, entry.stems)


@pytest.mark.parametrize("entry", GPUS, ids=lambda e: e.cc)
def test_cheap_test_of_a_gpu_passes_whatever_its_expression_matches(entry: Name) -> None:
    _stems_hold(f"(?i){entry.words}", entry.stems)


def _stems_hold(regex: str, stems: list[str]) -> None:
    @settings(max_examples=60, deadline=None, database=None)
    @given(st.from_regex(re.compile(regex, re.ASCII)))
    def check(text: str) -> None:
        assert any(stem in text.lower() for stem in stems)

    check()
