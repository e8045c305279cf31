"""The authored YAML of explain is consistent: every name it uses exists, and everything in it is used."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_doctor import diagnose as explain
from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.logs.observe import _CATEGORY_9, _STATUS_8, _STATUS_9, _STATUS_WORDS
from cudnn_doctor.logs.patterns import load

PACKAGE = Path(explain.__file__).parents[1]
FILES = ("logs/observe", "logs/compare", "diagnose/rank", "diagnose/advice")  # those that name tokens
SOURCE = "\n".join((PACKAGE / f"{n}.py").read_text(encoding="utf-8") for n in FILES)
CAUSES: dict[str, dict[str, Any]] = {c["id"]: c for c in knowledge("causes")}
IN_A_TEXT = {name for name, cause in CAUSES.items() if "by" not in cause}  # the others only `run` sees
RULES: list[dict[str, Any]] = knowledge("ranking")["rules"]
QUESTIONS = {q["id"]: q for q in knowledge("questions")}
MATCHED = {s["id"] for s in knowledge("signatures")}
SAID = {s["id"] for s in knowledge("statements")}
USED = {token for rule in RULES for key in ("when", "any", "unless") for token in rule.get(key, ())}


def derived() -> set[str]:
    """The tokens that tokens.py and compare.py give by name."""
    names = {n.value for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    names |= {f"status:{s}" for s in (*_STATUS_8.values(), *_STATUS_9.values(), *_CATEGORY_9.values())}
    names |= {f"status:{s}" for s, _ in _STATUS_WORDS}
    names |= {f"kind:{s['kind']}" for s in knowledge("signatures")}
    return names | {f"framework:{n}" for n in ("tensorflow", "jax", "pytorch", "ctranslate2", "caffe")}


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
            assert set(fix.get("for", {})) <= {"framework", "os", "below", "from"}


def test_a_fix_without_conditions_fits_everybody() -> None:
    assert [name for name, cause in CAUSES.items() if all(f.get("for") for f in cause["fixes"])] == []


def test_every_question_is_asked_by_a_cause_and_decides_known_ones() -> None:
    assert {name for cause in CAUSES.values() for name in cause["asks"]} == set(QUESTIONS)
    for question in QUESTIONS.values():
        assert set(question["decides"]) <= set(CAUSES)


def test_rules_speak_of_known_causes_and_tokens() -> None:
    known = MATCHED | SAID | derived()
    assert {t for t in USED if t not in known and not re.fullmatch(r"xid:\d+", t)} == set()
    for rule in RULES:
        assert rule["cause"] in CAUSES
        assert rule["points"]
        assert rule["because"]
        assert rule.get("when") or rule.get("any")
        assert set(rule) <= {"cause", "points", "when", "any", "unless", "decisive", "role", "because"}


def test_every_cause_can_be_found() -> None:
    """The two others are not reached by points: noise alone is no problem, and nothing decisive is no cause."""
    assert IN_A_TEXT - {r["cause"] for r in RULES} == {"harmless-noise", "insufficient-info"}


def test_every_statement_counts_for_something() -> None:
    """Signatures count by their kind; what people say counts only where a rule or the code asks for it."""
    assert {name for name in SAID if name not in USED and f'"{name}"' not in SOURCE} == set()


def test_points_decide_as_documented() -> None:
    ranking = knowledge("ranking")
    assert (ranking["found"], ranking["margin"], ranking["confirmed"]) == (5, 2, 7)


NAMES = load()["facts"]["frameworks"] + load()["facts"]["systems"]
GPUS = load()["tables"]["gpu_names"]


@pytest.mark.parametrize("entry", NAMES, ids=lambda e: e["stems"][0])
def test_cheap_test_passes_whatever_the_expression_matches(entry: dict[str, Any]) -> None:
    _stems_hold(entry["words"], entry["stems"])


@pytest.mark.parametrize("entry", GPUS, ids=lambda e: e[0])
def test_cheap_test_of_a_gpu_passes_whatever_its_expression_matches(entry: list[Any]) -> None:
    _stems_hold(f"(?i){entry[1]}", entry[2])


def _stems_hold(regex: str, stems: list[str]) -> None:
    @settings(max_examples=60, deadline=None, database=None)
    @given(st.from_regex(re.compile(regex, re.ASCII)))
    def check(text: str) -> None:
        assert any(stem in text.lower() for stem in stems)

    check()
