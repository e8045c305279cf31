"""Version numbers: whole numbers, never strings or fractions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_doctor.model import versions as v

PARTS = st.lists(st.integers(0, 9999), min_size=1, max_size=4)


def text(parts: list[int]) -> str:
    return ".".join(map(str, parts))


@given(PARTS)
def test_numbers_reads_what_is_written(parts: list[int]) -> None:
    assert v.numbers(text(parts)) == tuple(parts)


@given(PARTS, st.sampled_from([".post1", "rc0", "+cu130", ".dev5", "a1", "-beta"]))
def test_what_follows_the_release_does_not_count(parts: list[int], tail: str) -> None:
    assert v.numbers(text(parts) + tail) == tuple(parts)


@given(st.text(max_size=12))
def test_anything_else_is_a_value_error(given_text: str) -> None:
    if given_text[:1] in "0123456789" and given_text:
        assert v.numbers(given_text)
    else:
        with pytest.raises(ValueError, match="is not a version number"):
            v.numbers(given_text)


@given(st.integers(0, 99), st.integers(0, 99))
def test_minors_compare_as_integers(a: int, b: int) -> None:
    assert v.below(f"9.{a}.0", f"9.{b}") is (a < b)


def test_9_28_is_newer_than_9_3() -> None:
    assert v.below("9.3.0", "9.28.0")
    assert not v.below("9.28.0", "9.3.0")
    assert v.within("9.28.0.42", "9.3", "10")
    assert not v.within("9.3.0.75", "9.21", "9.28")


@given(PARTS, PARTS)
def test_below_is_an_order(a: list[int], b: list[int]) -> None:
    older, newer = v.below(text(a), text(b)), v.below(text(b), text(a))
    assert not (older and newer)
    padded = [*a, 0, 0, 0, 0][:4], [*b, 0, 0, 0, 0][:4]
    assert older is (padded[0] < padded[1])


@given(PARTS, PARTS)
def test_at_least_never_guesses(have: list[int], need: list[int]) -> None:
    answer = v.at_least(text(have), text(need))
    if answer is None:  # `have` is a prefix of `need`, so either could be
        assert need[: len(have)] == have
        assert len(have) < len(need)
    elif answer:
        assert have >= need or have[: len(need)] == need
    else:
        assert have < need


@pytest.mark.parametrize(
    ("have", "need", "answer"),
    [
        ("535.54.03", "525.60.13", True),
        ("525.60.13", "525.60.13", True),
        ("525.60.11", "525.60.13", False),
        ("525", "525.60.13", None),
        ("535", "525.60.13", True),
        ("450.51.05", "450.80.02", False),
        ("615.31", "615", True),
        ("99.9", "450.80.02", False),
    ],
)
def test_driver_releases(have: str, need: str, answer: bool | None) -> None:
    assert v.at_least(have, need) is answer


@given(st.integers(1, 8), st.integers(0, 9), st.integers(0, 9))
def test_numbers_of_cudnn_8_and_older(major: int, minor: int, patch: int) -> None:
    assert v.from_cudnn_number(major * 1000 + minor * 100 + patch) == f"{major}.{minor}.{patch}"


@given(st.integers(9, 12), st.integers(0, 99), st.integers(0, 99))
def test_numbers_of_cudnn_9_and_newer(major: int, minor: int, patch: int) -> None:
    assert v.from_cudnn_number(major * 10000 + minor * 100 + patch) == f"{major}.{minor}.{patch}"


def test_numbers_as_logs_print_them() -> None:
    assert [v.from_cudnn_number(n) for n in (5110, 7605, 8907, 90100, 91002, 92800)] == [
        "5.1.10", "7.6.5", "8.9.7", "9.1.0", "9.10.2", "9.28.0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "plain"),
    [("12.5.1", "12.5"), ("11.2", "11.2"), ("64_112", "11.2"), ("64_101", "10.1"), ("64_110", "11.0"), ("10", "10")],
)
def test_cuda_as_build_info_writes_it(written: str, plain: str) -> None:
    assert v.cuda_version(written) == plain


@pytest.mark.parametrize(
    ("python", "ranges", "fits"),
    [
        ("3.11", "3.9-3.11", True),
        ("3.11.7", "3.9-3.11", True),
        ("3.12", "3.9-3.11", False),
        ("3.8", "3.9-3.13", False),
        ("3.13", "3.9-3.13", True),
        ("2.7", "2.7 3.3-3.6", True),
        ("3.2", "2.7 3.3-3.6", False),
        ("3.6", "3.5", False),
        ("3.10", ">=3.9.0", True),
        ("3.8.18", ">=3.9.0", False),
    ],
)
def test_python_ranges(python: str, ranges: str, fits: bool) -> None:
    assert v.in_python_range(python, ranges) is fits


def test_within_takes_the_precision_given() -> None:
    assert v.within("9.20.1", "9.0", "9.20")
    assert not v.within("9.21.0", "9.0", "9.20")
    assert v.within("2.1.0", "2.1", "2.10")
    assert v.within("2.10.1", "2.1", "2.10")
    assert not v.within("1.15.2", "1.15.0", "1.15.0")
    assert v.within("99.0", "1.0")


@pytest.mark.parametrize(
    ("cuda", "ranges", "inside"),
    [("11.4", ("10.2", "11.0-11.4"), True), ("11.5", ("10.2", "11.0-11.4"), False), ("10.2.89", ("10.2",), True)],
)
def test_cuda_ranges(cuda: str, ranges: tuple[str, ...], inside: bool) -> None:
    assert v.in_ranges(cuda, ranges) is inside


@pytest.mark.parametrize("code", ["", "sm_", "9", "sm_9", "sm_9000", "sm_x0", "sm_\u0669\u0660", "9.0", "9" * 5000])
def test_what_is_no_architecture(code: str) -> None:
    with pytest.raises(v.NotAVersionError, match="is not the name of a GPU architecture"):
        v.capability(code)


def test_a_number_without_end_is_no_version() -> None:
    with pytest.raises(v.NotAVersionError):
        v.numbers("9" * 5000)
    assert v.numbers("9.1." + "9" * 5000) == (9, 1)
