"""Requires-Dist lines against installed versions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudnn_doctor.matrix.compat import declared_range, satisfies
from cudnn_doctor.matrix.requires import specifier_for

FULL = st.lists(st.integers(0, 12), min_size=4, max_size=4).map(lambda p: ".".join(map(str, p)))
LIMIT = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(lambda p: ".".join(map(str, p)))


@given(FULL, st.lists(st.tuples(st.sampled_from(["==", "!=", ">=", "<=", ">", "<"]), LIMIT), max_size=3))
def test_agrees_with_packaging_on_full_versions(version: str, limits: list[tuple[str, str]]) -> None:
    specifier = ",".join(operator + limit for operator, limit in limits)
    assert satisfies(version, specifier) is SpecifierSet(specifier).contains(Version(version))


@given(FULL, st.lists(st.integers(0, 12), min_size=2, max_size=4))
def test_agrees_with_packaging_on_compatible_and_wildcard(version: str, parts: list[int]) -> None:
    limit = ".".join(map(str, parts))
    for specifier in (f"~={limit}", f"=={limit}.*", f"!={limit}.*"):
        assert satisfies(version, specifier) is SpecifierSet(specifier).contains(Version(version))


@given(FULL, st.sampled_from(["==", "!=", ">=", "<=", ">", "<"]), FULL, st.integers(1, 3))
def test_a_short_version_fits_when_a_full_one_of_it_would(version: str, operator: str, limit: str, length: int) -> None:
    short = ".".join(version.split(".")[:length])
    if satisfies(version, operator + limit):
        assert satisfies(short, operator + limit)


@pytest.mark.parametrize(
    ("version", "specifier", "fits"),
    [
        ("9.19.0", "==9.19.0.56", True),
        ("9.19.1", "==9.19.0.56", False),
        ("9.28.0", ">=9.3.0.75,<10.0", True),
        ("9.1.0", ">=9.3.0.75,<10.0", False),
        ("10.0.0", ">=9.3.0.75,<10.0", False),
        ("9.3.0", ">=9.3.0.75,<10.0", True),
        ("9", "<9.11", True),
        ("9.28.0.42", "", True),
    ],
)
def test_satisfies(version: str, specifier: str, fits: bool) -> None:
    assert satisfies(version, specifier) is fits


def verdicts(*requires: str, found: dict[str, str] | None = None, **more: Any) -> list[tuple[str, str]]:
    return [(j.verdict, j.text) for j in declared_range(requires, found or {}, **more)]


def test_a_range_of_an_extra() -> None:
    line = "nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == 'and-cuda'"
    assert verdicts(line, found={"nvidia-cudnn-cu12": "9.28.0.42"}) == [
        ("ok", "requires nvidia-cudnn-cu12<10.0,>=9.3.0.75, found 9.28.0.42")
    ]
    assert verdicts(line, found={"nvidia-cudnn-cu12": "9.1.0.70"})[0][0] == "problem"
    assert verdicts(line) == [("unknown", "requires nvidia-cudnn-cu12<10.0,>=9.3.0.75, which is not installed")]


def test_another_copy_stands_for_the_wheel() -> None:
    line = "nvidia-cudnn-cu13==9.19.0.56; platform_system == 'Linux'"
    assert verdicts(line, other="9.19.0")[0][0] == "ok"
    assert verdicts(line, other="9.10.2")[0][0] == "problem"
    assert verdicts(line, found={"nvidia-cudnn-cu13": "9.19.0.56"}, other="9.10.2")[0][0] == "ok"


def test_an_extra_that_nobody_asked_for_does_not_count() -> None:
    line = "nvidia-cudnn-cu12==8.9.4.25; extra == 'and-cuda'"
    assert verdicts(line, other="8.9.7", installed=()) == []  # plain tensorflow with a cuDNN of the system
    assert [v for v, _ in verdicts(line, other="8.9.7", installed=("nvidia-cudnn-cu12",))] == ["problem"]
    assert [v for v, _ in verdicts("nvidia-cudnn-cu12==8.9.4.25", other="8.9.7", installed=())] == ["problem"]


def test_only_lines_that_apply_count() -> None:
    linux = "nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == 'Linux' and platform_machine == 'x86_64'"
    found = {"nvidia-cudnn-cu12": "9.28.0.42"}
    assert [v for v, _ in verdicts(linux, found=found)] == ["problem"]
    assert verdicts(linux, found=found, machine="aarch64") == []
    assert verdicts(linux, found=found, system="windows") == []
    old = "nvidia-cudnn-cu12==8.9.2.26; python_version < '3.9'"
    assert verdicts(old, found=found, python="3.12.3") == []
    assert [v for v, _ in verdicts(old, found=found, python="3.8.18")] == ["problem"]


def test_other_requirements_and_broken_lines_are_left_out() -> None:
    found = {"nvidia-cudnn-cu12": "9.28.0.42"}
    assert verdicts("nvidia-cublas-cu12==12.1", "numpy", "nvidia-cudnn-frontend>=1.5", "=== broken", found=found) == []


def test_names_are_normalised() -> None:
    assert [v for v, _ in verdicts("Nvidia_Cudnn.cu12>=9", found={"nvidia-cudnn-cu12": "9.1.0.70"})] == ["ok"]


def test_the_specifier_of_one_distribution() -> None:
    lines = ("numpy>=1", "not a line !!", "nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == 'and-cuda'")
    assert specifier_for(lines, "nvidia-cudnn-cu12") == "<10.0,>=9.3.0.75"
    assert specifier_for(lines, "nvidia-cudnn-cu13") == ""
