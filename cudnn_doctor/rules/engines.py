"""Rules on the execution plans of cuDNN's engines: CD650 to CD654. They judge an `EnginesReport`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cudnn_doctor.model.base import NOT_EXAMINED, blank
from cudnn_doctor.model.engines import Control, EngineRow, EnginesReport, ProblemReport, Totals
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.report import Evidence, Finding, Fix, Tool
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, skip, unknown

MXNET = "https://github.com/apache/mxnet/pull/21104"
SOURCE = "cudnn-doctor engines"
THREADS = "https://github.com/pytorch/pytorch/pull/103939"


class EnginesCase(Case):
    """A case that holds the examination of the engines; rules find it as `case.engines`. `at` is its JSON
    pointer in the document that shows the findings: "" in its own, "/engines" in the report of `check --deep`."""

    def __init__(self, engines: EnginesReport, snapshot: Snapshot | None = None, at: str = "") -> None:
        super().__init__(blank(Snapshot, NOT_EXAMINED) if snapshot is None else snapshot)
        self.engines, self.at = engines, at


def findings(report: EnginesReport, snapshot: Snapshot | None = None, at: str = "") -> tuple[Finding, ...]:
    """What the rules here say of an examination."""
    case = EnginesCase(report, snapshot, at)
    return tuple(f for r in all_rules("engines") for f in r.apply(case))


# ---------------------------------------------------------------- what the rules look at


class _At:
    """One row with where it is."""

    def __init__(self, pointer: str, part: ProblemReport, row: EngineRow) -> None:
        self.pointer, self.part, self.row = pointer, part, row

    @property
    def place(self) -> str:
        p = self.part
        return f"{p.data_type} {p.layout} {p.shape}"


def _by_engine(case: EnginesCase, counts: str) -> list[tuple[str, int, list[_At]]]:
    """Operation, engine and its rows in which the field `counts` is not zero."""
    groups: dict[tuple[str, int], list[_At]] = {}
    for i, part in enumerate(case.engines.problems):
        for j, row in enumerate(part.rows):
            if getattr(row, counts):
                at = _At(f"{case.at}/problems/{i}/rows/{j}", part, row)
                groups.setdefault((part.operation, row.engine), []).append(at)
    return [(operation, engine, rows) for (operation, engine), rows in sorted(groups.items())]


def _none_of(case: EnginesCase, tested: str, title: str, what: str) -> Outcome:
    """Passed where something was tested, which the total `tested` counts."""
    n = getattr(case.engines.totals, tested)
    if not n:
        return skip(f"cuDNN {case.engines.cudnn_version}".strip(), "no plan was put to this test")
    evidence = Evidence(pointer=f"{case.at}/totals/{tested}", value=f"0 of {n} plans {what}", source=SOURCE)
    return passed(f"cuDNN {case.engines.cudnn_version}".strip(), title, evidence=[evidence])


def _evidence(rows: list[_At], counts: str, verdicts: tuple[str, ...] = ()) -> list[Evidence]:
    found = []
    for at in rows[:5]:
        why = next((f.why for f in at.row.faults if f.verdict in verdicts and f.why), "")
        value = f"{at.place}: {getattr(at.row, counts)} of {at.row.plans} plans{': ' + why if why else ''}"
        found.append(Evidence(pointer=f"{at.pointer}/{counts}", value=value, source=SOURCE))
    return found


def _subject(operation: str, engine: int) -> str:
    return f"engine {engine} of {operation}"


def _verify(operation: str, engine: int) -> str:
    return f"cudnn-doctor engines --op {operation} --engine {engine}"


def switches(operation: str, engine: int) -> list[Fix]:
    """How frameworks are kept off one engine."""
    from cudnn_doctor.knowledge.load import knowledge

    fixes = []
    for switch in knowledge("engines")["switches"]:
        if operation in switch["operations"]:
            variable = switch["operations"][operation]
            command = switch["command"].format(engine=engine, variable=variable)
            fixes.append(Fix(text=switch["text"], command=command))
    return fixes


def _fault() -> str:
    from cudnn_doctor.knowledge.load import knowledge

    return str(knowledge("engines")["fault"]["text"])


def _clone_fix(rows: list[_At], operation: str, engine: int) -> list[Fix]:
    """The cure of MXNet PR 21104, unless a clone was tried here and did not cure it."""
    from cudnn_doctor.knowledge.load import knowledge

    if any(at.row.clones_wrong for at in rows):
        return []
    right, times = sum(at.row.clones_right for at in rows), [at.row.clone_ms for at in rows if at.row.clone_ms]
    anew = [at.part.anew_ms for at in rows if at.part.anew_ms]
    text = str(knowledge("engines")["clone"]["text"])
    if right:
        text += f" Tried here: {right} such clones ran in the right stream."
    if times and anew:
        text += f" A clone took {min(times):.1f} ms, building anew without measuring {min(anew):.1f} ms."
    return [Fix(text=text, verify=_verify(operation, engine))]


# ---------------------------------------------------------------- the rules


def _example(row: EngineRow | None = None, *, finished: bool = True, **changes: Any) -> EnginesCase:
    part = ProblemReport(
        operation="conv-forward",
        data_type="fp16",
        layout="nhwc",
        shape="3x3",
        engines=72,
        rows=(row or EngineRow(engine=1, verdict="ok", plans=3, ok=3),),
        anew_ms=12.0,
        error="" if finished else "the time was up",
        finished=finished,
    )
    fields: dict[str, Any] = {
        "tool": Tool(),
        "taken_at": "2026-11-30T12:00:00Z",
        "cudnn": "/opt/cudnn/lib/libcudnn.so.9",
        "cudnn_version": "9.19.0",
        "verdict": "ok",
        "exit_code": 0,
        "reason": "",
        "capture_control": Control(planted=3, seen=3),
        "held_control": Control(planted=3, seen=3),
        "totals": Totals(problems=1, plans=3, engines=1, ok=3, threads_tested=3, destroyed_tested=3),
        "problems": (part,),
    }
    return EnginesCase(EnginesReport(**{**fields, **changes}))


@rule(
    "CD650",
    title="Execution plans honour the stream of the handle that is given",
    severity="error",
    owner="program",
    causes=("plan-handle-stream",),
    explain="""Every plan was built with one handle and executed with another one that has a stream of its own. In a
