"""What was seen against what was measured elsewhere. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from cudnn_doctor.model.live import ScenarioResult, Step
from cudnn_doctor.model.reproduction import Row, RowVerdict
from cudnn_doctor.scenarios import scenarios
from cudnn_doctor.scenarios.base import Between, Expected, NoneOf, OneOf, Point, Scenario, expectation


def ran(result: ScenarioResult) -> bool:
    """Whether the state was begun: neither left out nor without a process."""
    return not result.skipped and result.fate.kind != "not-started"


def outcome_at(result: ScenarioResult, label: str) -> tuple[str, Step | None]:
    """What the state answered at a point: a status or number as text, a signal, "hang"; "" when it never got there."""
    for step in result.steps:
        if step.label == label:
            return (str(step.status), step) if step.status is not None else (_number(step.value), step)
    if result.fate.last_label == label and result.fate.kind != "completed":
        return death(result), None
    return "", None


def death(result: ScenarioResult) -> str:
    """How the process ended, in a word; "ok" when it did its work."""
    fate = result.fate
    if fate.kind == "signal":
        return fate.signal
    return {"completed": "ok", "timeout": "hang", "exit": f"exit {fate.exit_code}", "not-started": "not started"}[
        fate.kind
    ]


def unmade(result: ScenarioResult) -> str:
    """Why the state could not be made here: the driver refused a call that leads to it, or has no such call. "" when
    it was made, or when the process ended."""
    if result.fate.kind != "completed":
        return ""
    if result.fate.error:
        return result.fate.error
    found = next((s for s in result.steps if s.call == "found all the same"), None)
    if found is not None:
        return f"the loader finds {found.value} by itself"
    last = next((s for s in reversed(result.steps) if s.status is not None), None)
    driver = last is not None and last.call.startswith("cu") and not last.call.startswith("cudnn")
    state = scenarios().get(result.scenario)
    points = {p.label for p in state[1].points} if state else set()
    if last is not None and driver and last.status and last.label not in points:
        return f"{last.call} gave {last.status} {last.name} {last.detail}".rstrip()
    return ""


def _cut_off(result: ScenarioResult) -> bool:
    return result.fate.kind != "completed" or bool(unmade(result))


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def agrees(seen: str, expected: Expected) -> bool:
    """Whether an outcome is what was expected."""
    if isinstance(expected, Between):
        try:
            return expected.low <= float(seen) <= expected.high
        except ValueError:
            return False
    if isinstance(expected, OneOf):
        return seen in map(str, expected.of)
    if isinstance(expected, NoneOf):
        return seen not in map(str, expected.of)
    return seen == str(expected)


def in_words(expected: Expected) -> str:
    """An expectation for people."""
    if expected is None:
        return ""
    if isinstance(expected, Between):
        return f"{expected.low:g} to {expected.high:g}"
    if isinstance(expected, OneOf):
        return " or ".join(map(str, expected.of))
    if isinstance(expected, NoneOf):
        return "not " + " or ".join(map(str, expected.of))
    return str(expected)


def judged(result: ScenarioResult) -> ScenarioResult:
    """The result with its verdict and what was expected."""
    if result.skipped or result.scenario not in scenarios():
        return result
    state = scenarios()[result.scenario][1]
    verdicts, texts = [], []
    for point in state.points:
        expected, _basis = expectation(point, result.cudnn_version)
        seen, _step = outcome_at(result, point.label)
        verdicts.append(_verdict([seen], expected, cut_off=_cut_off(result)))
        if expected is not None:
            texts.append(f"{point.label}: {in_words(expected)}")
    if result.fate.kind != "completed" and not any(_died_at(result, p) for p in state.points):
        verdicts.append("differs")  # it ended where no point expects an end
    worst = next((v for v in ("differs", "unknown-version", "as-expected") if v in verdicts), "not-reached")
    return msgspec.structs.replace(result, verdict=worst, expected="; ".join(texts))


def _died_at(result: ScenarioResult, point: Point) -> bool:
    expected, _basis = expectation(point, result.cudnn_version)
    return result.fate.last_label == point.label or isinstance(expected, NoneOf)


def _verdict(seen: Sequence[str], expected: Expected, *, cut_off: bool) -> RowVerdict:
    """`cut_off`: the state could not be made, or its process ended at another point, which is judged there."""
    reached = [s for s in seen if s]
    if isinstance(expected, NoneOf):
        return "as-expected" if all(agrees(s, expected) for s in reached) else "differs"
    if not reached and cut_off:
        return "not-reached"
    if not reached:
        return "not-reached" if expected is None else "differs"
    if expected is None:
        return "unknown-version"
    return "as-expected" if all(agrees(s, expected) for s in reached) else "differs"


def rows(results: Sequence[ScenarioResult]) -> tuple[Row, ...]:
    """The table: a row a point, over all repetitions, in the order of the states."""
    groups: dict[tuple[str, str, int], list[ScenarioResult]] = {}
    for result in results:
        known = result.scenario in scenarios()  # a recording may hold a state that is no more
        if known and not result.skipped and result.device is not None:
            groups.setdefault((result.scenario, result.cudnn, result.device), []).append(result)
    order = list(scenarios())
    table: list[Row] = []
    for (scenario, _cudnn, _device), group in sorted(groups.items(), key=lambda g: order.index(g[0][0])):
        state = scenarios()[scenario][1]
        table += [row for p in state.points if (row := _row(state, p, group))]
    return tuple(table)


def _row(state: Scenario, point: Point, group: Sequence[ScenarioResult]) -> Row | None:
    pairs = [outcome_at(r, point.label) for r in group]
    counts = Counter(seen for seen, _ in pairs if seen)
    version = next((r.cudnn_version for r in group if r.cudnn_version), "")
    expected, basis = expectation(point, version)
    most = counts.most_common(1)[0][0] if counts else ""
    step = next((s for seen, s in pairs if seen == most and s), None)
    first = group[0]
    why = next((w for r in group if (w := unmade(r))), "")
    status = step.status if step else None
    return Row(
        scenario=state.id,
        label=point.label,
        device=first.device or 0,
        cudnn=first.cudnn,
        cudnn_version=version,
        outcome=most,
        name=step.name if step and status is not None else "",
        category=_category(version, step),
        fate=death(first),
        expected=in_words(expected),
        basis=basis,
        verdict=_verdict([seen for seen, _ in pairs], expected, cut_off=any(map(_cut_off, group))),
        unmade="" if most else why,
        seen=dict(counts.most_common()),
        call=step.call if step else first.fate.last_step if most else "",
    )


def _category(version: str, step: Step | None) -> str:
    if step is None or not step.status or not step.call.startswith("cudnn") or not version.startswith("9."):
        return ""
    from cudnn_doctor.knowledge.status import category

    return category(9, step.status)
