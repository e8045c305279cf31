"""Rules on the states of `reproduce`: CD620 to CD623. They judge what the states answered, not the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cudnn_doctor.model.base import NOT_EXAMINED, blank
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.model.report import Evidence, Finding, Fix
from cudnn_doctor.model.reproduction import Row
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, skip, unknown

CONTROL = "valid-stream"
CUDNN = "/opt/cudnn/lib/libcudnn.so.9"  # of the examples
CHECK = Fix(
    text="Let the examination say what is wrong with driver, cuDNN and their libraries",
    command="cudnn-doctor check",
    verify=f"cudnn-doctor reproduce --scenario {CONTROL} answers 0 throughout",
)
SOURCE = "scenarios/*.py: measured on an NVIDIA H200 with cuDNN 8.9.7, 9.1.0, 9.14.0 and 9.19.0"


class StatesCase(Case):
    """A case that holds the states' table; rules find it as `case.rows`."""

    def __init__(self, results: Sequence[ScenarioResult], rows: Sequence[Row], harmless: frozenset[str]) -> None:
        super().__init__(blank(Snapshot, NOT_EXAMINED), results)
        self.rows, self.harmless = tuple(rows), harmless


def findings(results: Sequence[ScenarioResult], rows: Sequence[Row], harmless: frozenset[str]) -> tuple[Finding, ...]:
    """What the rules here say of the states that were run; `harmless` holds the ids of those that kill nothing."""
    case = StatesCase(results, rows, harmless)
    return tuple(f for r in all_rules("reproduce") for f in r.apply(case))


def _result(**changes: Any) -> ScenarioResult:
    fields: dict[str, Any] = {
        "scenario": CONTROL,
        "device": 0,
        "cudnn": CUDNN,
        "cudnn_version": "9.19.0",
        "fate": Termination(kind="completed"),
        "steps": (Step(call="cudnnSetStream", label="own stream", status=0, name="CUDNN_STATUS_SUCCESS"),),
        "ms": 1.0,
        "verdict": "as-expected",
    }
    return ScenarioResult(**{**fields, **changes})


def _row(**changes: Any) -> Row:
    fields: dict[str, Any] = {
        "scenario": "null-handle",
        "label": "NULL handle",
        "device": 0,
        "cudnn": CUDNN,
        "cudnn_version": "9.19.0",
        "outcome": "2000",
        "fate": "ok",
        "expected": "2000",
        "basis": "measured with 9.19.0 elsewhere",
        "verdict": "as-expected",
        "seen": {"2000": 1},
    }
    return Row(**{**fields, **changes})


def _case(*results: ScenarioResult, rows: Sequence[Row] = ()) -> Case:
    return StatesCase(results, rows, frozenset({CONTROL, "null-handle"}))


def _rows(case: Case) -> tuple[Row, ...]:
    found: tuple[Row, ...] = getattr(case, "rows", ())
    return found


def _states(case: Case) -> list[tuple[int, ScenarioResult]]:
    """Results of states with their place in the report."""
    return [(i, r) for i, r in enumerate(case.scenarios) if r.scenario != "live-check"]


def _subject(cudnn_version: str, device: int | None) -> str:
    return f"cuDNN {cudnn_version or '(version unknown)'} on GPU {device}"


@rule(
    "CD620",
    title="The valid-stream control works",
    severity="error",
    owner="environment",
    causes=(),
    explain="""A handle and a stream made in the same context must be accepted, and so must the NULL, legacy and
per-thread stream. Where this control fails, what the other states answer says nothing about stream errors.""",
    source=SOURCE,
    examples=lambda: (
        (
            "problem",
            _case(_result(steps=(), fate=Termination(kind="signal", signal="SIGABRT", last_step="cudnnCreate"))),
        ),
        ("ok", _case(_result())),
        ("skipped", _case()),
    ),
)
def control_fails(case: Case) -> Iterator[Outcome]:
    """CD620."""
    for i, result in _states(case):
        if result.scenario != CONTROL or result.skipped:
            continue
        subject = _subject(result.cudnn_version, result.device)
        first = next((s for s in result.steps if s.status), None)
        words = _words(result, first)
        evidence = [Evidence(pointer=f"/scenarios/{i}", value=words, source="a child process of reproduce")]
        if result.verdict == "differs" or first or result.fate.kind != "completed":
            yield problem(subject, "A valid stream does not work", detail=words, evidence=evidence, fixes=[CHECK])
        else:
            yield passed(subject, "A valid stream works", evidence=evidence)


def _words(result: ScenarioResult, failed: Step | None) -> str:
    fate = result.fate
    if fate.kind == "signal":
        return f"{fate.last_step or 'the process'} ended by {fate.signal}" + (f": {fate.stderr}" if fate.stderr else "")
    if fate.kind != "completed":
        return f"{fate.kind} in {fate.last_step or 'an unknown call'}"
    if failed:
        return f"{failed.call} gave {failed.status} {failed.name} {failed.detail}".rstrip()
    return fate.error or "every call succeeded"


