"""Conformance of every state, and how expectations follow from versions."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.scenarios import scenarios
from cudnn_doctor.scenarios.base import MEASURED, Between, Danger, NoneOf, OneOf, Scenario, expectation, point
from cudnn_doctor.scenarios.live_check import (
    BY_INPUT,
    BY_OUTPUT,
    BY_TAP,
    C,
    H,
    K,
    W,
    expected_values,
    filter_values,
    input_values,
)

ALL = [pytest.param(name, state, id=state.id) for name, state in scenarios().values()]
CAUSES = {row["id"] for row in knowledge("causes")}
REQUIRED = {
    "valid-stream", "null-handle", "other-context", "other-context-current", "handle-in-own-context",
    "no-context", "context-destroyed", "primary-reset", "primary-reset-new-stream",
    "context-retained-elsewhere", "stream-destroyed", "garbage-stream", "handle-destroyed", "other-device",
    "other-device-current", "after-fork", "illegal-address", "trap", "device-assert", "memory-before-create",
    "memory-before-set", "handle-cost", "stream-in-capture", "handle-in-capture", "stream-priority",
    "green-context", "threads-share-handle", "threads-own-handles", "sub-library-missing",
    "sub-library-foreign", "cublas-missing", "no-device", "malformed-devices", "stack-limit",
}  # fmt: skip


def test_none_is_missing() -> None:
    assert set(scenarios()) >= REQUIRED


@pytest.mark.parametrize(("name", "state"), ALL)
def test_a_state_has_all_that_belongs_to_it(name: str, state: Scenario) -> None:
    module = import_module(f"cudnn_doctor.scenarios.{name}")
    assert name == state.id.replace("-", "_")
    assert module.__doc__
    assert state.summary
    assert len(state.summary) < 130
    assert not state.summary.endswith(".")
    assert state.phrase
    assert state.shows.endswith(".")
    assert state.cause in CAUSES
    assert state.danger in get_args(Danger)
    assert state.source
    assert hasattr(module, "run") != hasattr(module, "run_bare")


@pytest.mark.parametrize(("name", "state"), ALL)
def test_every_point_is_made_by_the_body(name: str, state: Scenario) -> None:
    labels = [p.label for p in state.points]
    assert len(labels) == len(set(labels)) > 0
    source = inspect.getsource(import_module(f"cudnn_doctor.scenarios.{name}"))
    helpers = ("faults", "live_check", "threads_share_handle")
    source += "".join(Path(f"{Path(__file__).parents[2]}/cudnn_doctor/scenarios/{h}.py").read_text() for h in helpers)
    body = source.split("def run", 1)[1] + Path(f"{Path(__file__).parents[2]}/cudnn_doctor/live/session.py").read_text()
    for label in labels:
        spoken = label.split(" mode", maxsplit=1)[0].split(" ")[-1].upper() if " mode" in label else label
        assert spoken in body or spoken.capitalize() in body, label


@pytest.mark.parametrize(("name", "state"), ALL)
def test_an_expectation_for_every_measured_version(name: str, state: Scenario) -> None:
    for p in state.points:
        assert set(p.values) == set(MEASURED), p.label


def test_children_import_no_heavy_module() -> None:
    import subprocess
    import sys

    names = [f"cudnn_doctor.scenarios.{name}" for name, _ in scenarios().values()]
    code = f"import sys; sys.path[:0]={sys.path!r}\n" + "".join(f"import {n}\n" for n in names)
    heavy = ("msgspec", "yaml", "typer", "rich", "cuda", "subprocess", "dataclasses")
    code += f"print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("version", "value", "basis"),
    [
        ("8.9.7", 7, "measured with 8.9.7 elsewhere"),
        ("8.9.2", 7, "measured with 8.9.7 elsewhere"),  # same minor
        ("8.5.0", None, ""),
        ("7.6.5", None, ""),
        ("9.0.0", None, ""),
        ("9.1.1", 2007, "measured with 9.1.0 elsewhere"),
        ("9.5.0", 2007, "measured with 9.1.0 and 9.14.0, which agree"),
        ("9.16.0", None, ""),  # 9.14 and 9.19 differ
        ("9.19.0", 4000, "measured with 9.19.0 elsewhere"),
        ("9.27.0", None, ""),
        ("", None, ""),
    ],
)
def test_the_expectation_for_a_version(version: str, value: int | None, basis: str) -> None:
    p = point("x", v8=7, v9=2007, but={"9.19.0": 4000})
    assert expectation(p, version) == (value, basis)


def test_neighbours_that_were_never_reached_say_nothing() -> None:
    assert expectation(point("x", v8=0), "9.5.0") == (None, "")


def test_the_convolutions_right_answer_by_another_way() -> None:
    """All six loops instead of the factored form; and what makes the values a test."""
    x, w = input_values(), filter_values()

    def at(k: int, i: int, j: int) -> int:
        return sum(
            x[(c * H + i + r - 1) * W + j + s - 1] * w[((k * C + c) * 3 + r) * 3 + s]
            for c in range(C)
            for r in range(3)
            for s in range(3)
            if 0 <= i + r - 1 < H and 0 <= j + s - 1 < W
        )

    plain = [at(k, i, j) for k in range(K) for i in range(H) for j in range(W)]
    assert expected_values() == plain
    assert max(map(abs, [*x, *w])) < 2**11  # exact in TF32
    assert max(map(abs, plain)) < 2**24  # and their sums in fp32
    assert BY_TAP[::-1] != BY_TAP
    assert len(set(BY_OUTPUT)) == K
    assert sorted(BY_INPUT) != list(BY_INPUT)


def test_kinds_of_expectation_are_told_apart() -> None:
    assert len({type(x) for x in (Between(0, 1), OneOf((1,)), NoneOf((1,)))}) == 3