relaxed capture of both streams the graph nodes must be in the given handle's stream; with that stream held, output
and workspace must stay untouched until it is released. An engine that fails both keeps the handle of the plan's
construction: programs that cache plans and share them between handles compute wrong results with it, without any
error. The harness must see the same fault where it puts it itself (it executes with the wrong handle); where it does
not, nothing is known.""",
    source=MXNET,
    examples=lambda: (
        (
            "problem",
            _example(
                EngineRow(engine=5, verdict="wrong-stream", plans=3, wrong_stream=3, clones_right=1, clone_ms=2.0)
            ),
        ),
        ("ok", _example()),
        ("unknown", _example(held_control=Control(planted=3, seen=0))),
        ("unknown", _example(problems=(), totals=Totals())),
        ("unknown", _example(finished=False)),
    ),
)
def plan_stream(case: Case) -> Iterator[Outcome]:
    """CD650."""
    if not isinstance(case, EnginesCase):
        return
    report = case.engines
    subject = f"cuDNN {report.cudnn_version}".strip()
    wrong = _by_engine(case, "wrong_stream")
    for operation, engine, rows in wrong:
        yield problem(
            _subject(operation, engine),
            "Ignores the stream of the handle that is given",
            detail=_fault(),
            evidence=_evidence(rows, "wrong_stream", ("wrong-stream",)),
            fixes=[*switches(operation, engine), *_clone_fix(rows, operation, engine)],
        )
    if wrong:
        return
    totals = report.totals
    for name, control in (("capture", report.capture_control), ("held-stream", report.held_control)):
        if control.seen < control.planted:
            detail = f"the {name} control put the fault there {control.planted} times and saw it {control.seen} times"
            yield unknown(subject, "The examination cannot see the fault that it looks for", detail=detail)
            return
    cut = [p for p in report.problems if not p.finished]
    if cut:
        detail = f"{len(cut)} of {len(report.problems)} problems were not examined to the end ({cut[0].error}); "
        detail += f"so far {totals.ok} plans, all in the stream of the given handle" if totals.ok else "no plan so far"
        yield unknown(subject, "The examination was not finished", detail=detail)
        return
    if not totals.ok:
        reasons = [f"{p.operation} {p.data_type} {p.layout} {p.shape}: {p.error}" for p in report.problems if p.error]
        detail = reasons[0] if reasons else "no engine gave a plan that could be tested"
        yield unknown(subject, "No execution plan was examined", detail=detail)
        return
    seen = f"{totals.ok} of {totals.plans} plans of {totals.engines} engines in the given stream"
    alarms = f"controls: {report.capture_control.seen} and {report.held_control.seen} planted faults, all seen"
    yield passed(
        subject,
        "Every execution plan that could be judged stays in the stream of the handle that is given",
        evidence=[
            Evidence(pointer=f"{case.at}/totals/ok", value=seen, source=SOURCE),
            Evidence(pointer=f"{case.at}/capture_control", value=alarms, source=SOURCE),
        ],
        detail=f"{totals.unknown} plans could not be judged" if totals.unknown else "",
    )


@rule(
    "CD651",
    title="No test alone says that a plan leaves the given stream",
    severity="warning",
    owner="program",
    causes=("plan-handle-stream",),
    explain="""One of the two tests says that the plan leaves the stream of the given handle, and the other does not