@rule(
    "CD621",
    title="States answer as measured elsewhere",
    severity="note",
    owner="program",
    causes=(),
    explain="""Every state was run under four cuDNN versions on an H200. This one answers differently here than under
the same version there (or than both neighbours of this version, which agree). Nothing is broken by that: it is how a
new driver, GPU or cuDNN is learnt. States with undefined behaviour can differ from run to run; --repeat shows how
often.""",
    source=SOURCE,
    examples=lambda: (
        ("problem", _case(rows=[_row(outcome="2002", verdict="differs", seen={"2002": 1})])),
        ("ok", _case(rows=[_row()])),
        ("unknown", _case(rows=[_row(outcome="", verdict="not-reached", seen={}, unmade="cuGreenCtxCreate gave 801")])),
        ("skipped", _case(rows=[_row(expected="", verdict="unknown-version")])),
    ),
)
def answer_differs(case: Case) -> Iterator[Outcome]:
    """CD621."""
    table = [row for row in _rows(case) if row.scenario != CONTROL]
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in table:
        if row.verdict == "differs":
            groups.setdefault((row.scenario, row.cudnn, row.device), []).append(row)
    for (scenario, _cudnn, device), rows in groups.items():
        first = rows[0]
        seen = [", ".join(f"{o} {n}x" for o, n in row.seen.items()) or "never reached" for row in rows]
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        yield problem(
            f"{scenario}, {_subject(first.cudnn_version, device)}",
            f"{first.label}: {first.outcome or 'not reached'}, not {first.expected}{more}",
            detail=f"Expected from what was {first.basis}. The process: {first.fate}.",
            evidence=[
                Evidence(
                    pointer=_pointer(case, row),
                    value=f"{row.label}: {text}; expected {row.expected}",
                    source="a child process of reproduce",
                )
                for row, text in zip(rows, seen, strict=True)
            ],
            fixes=[
                Fix(
                    text="See whether it is always so",
                    command=f"cudnn-doctor reproduce --scenario {scenario} --repeat 5",
                    verify="The distribution shows one answer, or that the state is flaky",
                )
            ],
        )
    for row in table:
        if row.unmade:
            subject = f"{row.scenario}, {_subject(row.cudnn_version, row.device)}"
            yield unknown(subject, f"{row.label}: the state could not be made here", detail=row.unmade)
    if table and not any(row.verdict == "differs" for row in table):
        known = sum(row.verdict == "as-expected" for row in table)
        evidence = Evidence(pointer="/rows", value=f"{known} of {len(table)} answers", source="reproduce")
        if known:
            yield passed("states", "Every answer that was measured before came again", evidence=[evidence])


def _pointer(case: Case, row: Row) -> str:
    for i, r in _states(case):
        if (r.scenario, r.cudnn, r.device) == (row.scenario, row.cudnn, row.device):
            return f"/scenarios/{i}"
    return "/rows"


@rule(
    "CD622",
    title="Harmless states leave the process alive",
    severity="error",
    owner="environment",
    causes=("library-bug",),
    explain="""A state that harms nothing elsewhere ended its process here. The library that was running says where: a
crash in cudnnCreate or cuInit points to a broken install or driver, not to the state.""",
    source=SOURCE,
    examples=lambda: (
        (
            "problem",
            _case(
                _result(
                    scenario="null-handle",
                    steps=(),
                    fate=Termination(
                        kind="signal", signal="SIGSEGV", last_step="cudnnSetStream", last_label="NULL handle"
                    ),
                )
            ),
        ),
        ("ok", _case(_result(scenario="null-handle"))),
        ("skipped", _case()),
    ),
)
def harmless_state_kills(case: Case) -> Iterator[Outcome]:
    """CD622."""
    harmless: frozenset[str] = getattr(case, "harmless", frozenset()) - {CONTROL}
    mine = [(i, r) for i, r in _states(case) if r.scenario in harmless and not r.skipped]
    for i, result in mine:
        if result.fate.kind in ("signal", "exit", "timeout"):
            words = _words(result, None)
            yield problem(
                f"{result.scenario}, {_subject(result.cudnn_version, result.device)}",
                f"{result.scenario} ended its process",
                detail=words,
                evidence=[Evidence(pointer=f"/scenarios/{i}/fate", value=words, source="a child process of reproduce")],
                fixes=[CHECK],
            )
    alive = sum(r.fate.kind == "completed" for _, r in mine)
    if alive and alive == len(mine):
        evidence = Evidence(pointer="/scenarios", value=f"{alive} states", source="reproduce")
        yield passed("states", "Every harmless state left its process alive", evidence=[evidence])


@rule(
    "CD623",
    title="States that were not run",
    severity="note",
    owner="program",
    causes=(),
    explain="""States that fault the context leave a line in the kernel log and, under MPS, end every client of the
server; states that fill the device's memory take it from everyone. Both are run only when asked for and when it harms
nobody. Others need two GPUs or a second copy of cuDNN.""",
    source="design of reproduce",
    examples=lambda: (
        (
            "skipped",
            _case(_result(scenario="trap", steps=(), fate=Termination(kind="not-started"), skipped="refused: MPS")),
        ),
        ("skipped", _case(_result())),
    ),
)
def state_refused(case: Case) -> Iterator[Outcome]:
    """CD623."""
    for _, result in _states(case):
        if result.skipped:
            yield skip(f"{result.scenario}, {_subject(result.cudnn_version, result.device)}", result.skipped)
