"""What runs before and after prove, and how a bisection goes; both pure."""

from __future__ import annotations

from math import ceil, log2

import pytest

from cudnn_doctor.clone.verdicts import bisect, verdict_of
from cudnn_doctor.model.package_trial import Attempt, Series, Step


def series(*fails: bool, ending: str = "exit code 1", said: str = "", cudnn: tuple[str, ...] = ()) -> Series:
    attempts = (
        Attempt(ok=not f, ending=ending if f else "exit code 0", seconds=0.1, said=said, cudnn=cudnn) for f in fails
    )
    return Series(attempts=tuple(attempts), packages={})


BAD, GOOD = series(True, True, True), series(False, False, False)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        (BAD, GOOD, "proved", "it fails 3 of 3 times before (exit code 1) and passes 3 of 3 times after"),
        (BAD, BAD, "no-difference", "it fails 3 of 3 times before and 3 of 3 times after, in the same way"),
        (
            BAD,
            series(True, True, True, ending="SIGABRT"),
            "no-difference",
            "it still fails 3 of 3 times, in another way: SIGABRT after exit code 1",
        ),
        (
            GOOD,
            GOOD,
            "no-difference",
            "it passes 3 of 3 times before already: this state of the environment is not at fault",
        ),
        (GOOD, BAD, "worse", "it passes 3 of 3 times before and fails 3 of 3 times after: exit code 1"),
        (
            series(True, False, False),
            GOOD,
            "flaky",
            "it fails 1 of 3 times before and 0 of 3 times after: more runs (--times) decide",
        ),
        (
            BAD,
            series(False, True, False),
            "flaky",
            "it fails 3 of 3 times before and 1 of 3 times after: more runs (--times) decide",
        ),
        (
            series(True, ending="not started: nothing: No such file or directory"),
            GOOD,
            "not-comparable",
            "not started: nothing: No such file or directory",
        ),
    ],
)
def test_verdicts(before: Series, after: Series, verdict: str, reason: str) -> None:
    assert verdict_of(before, after) == (verdict, reason)


def test_a_proof_tells_what_it_maps_now() -> None:
    old = series(True, cudnn=("{env}/a/libcudnn.so.9", "{env}/a/libcudnn_ops.so.9"))
    new = series(False, cudnn=("{env}/b/libcudnn.so.9",))
    assert verdict_of(old, new)[1].endswith("; it now maps {env}/b/libcudnn.so.9")
    same = series(False, cudnn=("{env}/a/libcudnn.so.9",))
    assert verdict_of(old, same)[1].endswith("by the same paths, whose files are of the other version")


@pytest.mark.parametrize("count", [2, 3, 8, 13])
def test_a_bisection_finds_every_place_in_the_fewest_steps(count: int) -> None:
    versions = [f"9.{n}" for n in range(count)]
    for first_bad in range(1, count):
        for bad_first in (False, True):

            def fails(version: str, turn: int = first_bad, flip: bool = bad_first) -> Step:
                broken = (versions.index(version) >= turn) != flip
                return Step(version=version, failed=3 * broken, of=3)

            steps, turning, reason = bisect(versions, fails)
            assert turning == (versions[first_bad - 1], versions[first_bad])
            assert len(steps) - 2 <= ceil(log2(count - 1 or 1))
            good, bad = turning[::-1] if bad_first else turning
            assert reason == f"{good} passes and {bad} fails"


def test_a_bisection_that_cannot_say_says_why() -> None:
    def never(version: str) -> Step:
        return Step(version=version, failed=3, of=3)

    assert bisect(["1", "2", "3"], never)[1:] == (None, "1 and 3 both fail: nothing to find between them")

    def flaky(version: str) -> Step:
        return Step(version=version, failed={"1": 0, "2": 1, "3": 3}[version], of=3)

    assert bisect(["1", "2", "3"], flaky)[1:] == (None, "2 decides nothing: fails 1 of 3 times")

    def gone(version: str) -> Step:
        return Step(version=version, failed=0, of=0, error="no such wheel")

    assert bisect(["1", "2"], gone)[1:] == (None, "1 could not be installed: no such wheel")
