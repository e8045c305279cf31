"""Points, margins and verdicts; fixes and questions that fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cudnn_doctor.diagnose import advice
from cudnn_doctor.diagnose.rank import Ranking, rank
from cudnn_doctor.logs.patterns import PointRule, PointRules, load
from cudnn_doctor.model.observations import Tokens
from cudnn_doctor.rules.sample import sample

CAUSES = load().causes


def verdict(rules: list[dict[str, Any]], *tokens: str, kin: Mapping[str, tuple[str, ...]] | None = None) -> Ranking:
    known = {name: replace(cause, kin=list((kin or {}).get(name, ()))) for name, cause in CAUSES.items()}
    found: Tokens = {token: [n] for n, token in enumerate(("kind:cudnn", *tokens))}
    limits = PointRules(found=5, margin=2, confirmed=7, rules=msgspec.convert(rules, list[PointRule]))
    return rank(found, replace(load(), ranking=limits, causes=known))


def rule(cause: str, points: int, *when: str, **more: Any) -> dict[str, Any]:
    return {"cause": cause, "points": points, "when": list(when), "because": f"{cause} {points}", **more}


def test_enough_points_and_a_clear_lead_make_a_cause() -> None:
    rules = [rule("vram-exhausted", 5, "a"), rule("prior-cuda-fault", 3, "a")]
    ranking = verdict(rules, "a")
    assert ranking.verdict == "cause-found"
    assert [(c.cause, c.points, c.confidence) for c in ranking.candidates] == [
        ("vram-exhausted", 5, "likely"),
        ("prior-cuda-fault", 3, "possible"),
    ]


@pytest.mark.parametrize(("best", "rival"), [(4, 0), (5, 4), (9, 8)])
def test_too_few_points_or_a_close_rival_decide_nothing(best: int, rival: int) -> None:
    rules = [rule("vram-exhausted", best, "a"), *([rule("prior-cuda-fault", rival, "a")] if rival else [])]
    ranking = verdict(rules, "a")
    assert ranking.verdict == "undetermined"
    assert {c.confidence for c in ranking.candidates} == {"possible"}


def test_close_relative_is_no_rival() -> None:
    rules = [rule("vram-exhausted", 6, "a"), rule("vram-preallocated", 5, "a")]
    assert verdict(rules, "a").verdict == "undetermined"
    kin = {"vram-exhausted": ("vram-preallocated",)}
    assert verdict(rules, "a", kin=kin).verdict == "cause-found"


@pytest.mark.parametrize(
    ("points", "decisive", "confidence"), [(7, True, "confirmed"), (7, False, "likely"), (6, True, "likely")]
)
def test_confirmed_needs_a_decisive_line_and_points(points: int, decisive: bool, confidence: str) -> None:
    ranking = verdict([rule("fork-after-init", points, "a", decisive=decisive)], "a")
    assert ranking.candidates[0].confidence == confidence


def test_rules_hold_by_when_any_and_unless() -> None:
    rules = [
        rule("fork-after-init", 1, "a", "b"),
        rule("context-reset", 1, "a", any=["x", "y"]),
        rule("driver-too-old", 1, "a", unless=["z"]),
    ]
    assert [c.cause for c in verdict(rules, "a", "b", "y", "z").candidates] == ["fork-after-init", "context-reset"]
    assert [c.cause for c in verdict(rules, "a").candidates] == ["driver-too-old"]


def test_points_against_a_cause_take_it_out() -> None:
    rules = [rule("vram-exhausted", 5, "a"), rule("vram-exhausted", -5, "b"), rule("prior-cuda-fault", 5, "b")]
    assert [c.cause for c in verdict(rules, "a", "b").candidates] == ["prior-cuda-fault"]


def test_evidence_is_of_the_strongest_rule_first_and_role_of_the_first_that_names_one() -> None:
    rules = [
        rule("vram-exhausted", 2, "a", role="primary"),
        rule("vram-exhausted", 4, "b"),
        rule("vram-exhausted", 3, "c", role="consequence"),
        rule("vram-exhausted", -1, "d"),
    ]
    (best,) = verdict(rules, "a", "b", "c", "d").candidates
    assert ([s.points for s in best.signs], best.role, best.points) == ([4, 3, 2], "consequence", 8)


def test_noise_alone_is_no_problem_and_with_a_complaint_not_decided() -> None:
    noise: Tokens = {"kind:noise": [0]}
    assert rank(noise, load()).verdict == "no-problem"
    assert rank(noise | {"fails": [1]}, load()).verdict == "undetermined"
    assert rank(noise | {"fails": [1], "works-anyway": [1]}, load()).verdict == "no-problem"


def test_nothing_of_nvidia_is_not_cudnn() -> None:
    assert rank({}, load()).verdict == "not-cudnn"
    assert rank({"fails": [0]}, load()).verdict == "not-cudnn"
    assert rank({"fails": [0], "cudnn-named": [0]}, load()).verdict == "undetermined"


def case(facts: dict[str, str], *signs: str, ranking: Ranking | None = None) -> advice.Weighed:
    return advice.Weighed(
        ranking=ranking or Ranking("undetermined"),
        signs={sign: [0] for sign in signs},
        facts=facts,
        values={},
        knowledge=load(),
    )


def fix_texts(cause: str, facts: dict[str, str], *signs: str) -> list[str]:
    return [f.text for f in advice.fixes(CAUSES[cause], case(facts, *signs))]


@pytest.mark.parametrize(
    ("cause", "facts", "signs", "command"),
    [
        (
            "vram-preallocated",
            {"framework": "tensorflow", "framework_version": "2.3.0"},
            (),
            "TF_FORCE_GPU_ALLOW_GROWTH=true python YOUR_SCRIPT.py",
        ),
        (
            "vram-preallocated",
            {"framework": "tensorflow", "framework_version": "1.15.0"},
            (),
            "TF_FORCE_GPU_ALLOW_GROWTH=true python YOUR_SCRIPT.py  # read from TensorFlow 1.14 on",
        ),
        (
            "vram-preallocated",
            {"framework": "jax"},
            (),
            "XLA_PYTHON_CLIENT_PREALLOCATE=false python YOUR_SCRIPT.py  # or XLA_PYTHON_CLIENT_MEM_FRACTION=.6",
        ),
        (
            "vram-preallocated",
            {},
            (),
            "nvidia-smi --query-gpu=memory.used,memory.total --format=csv",
        ),
    ],
)
def test_first_fix_is_for_the_framework_at_hand(
    cause: str, facts: dict[str, str], signs: tuple[str, ...], command: str
) -> None:
    assert advice.fixes(CAUSES[cause], case(facts, *signs))[0].command == command


def test_first_fix_of_a_fork_is_the_framework_s_own() -> None:
    first = advice.fixes(CAUSES["fork-after-init"], case({"framework": "pytorch"}))[0]
    assert first.text.startswith("Start workers with spawn")
    assert first.command == ""  # a start method is set in the program, no command sets it


def test_fix_is_for_the_system_at_hand() -> None:
    watchdog = CAUSES["launch-timeout-watchdog"]
    windows = " ".join(map(str, advice.fixes(watchdog, case({}, "os:windows"))))
    linux = " ".join(map(str, advice.fixes(watchdog, case({}, "os:linux"))))
    assert "TdrDelay" in windows
    assert "TdrDelay" not in linux


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_has_a_fix_without_any_fact(cause: str) -> None:
    assert fix_texts(cause, {})


def test_questions_that_the_text_answers_are_not_asked() -> None:
    ranking = verdict([rule("vram-exhausted", 3, "a"), rule("driver-too-old", 3, "a")], "a")
    asked = {q.id for q in advice.questions(case({}, ranking=ranking))}
    assert "driver" in asked
    assert "driver" not in {q.id for q in advice.questions(case({"driver": "460.91"}, ranking=ranking))}
    assert "driver" not in {q.id for q in advice.questions(case({}, ranking=ranking), machine=sample().snapshot)}
    assert 1 <= len(asked) <= 3


def test_confirmed_cause_asks_nothing_and_a_likely_one_asks_once() -> None:
    sure = verdict([rule("fork-after-init", 9, "a", decisive=True)], "a")
    likely = verdict([rule("fork-after-init", 5, "a")], "a")
    assert advice.questions(case({}, ranking=sure)) == ()
    assert len(advice.questions(case({}, ranking=likely))) == 1
