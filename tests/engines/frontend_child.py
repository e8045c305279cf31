"""The child's side of the cross-check with nvidia-cudnn-frontend: both sides' words on one problem."""

from __future__ import annotations

import hashlib
import os
import re
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from cudnn_doctor.engines.child_task import COMPILES, MOST_CONFIGURATIONS, MOST_WORKSPACE, Session, Work
from cudnn_doctor.engines.detectors import PlanTests, Side
from cudnn_doctor.engines.graphs import Graph, Tensor
from cudnn_doctor.engines.keys import engine_of, plan_key
from cudnn_doctor.engines.memory import APART, Memories, Memory
from cudnn_doctor.engines.plans import build_plan, config_notes, read_choice, workspace_size
from cudnn_doctor.engines.problems import Problem
from cudnn_doctor.live.wire import StopTask, Wire
from cudnn_doctor.native.backend_enums import HeurMode
from cudnn_doctor.native.cudnn_backend import BackendDescriptor, BackendError, heuristics
from tests.engines.frontend import LOG, Built, Proposal, Said, key_of
from tests.engines.frontend_graph import Expression, Frontend

MODES = (HeurMode.A, HeurMode.FALLBACK)
LOGGED = re.compile(
    r"EXECUTION_PLAN_DESCRIPTOR : .*?(eng\d+(?:_k\d+=-?\d+)*), numeric_notes:\[(.*?)\] behavior_notes:\[(.*?)\]"
)