or could not be made. That is worth a closer look, not a verdict.""",
    source=MXNET,
    examples=lambda: (
        ("problem", _example(EngineRow(engine=5, verdict="suspect", plans=3, suspect=1, ok=2))),
        ("ok", _example()),
    ),
)
def one_test_alarms(case: Case) -> Iterator[Outcome]:
    """CD651."""
    if not isinstance(case, EnginesCase):
        return
    found = _by_engine(case, "suspect")
    if not found:
        yield _none_of(case, "plans", "The two tests agree on every plan", "were alarmed by one test alone")
    for operation, engine, rows in found:
        yield problem(
            _subject(operation, engine),
            "One test says that it leaves the given stream",
            evidence=_evidence(rows, "suspect", ("suspect",)),
            fixes=[
                Fix(text="Look at this engine alone.", command=_verify(operation, engine)),
                *switches(operation, engine),
            ],
        )


@rule(
    "CD652",
    title="No engine ends the process",
    severity="warning",
    owner="environment",
    causes=("library-bug",),
    explain="""A child process ended while it built or ran a plan of this engine: a signal, a lost context or no
answer. A program that tries engines for the fastest one would end in the same way.""",
    source="https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html",
    examples=lambda: (
        ("problem", _example(EngineRow(engine=7, verdict="crashed", plans=1, crashed=1))),
        ("ok", _example()),
    ),
)
def engine_kills(case: Case) -> Iterator[Outcome]:
    """CD652."""
    if not isinstance(case, EnginesCase):
        return
    found = _by_engine(case, "crashed")
    if not found:
        yield _none_of(case, "plans", "No engine ended the process", "ended the process")
    for operation, engine, rows in found:
        yield problem(
            _subject(operation, engine),
            "Ended the process that tried it",
            evidence=_evidence(rows, "crashed", ("crashed",)),
            fixes=[
                *switches(operation, engine),
                Fix(text="Try another cuDNN of the same major.", verify=_verify(operation, engine)),
            ],
        )


@rule(
    "CD653",
    title="A plan gives the same output when two threads share it",
    severity="note",
    owner="program",
    causes=("handle-shared-by-threads",),
    explain="""Two threads, each with its own handle, stream and memory, executed one plan at the same time; an output
was not bit for bit that of a serial run, or the execution failed, while two clones of the plan, one for each thread,
gave the right output. The cuDNN team says that plans must not be shared between threads: seen with cuDNN 8.9.7 on every
third plan (wrong outputs, EXECUTION_FAILED, illegal addresses, no end), not with 9.1 and 9.19. A limit of the library,
not a fault of the machine: PyTorch and others keep a cache of plans for each thread.""",
    source=THREADS,
    examples=lambda: (
        ("problem", _example(EngineRow(engine=9, verdict="ok", plans=3, ok=3, threads_tested=3, threads_differ=1))),
        ("ok", _example()),
    ),
)
def shared_plan(case: Case) -> Iterator[Outcome]:
    """CD653."""
    if not isinstance(case, EnginesCase):
        return
    found = _by_engine(case, "threads_differ")
    if not found:
        yield _none_of(
            case, "threads_tested", "Plans shared by two threads gave the same output", "gave another output"
        )
        return
    totals = case.engines.totals
    own = f"; with a plan for each thread {totals.own_differ} of {totals.own_tested}" if totals.own_tested else ""
    yield problem(
        f"cuDNN {case.engines.cudnn_version}".strip(),
        "Execution plans must not be shared between threads with this cuDNN",
        detail=f"{totals.threads_differ} of {totals.threads_tested} plans of {len(found)} engines failed or gave "
        f"another output when two threads executed them at the same time{own}.",
        evidence=[e for _, _, rows in found[:5] for e in _evidence(rows[:1], "threads_differ")],
        fixes=[
            Fix(
                text="Give each thread a plan of its own; a clone of the same engine and knobs will do.",
                verify="cudnn-doctor engines",
            )
        ],
    )


@rule(
    "CD654",
    title="A plan works after the handle that built it was destroyed",
    severity="note",
    owner="program",
    causes=("stream-or-handle-destroyed",),
    explain="""The handle that built the plan was destroyed, a new handle was made, and the plan was executed with a
third one: it failed, left the stream or gave another output. Plans of this engine must not outlive their handle.""",
    source=MXNET,
    examples=lambda: (
        ("problem", _example(EngineRow(engine=9, verdict="ok", plans=3, ok=3, destroyed_tested=3, destroyed_bad=3))),
        ("ok", _example()),
    ),
)
def handle_outlived(case: Case) -> Iterator[Outcome]:
    """CD654."""
    if not isinstance(case, EnginesCase):
        return
    found = _by_engine(case, "destroyed_bad")
    if not found:
        yield _none_of(case, "destroyed_tested", "Plans work after the handle that built them was destroyed", "failed")
    for operation, engine, rows in found:
        yield problem(
            _subject(operation, engine),
            "Its plans must not outlive the handle that built them",
            evidence=_evidence(rows, "destroyed_bad"),
            fixes=[
                Fix(text="Drop the plans of a handle when it is destroyed, or clone them for another handle first.")
            ],
        )
