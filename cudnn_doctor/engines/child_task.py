"""What a child does for one problem: enumerate, build, test, and say every step before it is made.

Results travel as notes named after the fields of `types.PlanSeen`, with the plan's key as detail; a step that kills the
process is named by the last call. A child that follows a killed one is told what is done and what is deadly.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NoReturn

import msgspec

from cudnn_doctor.engines.detectors import PlanTests, Side
from cudnn_doctor.engines.gpu import STICKY, CudaError, Gpu
from cudnn_doctor.engines.graphs import Graph
from cudnn_doctor.engines.keys import POISONED, engine_of, plan_key, step_name
from cudnn_doctor.engines.memory import Memories, Memory, untouched
from cudnn_doctor.engines.plans import (
    build_plan,
    clone_plan,
    config_notes,
    configuration,
    engine_for,
    plan_choice,
    plan_handle,
    read_choice,
    workspace_size,
)
from cudnn_doctor.engines.problems import Problem
from cudnn_doctor.engines.verdicts import capture_alarm
from cudnn_doctor.live.wire import Answer, StopTask, Wire
from cudnn_doctor.model.base import Base
from cudnn_doctor.model.engines import CaptureSeen, CloneSeen, DestroyedSeen, HeldSeen, ThreadsSeen
from cudnn_doctor.native.backend_enums import HeurMode
from cudnn_doctor.native.cudnn import SUCCESS, Cudnn, dotted
from cudnn_doctor.native.cudnn_backend import Backend, BackendDescriptor, BackendError, close_all, heuristics

MOST_WORKSPACE = 1 << 29  # bytes; plans that want more are left out: each of three runs needs its own
MOST_CONFIGURATIONS = 256  # of one heuristic
COMPILES, MOST_COMPILED = "RUNTIME_COMPILATION", 2  # plans of an engine that compiles (0.3 to 2 s each) on a problem
MORE_RUNS = 20  # that must all agree before another output than the reference counts as wrong
THREADS_STALL = 5.0  # seconds; 24 small kernels have long ended by then


class Work(Base, frozen=True, kw_only=True):
    """One problem for a child, with what earlier children of it have settled."""

    problem: Problem
    cudnn: str
    preload: tuple[str, ...] = ()
    engines: tuple[int, ...] = ()
    max_plans: int | None = None
    quick: bool = False
    stall: float = 30.0
    done: tuple[str, ...] = ()  # keys of plans that need no more of tests 1, 2 and 4
    destroyed_done: tuple[str, ...] = ()  # keys of plans that need no more of test 3
    threads_done: tuple[str, ...] = ()  # keys of plans that need no more of test 4
    threads: bool = True  # whether to make test 4: it can end a child again and again
    unshared: tuple[int, ...] = ()  # engines to leave out of test 4
    deadly: tuple[str, ...] = ()  # steps that have ended a child


class Session:
    """What the problems of one child share: library, device, streams, the handles B and C."""

    def __init__(self, wire: Wire, work: Work) -> None:
        for path in work.preload:
            open_first(wire, path)
        self.gpu = Gpu(0)  # the one device that this child sees
        wire.note("device", self.gpu.name())
        self.cudnn = Cudnn(work.cudnn)
        self.backend = Backend(self.cudnn)
        wire.note("version", dotted(self.cudnn.cudnnGetVersion()))
        self.streams = [self.gpu.stream() for _ in range(3)]
        self.given = Side(self.handle(wire, self.streams[1]), self.streams[1])
        self.third = Side(self.handle(wire, self.streams[2]), self.streams[2])

    def handle(self, wire: Wire, stream: int) -> int:
        """A new handle with its stream set.

        Raises:
            StopTask: cuDNN refuses; the wire has its status.
        """
        made = wire.call("cudnnCreate", self.cudnn.create, must=True, decode=self.cudnn.decode)
        wire.call("cudnnSetStream", self.cudnn.cudnnSetStream, made.value, stream, must=True, decode=self.cudnn.decode)
        return int(made.value)


def open_first(wire: Wire, path: str) -> None:
    """Opens a library for cuDNN to find; cuDNN may do without it, or find another."""
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as e:
        wire.note("not loaded", path, str(e))


def examine(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """The body: one problem."""
    work = msgspec.convert(args, Work)
    try:
        if "session" not in shared:
            shared["session"] = Session(wire, work)
        _Problem(wire, work, shared["session"]).run()
    except CudaError as e:
        if e.status in STICKY:
            leave(wire, e, "")
        raise


def leave(wire: Wire, e: CudaError, step: str) -> NoReturn:
    """Ends this child: its context is lost, whatever it did next would fail."""
    wire.note("poisoned", e.name, step)
    os._exit(POISONED)


class _Plan:
    """A plan that lives until the problem is done."""

    def __init__(self, key: str, engine: int, plan: BackendDescriptor) -> None:
        self.key, self.engine, self.plan = key, engine, plan
        self.space = 0  # bytes of workspace
        self.runs = False
        self.reference: bytes | None = None  # None: two serial runs differ, or wrote nothing


class _Problem:
    """One problem in one child."""

    def __init__(self, wire: Wire, work: Work, session: Session) -> None:
        self.wire, self.work, self.session = wire, work, session
        self.gpu, self.backend = session.gpu, session.backend
        self._stack = ExitStack()
        self._plans: list[_Plan] = []
        self._seen: set[str] = set()  # keys that were proposed
        self._compiles: dict[int, bool] = {}  # engines whose notes were read
        self._compiled: dict[int, int] = {}  # engine that compiles: plans proposed
        self._tested = {engine_of(key) for key in work.done}  # engines of which a plan was tested
        self._settled = 0  # plans that an earlier child settled

    def run(self) -> None:
        """All plans of the problem through all tests.

        Raises:
            StopTask: no handle or no graph; the wire has the status.
        """
        streams = self.session.streams
        with self._stack:
            self.builder = Side(self.session.handle(self.wire, streams[0]), streams[0])
            self._stack.callback(self._drop_builder)
            self.bench = PlanTests(self.gpu, self.backend, self.builder, self.session.given, self.session.third)
            graph = partial(Graph, self.backend, self.builder.handle, self.work.problem)
            self.graph: Graph = self._stack.enter_context(self._step("", "graph", graph, must=True).value)
            self.memories = Memories(self.gpu, self.graph)
            self._stack.callback(self.memories.close)
            for source, config in self._configurations():
                with config:
                    if self.work.max_plans is None or len(self._plans) + self._settled < self.work.max_plans:
                        self._plan(source, config)
            if not self.work.quick:
                stranger = Side(self._destroyed(), streams[0])
                self._shared(stranger)
                self.session.cudnn.cudnnDestroy(stranger.handle)
            self._step("", "close plans", lambda: close_all([p.plan for p in self._plans]))

    # -- enumeration

    def _configurations(self) -> Iterator[tuple[str, BackendDescriptor]]:
        """Every engine with its default knobs, then what the heuristics propose."""
        if not self.work.quick:
            count = self._step("", "engine count", self.graph.engine_count, must=True).value
            self.wire.note("engines", count)
            for index in range(count):
                if not self.work.engines or index in self.work.engines:
                    made = self._step(f"e{index}", "engine", partial(self._default, index))
                    if made.value is not None:
                        yield "index", made.value
        for mode in (HeurMode.A, HeurMode.FALLBACK) if self.work.quick else HeurMode:
            proposed = self._step("", f"heuristics {mode.name}", partial(self._proposed, mode))
            for config in proposed.value or ():
                yield f"heuristics {mode.name}", config

    def _default(self, index: int) -> BackendDescriptor:
        with engine_for(self.backend, self.graph.descriptor, index) as engine:
            return configuration(self.backend, engine)

    def _proposed(self, mode: HeurMode) -> list[BackendDescriptor]:
        return heuristics(self.backend, self.graph.descriptor, mode, MOST_CONFIGURATIONS)

    # -- one plan

    def _plan(self, source: str, config: BackendDescriptor) -> None:
        choice = self._step("", f"choice of {source}", partial(read_choice, config))
        if choice.value is None:
            return
        engine, knobs = choice.value
        key = plan_key(engine, knobs)
        if source != "index":
            self.wire.note("proposed", source, key)
        if key in self._seen or (self.work.engines and engine not in self.work.engines):
            return
        self._seen.add(key)
        if self._is_settled(key):
            self._settled += 1
            return
        if engine not in self._compiles:
            behaviour, numerical = config_notes(config)
            self._compiles[engine] = COMPILES in behaviour
            self.wire.note("notes", [engine, behaviour, numerical])
        if self._compiles[engine] and not self.work.engines:
            self._compiled[engine] = self._compiled.get(engine, 0) + 1
            if self._compiled[engine] > MOST_COMPILED:
                self.wire.note("left out", engine, key)
                return
        built = self._step(key, "build", partial(build_plan, self.backend, self.builder.handle, config))
        if built.value is None:
            return
        plan = _Plan(key, engine, built.value)
        self._plans.append(plan)
        plan.space = self._step(key, "workspace", partial(workspace_size, plan.plan)).value or 0
        self.wire.note("plan", [engine, knobs, source, plan.space], key)
        if key in self.work.done:
            plan.runs = True
            if self._to_share(key):
                self._reference(plan, self.memories.first(plan.space))
            return
        if plan.space > MOST_WORKSPACE:
            self.wire.note("failure", f"wants {plan.space >> 20} MiB of workspace", key)
            return
        first = engine not in self._tested
        if self._reference(plan, self.memories.first(plan.space)):
            plan.runs = True
            self._tested.add(engine)
            self._tests(plan, first=first)

    def _tests(self, plan: _Plan, *, first: bool) -> None:
        """Tests 1 and 2 and the clone. The quick form leaves out the clone, and makes test 2 on the first plan of each
        engine and where test 1 alarms or cannot be made."""
        bench, memory = self.bench, self.memories.first(plan.space)
        captured = self._test(plan, "capture", partial(bench.capture, bench.given, plan.plan, memory))
        self._test(plan, "capture_control", partial(bench.capture, self.builder, plan.plan, memory))
        if first or not self.work.quick or captured is None or captured.error or capture_alarm(captured):
            self._test(plan, "held", partial(self._held, plan, memory))
            self._test(plan, "held_control", partial(bench.held, self.builder, plan.plan, memory, plan.reference))
        if first and not self.work.quick:
            self._test(plan, "clone", partial(self._clone, plan, memory))
        self.wire.note("done", True, plan.key)

    def _is_settled(self, key: str) -> bool:
        """Whether earlier children have made all tests of a plan."""
        return key in self.work.done and (
            self.work.quick or (key in self.work.destroyed_done and not self._to_share(key))
        )

    def _to_share(self, key: str) -> bool:
        """Whether test 4 of a plan is still to be made."""
        work = self.work
        return work.threads and key not in work.threads_done and engine_of(key) not in work.unshared

    def _reference(self, plan: _Plan, memory: Memory) -> bool:
        """Runs the plan twice in the ordinary way; its output is the reference where both agree."""
        run = partial(self.bench.run, self.builder, plan.plan, memory)
        first = self._step(plan.key, "run", run)
        second = Answer(-1, ()) if first.value is None else self._step(plan.key, "run again", run)
        if second.value is None:
            return False
        if untouched(first.value):
            self.wire.note("silent", True, plan.key)
        elif first.value == second.value:
            plan.reference = first.value
        else:
            self.wire.note("reproducible", False, plan.key)
        return True

    def _held(self, plan: _Plan, memory: Memory) -> HeldSeen:
        seen = self.bench.held(self.bench.given, plan.plan, memory, plan.reference)
        return msgspec.structs.replace(seen, equal=self._sure(plan, seen.equal, memory))

    def _sure(self, plan: _Plan, equal: bool | None, memory: Memory) -> bool | None:
        """`equal`, but None in place of False where a fresh plan of the same choice does not agree with itself: one
        whose sums are made in any order agrees twice now and then."""
        if equal is not False:
            return equal
        with ExitStack() as stack:
            given = self.bench.given
            fresh = self._cloned(stack, plan, given)
            if len({self.bench.run(given, fresh, memory) for _ in range(MORE_RUNS)}) == 1:
                return False
        self.wire.note("reproducible", False, plan.key)
        plan.reference = None
        return None

    def _clone(self, plan: _Plan, memory: Memory) -> CloneSeen:
        start = time.perf_counter()
        with ExitStack() as stack:
            given = self.bench.given
            clone = self._cloned(stack, plan, given)
            ms = (time.perf_counter() - start) * 1000
            same = plan_choice(clone) == plan_choice(plan.plan) and plan_handle(clone) == given.handle
            capture = self.bench.capture(given, clone, memory)
            equal = None if plan.reference is None else self.bench.run(given, clone, memory) == plan.reference
        return CloneSeen(ms=round(ms, 3), capture=capture, equal=self._sure(plan, equal, memory), same_choice=same)

    def _destroyed(self) -> int:
        """Test 3 for all plans: their handle goes, a new one comes, perhaps at the same address; the new one."""
        self._step("", "cudnnDestroy", self._drop_builder)
        stranger = self.session.handle(self.wire, self.session.third.stream)
        for plan in self._plans:
            if plan.runs and plan.key not in self.work.destroyed_done:
                memory = self.memories.first(plan.space)
                self._test(plan, "destroyed", partial(self._after_destruction, plan, memory))
        return stranger

    def _shared(self, builder: Side) -> None:
        """Test 4 for all plans, as clones of `builder`, whose handle lives; last of all, for on cuDNN 8 it can leave a
        plan, the context or the whole process in ruins."""
        for plan in self._plans:
            reference = plan.reference
            if self._to_share(plan.key) and reference is not None:
                work = partial(self._two_threads, plan, builder, reference)
                self._test(plan, "threads", work, stall=min(self.work.stall, THREADS_STALL))

    def _two_threads(self, plan: _Plan, builder: Side, reference: bytes) -> ThreadsSeen:
        bursts = self.memories.bursts(plan.space)
        with ExitStack() as stack:
            shared = self._cloned(stack, plan, builder)
            seen = self.bench.threads((shared, shared), bursts, reference)
            if not (seen.different or seen.error):
                return seen
            own = [self._cloned(stack, plan, side) for side in (self.bench.given, self.bench.third)]
            again = self.bench.threads((own[0], own[1]), bursts, reference)
        return msgspec.structs.replace(seen, own_different=again.different, own_error=again.error)

    def _cloned(self, stack: ExitStack, plan: _Plan, side: Side) -> BackendDescriptor:
        graph = stack.enter_context(Graph(self.backend, side.handle, self.work.problem))
        return stack.enter_context(clone_plan(plan.plan, graph, side.handle))

    def _drop_builder(self) -> None:
        if self.builder.handle:
            handle, self.builder.handle = self.builder.handle, 0
            self.session.cudnn.cudnnDestroy(handle)

    def _after_destruction(self, plan: _Plan, memory: Memory) -> DestroyedSeen:
        given = self.bench.given
        capture: CaptureSeen = self.bench.capture(given, plan.plan, memory)
        try:
            output = self.bench.run(given, plan.plan, memory)
        except BackendError as e:
            return DestroyedSeen(capture=capture, error=str(e))
        equal = None if plan.reference is None else output == plan.reference
        return DestroyedSeen(capture=capture, equal=self._sure(plan, equal, memory))

    # -- steps

    def _test(self, plan: _Plan, name: str, test: Callable[[], Any], *, stall: float | None = None) -> Any:
        seen = self._step(plan.key, name, test, stall=stall).value
        if seen is not None:
            self.wire.note(name, msgspec.to_builtins(seen), plan.key)
        return seen

    def _step(
        self, key: str, name: str, work: Callable[[], Any], *, must: bool = False, stall: float | None = None
    ) -> Answer:
        """One step: said before it is made, its status and reason after. Deadly ones are left out."""
        step = step_name(key, name)
        if step in self.work.deadly:
            return Answer(-1, ())
        reason: list[tuple[str, str]] = [("", "")]

        def made() -> tuple[int, Any]:
            try:
                return 0, work()
            except BackendError as e:
                reason[0] = e.name, f"{e.what}: {e.detail}" if e.detail else e.what
                return e.status, None
            except CudaError as e:
                reason[0] = e.name, e.call
                if e.status in STICKY:
                    leave(self.wire, e, step)
                return e.status, None

        faulthandler.dump_traceback_later(stall or self.work.stall, exit=True)
        answer = self.wire.call(step, made, decode=lambda _: reason[0])
        faulthandler.cancel_dump_traceback_later()
        if must and answer.status != SUCCESS:
            raise StopTask
        return answer
