"""`--only` and `--skip`: which rules run."""

from __future__ import annotations

import pytest

from cudnn_doctor.rules import CATEGORIES, all_rules
from cudnn_doctor.rules.selection import select_rules

RULES = all_rules()


def codes(*, only: tuple[str, ...] = (), skip: tuple[str, ...] = (), always: tuple[str, ...] = ()) -> list[str]:
    return [r.code for r in select_rules(RULES, only=only, skip=skip, always=always)]


def starting(*prefixes: str) -> list[str]:
    return [r.code for r in RULES if r.code.startswith(prefixes)]


def test_without_wishes_all_run_in_order() -> None:
    assert codes() == [r.code for r in RULES] == sorted(r.code for r in RULES)


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (("CD301",), ["CD301"]),
        (("cd301",), ["CD301"]),
        (("CD3",), starting("CD3")),
        (("CD30",), starting("CD30")),
        (("cuDNN", "GPU"), starting("CD2", "CD3")),
        (("live", "CD101"), ["CD101", *starting("CD6")]),
    ],
)
def test_only(only: tuple[str, ...], expected: list[str]) -> None:
    assert codes(only=only) == expected


def test_skip_takes_away_from_only() -> None:
    assert codes(only=("driver",), skip=("CD101", "CD10")) == starting("CD11")
    assert codes(skip=tuple(CATEGORIES.values())[1:]) == starting("CD1")


def test_what_is_always_wanted_runs_whatever_is_left_out() -> None:
    assert codes(only=("CD601",), skip=("driver",), always=("CD101",)) == ["CD101", "CD601"]
    assert codes(only=("CD1",), skip=("CD1",), always=("CD101",)) == ["CD101"]


@pytest.mark.parametrize("name", ["CD999", "CD", "CD3x", "3", "", "cudn", "CD101,CD102", "*"])
def test_a_name_that_matches_nothing(name: str) -> None:
    for wanted in ({"only": (name,)}, {"skip": ("CD101", name)}):
        with pytest.raises(ValueError, match=r"matches no rule; --only and --skip take a code \(CD101\)") as caught:
            codes(**wanted)
        assert str(caught.value).startswith(repr(name))
        assert "one of driver, gpu, cudnn, compatibility, environment, live." in str(caught.value)


def test_nothing_left() -> None:
    with pytest.raises(ValueError, match="--only and --skip together leave no rule to run"):
        codes(only=("CD301",), skip=("cudnn",))