class Theirs:
    """A plan of a frontend's graph, for the bench."""

    def __init__(self, graph: Any, index: int, tensors: Sequence[Tensor]) -> None:
        self.graph, self.index, self.tensors = graph, index, tensors

    def execute(self, handle: int, memory: Memory, inputs: dict[int, int]) -> None:
        """The plan at `index`, with a handle that is not its graph's."""
        pointers, offset = dict(inputs), 0
        for tensor in self.tensors:
            if tensor.role == "output":  # laid out as in `Memory`
                pointers[tensor.uid], offset = memory.output + offset, offset + -(-tensor.bytes // APART) * APART
        self.graph.execute_plan_at_index(pointers, memory.workspace, self.index, handle=handle)


class TheirBench(PlanTests):
    """Our detectors over the frontend's way to execute."""

    inputs: dict[int, int]

    def execute(self, side: Side, plan: Any, memory: Memory) -> None:
        try:
            plan.execute(side.handle, memory, self.inputs)
        except Exception as e:
            raise BackendError("execute_plan_at_index", -1, type(e).__name__, str(e)) from e


# ---------------------------------------------------------------- bodies


def compare(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """Proposals of both sides, then a plan of each engine, built, captured and run by both."""
    _told(wire, partial(_compare, wire, msgspec.convert(args, Work), shared))


def notes(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """The same plans of the frontend once more, for what its log says of them."""
    _told(wire, partial(_notes, wire, msgspec.convert(args, Work), shared))


def _told(wire: Wire, work: Callable[[], None]) -> None:
    try:
        work()
    except StopTask:
        raise
    except Exception:
        wire.note("traceback", traceback.format_exc())


def _started(wire: Wire, work: Work, shared: dict[str, Any]) -> tuple[Session, Frontend]:
    if "frontend" not in shared:
        shared["session"] = Session(wire, work)
        shared["frontend"] = Frontend(wire, shared["session"])
        shared["compiled"] = set()
    return shared["session"], shared["frontend"]


def _step(wire: Wire, name: str, work: Callable[[], Any]) -> Any:
    """Names a step, for the case that it ends the process."""
    return wire.call(name, lambda: (0, work())).value


def _compare(wire: Wire, work: Work, shared: dict[str, Any]) -> None:
    session, frontend = _started(wire, work, shared)
    builder = Side(session.handle(wire, session.streams[0]), session.streams[0])
    with ExitStack() as stack:
        graph = stack.enter_context(Graph(session.backend, builder.handle, work.problem))
        memories = Memories(session.gpu, graph)
        stack.callback(memories.close)
        configs, ours = _our_proposals(wire, stack, graph)
        wire.note("said", msgspec.to_builtins(ours), "ours")
        plans, theirs = _their_proposals(wire, frontend, work.problem, graph.tensors)
        wire.note("said", msgspec.to_builtins(theirs), "theirs")
        bench = PlanTests(session.gpu, session.backend, builder, session.given, session.third)
        their_bench = TheirBench(session.gpu, session.backend, frontend.builder, frontend.given, session.third)
        their_bench.inputs = memories.inputs
        for key in _picked(work.problem, ours, shared["compiled"]):
            built = _step(wire, f"{key}: ours", partial(_our_plan, bench, builder, memories, configs[key], key))
            wire.note("built", msgspec.to_builtins(built), "ours")
        for name in _picked(work.problem, theirs, shared["compiled"], key_of):
            built = _step(wire, f"{name}: theirs", partial(_their_plan, their_bench, memories, plans[name], name))
            wire.note("built", msgspec.to_builtins(built), "theirs")
        shared["compiled"] |= _compiling(work.problem, ours)
    session.cudnn.cudnnDestroy(builder.handle)


def _notes(wire: Wire, work: Work, shared: dict[str, Any]) -> None:
    session, frontend = _started(wire, work, shared)
    with Graph(session.backend, session.given.handle, work.problem) as graph:
        plans, theirs = _their_proposals(wire, frontend, work.problem, graph.tensors)
        for name in _picked(work.problem, theirs, shared["compiled"], key_of):
            log, (graph_, index) = Path(os.environ[LOG]), plans[name]
            before = log.stat().st_size
            with suppress(Exception):  # the other child says why
                _step(wire, f"{name}: log", partial(graph_.build_plan_at_index, index))
            with log.open("rb") as file:
                file.seek(before)
                logged = LOGGED.findall(file.read().decode())
            for found, numerical, behaviour in logged:
                built = Built(name=found, numerical=_noted(numerical), behaviour=_noted(behaviour))
                wire.note("logged", msgspec.to_builtins(built))
        shared["compiled"] |= _compiling(work.problem, theirs, key_of)


def _noted(listed: str) -> tuple[str, ...]:
    """ "CUDNN_NUMERICAL_NOTE_FFT,": names without the prefix."""
    return tuple(re.sub(r"^CUDNN_(NUMERICAL|BEHAVIOR)_NOTE_", "", name) for name in listed.split(",") if name)


# -- proposals


def _our_proposals(wire: Wire, stack: ExitStack, graph: Graph) -> tuple[dict[str, BackendDescriptor], Said]:
    configs: dict[str, BackendDescriptor] = {}
    proposed: dict[str, tuple[Proposal, ...]] = {}
    refused: dict[str, str] = {}
    for mode in MODES:
        query = partial(heuristics, graph.backend, graph.descriptor, mode, MOST_CONFIGURATIONS)
        try:
            found = _step(wire, f"{mode.name}: ours", query)
        except BackendError as e:
            found, refused[mode.name] = [], str(e)
        listed = []
        for config in found:
            stack.callback(config.close)
            key = plan_key(*read_choice(config))
            configs.setdefault(key, config)
            listed.append(Proposal(name=key, behaviour=tuple(config_notes(config)[0])))
        proposed[mode.name] = tuple(listed)
    return configs, Said(engines=graph.engine_count(), proposed=proposed, refused=refused)


def _their_proposals(
    wire: Wire, frontend: Frontend, problem: Problem, tensors: Sequence[Tensor]
) -> tuple[dict[str, tuple[Any, int]], Said]:
    plans: dict[str, tuple[Any, int]] = {}
    proposed: dict[str, tuple[Proposal, ...]] = {}
    refused: dict[str, str] = {}
    engines = 0
    for mode in MODES:
        graph = Expression(frontend, problem, tensors).graph
        engines = graph.get_engine_count()
        query = partial(graph.create_execution_plans, [getattr(frontend.cudnn.heur_mode, mode.name)])
        try:
            _step(wire, f"{mode.name}: theirs", query)
        except Exception as e:
            refused[mode.name] = f"{type(e).__name__}: {e}"
        n = 0 if mode.name in refused else graph.get_execution_plan_count()
        listed = []
        for index in range(n):
            name = graph.get_plan_name_at_index(index)
            behaviour = graph.get_behavior_notes_for_plan_at_index(index)
            plans.setdefault(name, (graph, index))
            listed.append(Proposal(name=name, behaviour=tuple(note.name for note in behaviour)))
        proposed[mode.name] = tuple(listed)
    return plans, Said(engines=engines, proposed=proposed, refused=refused)


def _picked(problem: Problem, said: Said, compiled: set[str], key: Callable[[str], str] = str) -> list[str]:
    """Names of the plans that are built: the first proposed one of each engine; of an engine that compiles (0.3 to 2 s
    each) on the first problem of this child alone."""
    first: dict[int, str] = {}
    for listed in said.proposed.values():
        for proposal in listed:
            if _compiled(problem, engine_of(key(proposal.name))) not in compiled:
                first.setdefault(engine_of(key(proposal.name)), proposal.name)
    return list(first.values())


def _compiling(problem: Problem, said: Said, key: Callable[[str], str] = str) -> set[str]:
    every = (p for listed in said.proposed.values() for p in listed)
    return {_compiled(problem, engine_of(key(p.name))) for p in every if COMPILES in p.behaviour}


def _compiled(problem: Problem, engine: int) -> str:
    graph = problem.shape if problem.operation == "attention" else ""  # its shapes are other graphs
    return f"{graph} {engine}"


# -- plans


def _our_plan(bench: PlanTests, builder: Side, memories: Memories, config: BackendDescriptor, key: str) -> Built:
    behaviour, numerical = config_notes(config)
    try:
        plan = build_plan(bench.backend, builder.handle, config)
    except BackendError as e:
        return Built(name=key, failure=str(e))
    with plan:
        built = Built(name=key, behaviour=tuple(behaviour), numerical=tuple(numerical), workspace=workspace_size(plan))
        return _tried(bench, memories, plan, built)


def _their_plan(bench: PlanTests, memories: Memories, at: tuple[Any, int], name: str) -> Built:
    graph, index = at
    try:
        graph.build_plan_at_index(index)
    except Exception as e:
        return Built(name=name, failure=f"{type(e).__name__}: {e}")
    plan = Theirs(graph, index, memories.graph.tensors)
    built = Built(name=name, workspace=graph.get_workspace_size_plan_at_index(index))
    return _tried(bench, memories, plan, built)


def _tried(bench: PlanTests, memories: Memories, plan: Any, built: Built) -> Built:
    space = built.workspace or 0
    if space > MOST_WORKSPACE:
        return msgspec.structs.replace(built, failure=f"wants {space >> 20} MiB of workspace")
    memory = memories.first(space)
    try:
        given = bench.capture(bench.given, plan, memory)
        control = bench.capture(bench.builder, plan, memory)
        runs = {bench.run(bench.given, plan, memory) for _ in range(2)}
    except BackendError as e:
        return msgspec.structs.replace(built, failure=str(e))
    output = hashlib.sha256(runs.pop()).hexdigest()[:16] if len(runs) == 1 else ""
    return msgspec.structs.replace(built, given=given, control=control, output=output)
