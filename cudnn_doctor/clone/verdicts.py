"""What runs before and after a change prove; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cudnn_doctor.model.package_trial import Attempt, Series, Step, Verdict

EXIT: dict[Verdict, int] = {"proved": 0, "no-difference": 1, "worse": 1, "flaky": 1, "not-comparable": 2}


def verdict_of(before: Series, after: Series) -> tuple[Verdict, str]:
    """The verdict and one sentence. Failing and passing must be unanimous: one run in k proves nothing."""
    k, m = len(before.attempts), len(after.attempts)
    if not k or not m:
        return "not-comparable", "the program was not run in both states"
    odd = next((a for a in (*before.attempts, *after.attempts) if a.ending.startswith("not started")), None)
    if odd:
        return "not-comparable", odd.ending
    failing, still = before.failed, after.failed
    if 0 < failing < k or 0 < still < m:
        return (
            "flaky",
            f"it fails {failing} of {k} times before and {still} of {m} times after: more runs (--times) decide",
        )
    if not failing and not still:
        return (
            "no-difference",
            f"it passes {k} of {k} times before already: this state of the environment is not at fault",
        )
    if failing and not still:
        return _proof(before, after)
    if still and not failing:
        return (
            "worse",
            f"it passes {k} of {k} times before and fails {m} of {m} times after: {after.attempts[0].ending}",
        )
    if _signature(before.attempts[0]) != _signature(after.attempts[0]):
        first, then = before.attempts[0].ending, after.attempts[0].ending
        return "no-difference", f"it still fails {m} of {m} times, in another way: {then} after {first}"
    return "no-difference", f"it fails {k} of {k} times before and {m} of {m} times after, in the same way"


def _proof(before: Series, after: Series) -> tuple[Verdict, str]:
    """Passing after failing is a proof when what was changed was at work, as far as that can be seen."""
    k, m = len(before.attempts), len(after.attempts)
    text = f"it fails {k} of {k} times before ({before.attempts[0].ending}) and passes {m} of {m} times after"
    old, new = mapped(before), mapped(after)
    if new and old != new:
        text += f"; it now maps {', '.join(sorted(set(new) - set(old)) or new)[:200]}"
    elif new:
        text += "; it maps cuDNN by the same paths, whose files are of the other version"
    return "proved", text


def mapped(series: Series) -> list[str]:
    """The libcudnn files that a series of runs mapped, without the parts beside them."""
    return sorted({p for a in series.attempts for p in a.cudnn if p.rpartition("/")[2].startswith("libcudnn.so")})


def _signature(attempt: Attempt) -> tuple[str, str]:
    lines = attempt.said.splitlines()
    return attempt.ending, lines[-1][:60] if lines else ""


def bisect(
    versions: Sequence[str], fails: Callable[[str], Step]
) -> tuple[tuple[Step, ...], tuple[str, str] | None, str]:
    """Finds two neighbours between which the outcome changes: both ends first, then halves.

    Returns:
        the steps in their order, the neighbours (None where there are none), and a sentence.
    """
    steps = [fails(v) for v in dict.fromkeys((versions[0], versions[-1]))]
    broken = next((s for s in steps if s.error), None)
    if broken:
        return tuple(steps), None, f"{broken.version} could not be installed: {broken.error}"
    mixed = next((s for s in steps if 0 < s.failed < s.of), None)
    if mixed:
        return (
            tuple(steps),
            None,
            f"{mixed.version} fails {mixed.failed} of {mixed.of} times: more runs (--times) decide",
        )
    first, last = steps[0], steps[-1]
    if bool(first.failed) == bool(last.failed):
        word = "fail" if first.failed else "pass"
        return tuple(steps), None, f"{first.version} and {last.version} both {word}: nothing to find between them"
    low, high = 0, len(versions) - 1
    while high - low > 1:
        middle = (low + high) // 2
        step = fails(versions[middle])
        steps.append(step)
        if step.error or 0 < step.failed < step.of:
            what = step.error or f"fails {step.failed} of {step.of} times"
            return tuple(steps), None, f"{step.version} decides nothing: {what}"
        if bool(step.failed) == bool(first.failed):
            low = middle
        else:
            high = middle
    good, bad = (versions[high], versions[low]) if first.failed else (versions[low], versions[high])
    return tuple(steps), (versions[low], versions[high]), f"{good} passes and {bad} fails"
