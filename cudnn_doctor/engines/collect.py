"""From the steps of children to one `ProblemReport`. Pure, but for the mutable record that it fills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from cudnn_doctor.engines.keys import POISONED, engine_of, split_step
from cudnn_doctor.engines.problems import Problem
from cudnn_doctor.engines.verdicts import engine_row
from cudnn_doctor.live.parent import TaskOutcome
from cudnn_doctor.model.engines import PlanSeen, ProblemReport, Refusal
from cudnn_doctor.model.live import Step, Termination

TESTS = ("capture", "capture_control", "held", "held_control", "destroyed", "threads", "clone")
MOST_RESTARTS = 12
MOST_SHARING_DEATHS = 2
MEMORY = ("OUT_OF_MEMORY", "ALLOC_FAILED", "ALLOCATION_FAILED")
FAULTHANDLER, LAST_WORDS = "Fatal Python error", 200  # what Python says of a signal begins so; characters kept
UNSKIPPABLE = ("", "cudnnCreate", "cudnnSetStream")  # a child that dies here would die here again


class Record:
    """What is known of one problem, over all the children that worked on it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.engines = 0
        self.version = self.device = ""
        self.plans: dict[str, dict[str, Any]] = {}
        self.notes: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self.refused: dict[int, tuple[int, str, str]] = {}
        self.proposed: dict[str, dict[str, None]] = {}  # heuristic: keys of plans, in its order
        self.no_heuristic: dict[str, str] = {}
        self.ms: dict[str, float] = {}  # step: milliseconds, of the first time
        self.done: list[str] = []
        self.left_out: dict[str, int] = {}  # key of a plan that was not built: engine
        self.deadly: list[str] = []
        self.error = ""
        self.restarts = 0
        self.finished = False
        self.cut_short = False  # time or patience ended first
        self.alone = False  # tried again without other children beside it

    # -- reading

    def take(self, outcome: TaskOutcome, fate: Termination) -> None:
        """Adds what one child wrote about this problem and how it ended."""
        for step in outcome.steps:
            if step.status is None:
                self._note(step)
            else:
                self._call(step)
        if outcome.ended:
            self.finished = True
            if outcome.error:
                self.error = outcome.error
        elif outcome.begun:
            self._died(outcome, fate)

    def _note(self, step: Step) -> None:
        name, value, key = step.call, step.value, step.detail
        if name == "engines":
            self.engines = int(value)
        elif name == "version":
            self.version = str(value)
        elif name == "device":
            self.device = str(value)
        elif name == "notes":
            self.notes[int(value[0])] = (tuple(value[1]), tuple(value[2]))
        elif name == "proposed":
            self.proposed.setdefault(str(value), {})[key] = None
        elif name == "plan":
            engine, knobs, source, space = value
            plan = self._plan(key)
            plan.update(engine=engine, knobs=knobs, source=plan.get("source") or source, workspace=space)
        elif name == "done":
            self.done.append(key)
        elif name == "left out":
            self.left_out[key] = int(value)
        elif name in TESTS or name in ("failure", "reproducible", "silent"):
            self._plan(key)[name] = value

    def _call(self, step: Step) -> None:
        key, name = split_step(step.call)
        self.ms.setdefault(step.call, step.ms or 0.0)
        if not step.status:
            if key and name == "build":
                self._plan(key)["build_ms"] = step.ms or 0.0
            if key and name == "run":
                self._plan(key)["run_ms"] = step.ms or 0.0
            return
        reason = f"{step.status} {step.name}{': ' + step.detail if step.detail else ''}"
        if key and name in ("engine", "build"):
            self.refused.setdefault(engine_of(key), (step.status or 0, step.name, step.detail))
        elif key and name in ("clone", "destroyed"):
            self._plan(key).setdefault(name, {"error": reason})
        elif key and name == "threads":
            pass  # no clone to share, as the clone's own line says
        elif key:
            self._plan(key).setdefault("failure", f"{name}: {reason}")
        elif name.startswith("heuristics"):
            self.no_heuristic.setdefault(name, reason)
        elif not name.startswith("choice"):
            self.error = f"{step.call}: {reason}"

    def _plan(self, key: str) -> dict[str, Any]:
        return self.plans.setdefault(key, {"key": key, "engine": engine_of(key)})

    def cut(self, why: str) -> None:
        """Time or patience ended before the problem was done."""
        self.finished = self.cut_short = True
        self.error = self.error or why

    def settled(self, test: str) -> list[str]:
        """Keys of plans that have been put to a test, or have died of it."""
        return [key for key, plan in self.plans.items() if test in plan]

    def unshared(self) -> list[int]:
        """Engines whose plan has ended a child in test 4."""
        return [engine_of(key) for key, name in map(split_step, self.deadly) if name == "threads"]

    def may_share(self) -> bool:
        """Whether test 4 goes on: it has not ended too many children of this problem."""
        return len(self.unshared()) < MOST_SHARING_DEATHS

    def _died(self, outcome: TaskOutcome, fate: Termination) -> None:
        how = how_it_died(outcome, fate)
        step = fate.last_step
        key, name = split_step(step)
        if fate.kind == "timeout":
            self.cut("the time was up")
            return
        if key and name in ("destroyed", "threads"):  # what programs should not do anyway: no fault of the engine
            self._plan(key)[name] = {"error": how}
        elif key:
            self._plan(key).setdefault("died", f"{how} in step {name}")
        if step in UNSKIPPABLE or step in self.deadly or self.restarts >= MOST_RESTARTS:
            self.error, self.finished = f"{step or 'outside of any call'}: {how}", True
            return
        if not key:
            self.error = f"{step}: {how}"
        self.deadly.append(step)
        self.restarts += 1

    def again_alone(self) -> bool:
        """Whether to try once more with no other child on the GPU: it failed for want of memory, or in cudnnCreate,
        which gives INTERNAL_ERROR for that."""
        short = self.error.startswith("cudnnCreate") or any(word in self.error for word in MEMORY)
        if not (self.finished and short) or self.alone:
            return False
        self.alone, self.finished, self.error = True, False, ""
        return True

    # -- telling

    def seen(self) -> list[PlanSeen]:
        """All plans, as far as they were seen. A refused build is no plan."""
        return [
            msgspec.convert(p, PlanSeen)
            for p in self.plans.values()
            if p.get("source") or p.get("died") or p.get("failure")
        ]

    def report(self) -> ProblemReport:
        """The problem's part of the report."""
        by_engine: dict[int, list[PlanSeen]] = {}
        for plan in self.seen():
            by_engine.setdefault(plan.engine, []).append(plan)
        none = ((), ())
        left_out = Counter(self.left_out.values())
        rows = tuple(
            engine_row(e, plans, *self.notes.get(e, none), left_out=left_out[e])
            for e, plans in sorted(by_engine.items())
        )
        best, everything = self._building_anew()
        p = self.problem
        return ProblemReport(
            operation=p.operation,
            data_type=p.data_type,
            layout=p.layout,
            shape=p.shape,
            engines=self.engines,
            rows=rows,
            refusals=tuple(self._refusals(by_engine)),
            heuristics=tuple((mode, len(keys)) for mode, keys in self.proposed.items()),
            heuristics_refused=tuple(self.no_heuristic.items()),
            anew_ms=best,
            autotune_ms=everything,
            error=self.error,
            finished=not self.cut_short,
            restarts=self.restarts,
        )

    def _refusals(self, by_engine: dict[int, list[PlanSeen]]) -> Iterable[Refusal]:
        groups: dict[tuple[int, str], list[int]] = {}
        for engine, (status, name, _) in self.refused.items():
            if engine not in by_engine:
                groups.setdefault((status, name), []).append(engine)
        for (status, name), engines in sorted(groups.items()):
            example = max((self.refused[e][2] for e in engines), key=len)  # most say nothing but the call's name
            yield Refusal(status=status, name=name, engines=tuple(sorted(engines)), example=example)

    def _building_anew(self) -> tuple[float | None, float | None]:
        """What a framework without a cloned plan pays: graph, heuristics and the first plan; and with every proposed
        plan built and run once to choose the fastest."""
        keys = self.proposed.get("heuristics A", ())
        built = [self.plans[k] for k in keys if "run_ms" in self.plans.get(k, {})]
        if not built:
            return None, None
        start = self.ms.get("graph", 0.0) + self.ms.get("heuristics A", 0.0)
        tried = sum(p["build_ms"] + p["run_ms"] for p in built)
        return round(start + built[0]["build_ms"], 3), round(start + tried, 3)


def how_it_died(outcome: TaskOutcome, fate: Termination) -> str:
    """The end of a child in words."""
    poisoned = [s for s in outcome.steps if s.call == "poisoned"]
    said = [line.strip() for line in fate.stderr.split(FAULTHANDLER)[0].splitlines() if line.strip()]
    last_words = f" ({said[-1][:LAST_WORDS]})" if said else ""
    if fate.kind == "exit" and fate.exit_code == POISONED and poisoned:
        return f"{poisoned[-1].value}, the context was lost"
    if fate.kind == "signal":
        return f"killed by {fate.signal}{last_words}"
    if fate.kind == "exit" and "Timeout (" in fate.stderr:
        return "no answer, ended by its own clock"
    if fate.kind == "exit":
        return f"exit {fate.exit_code}{last_words}"
    return f"{fate.kind} {fate.error}".strip()
