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
from typing import Any

import msgspec

from cudnn_doctor.engines.detectors import BURST, Bench, Memory, Side, untouched
from cudnn_doctor.engines.gpu import STICKY, CudaError, Gpu
from cudnn_doctor.engines.graphs import Graph, Tensor
from cudnn_doctor.engines.keys import POISONED, engine_of, plan_key, step_name
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
from cudnn_doctor.engines.types import CaptureSeen, CloneSeen, DestroyedSeen
from cudnn_doctor.engines.verdicts import capture_alarm
from cudnn_doctor.live.wire import Answer, StopTask, Wire
from cudnn_doctor.model import Base
from cudnn_doctor.native.backend_enums import HeurMode
from cudnn_doctor.native.cudnn import SUCCESS, Cudnn, dotted
from cudnn_doctor.native.cudnn_backend import Backend, BackendDescriptor, BackendError, close_all, heuristics

MOST_WORKSPACE = 1 << 29  # bytes; plans that want more are left out: each of three runs needs its own
MOST_CONFIGURATIONS = 256  # of one heuristic


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
    deadly: tuple[str, ...] = ()  # steps that have ended a child


class Session:
    """What the problems of one child share: library, device, streams, the handles B and C."""

    def __init__(self, wire: Wire, work: Work) -> None:
        for path in work.preload:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
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


def examine(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """The body: one problem."""
    work = msgspec.convert(args, Work)
    if "session" not in shared:
        shared["session"] = Session(wire, work)
    _Problem(wire, work, shared["session"]).run()


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
        self._memories: dict[int, Memory] = {}
        self._borrowers: dict[int, list[Memory]] = {}
        self._seen: set[str] = set()  # keys that were proposed
        self._noted: set[int] = set()  # engines whose notes were read
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
            self.bench = Bench(self.gpu, self.backend, self.builder, self.session.given, self.session.third)
            graph = partial(Graph, self.backend, self.builder.handle, self.work.problem)
            self.graph: Graph = self._stack.enter_context(self._step("", "graph", graph, must=True).value)
            self.inputs = {t.uid: self._input(t) for t in self.graph.tensors if t.role != "output"}
            self._stack.callback(self._drop_memories)
            for source, config in self._configurations():
                with config:
                    if self.work.max_plans is None or len(self._plans) + self._settled < self.work.max_plans:
                        self._plan(source, config)
            if not self.work.quick:
                self._destroyed()
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
        if key in self.work.done and (self.work.quick or key in self.work.destroyed_done):
            self._settled += 1
            return
        if engine not in self._noted:
            self._noted.add(engine)
            self.wire.note("notes", [engine, *config_notes(config)])
        built = self._step(key, "build", partial(build_plan, self.backend, self.builder.handle, config))
        if built.value is None:
            return
        plan = _Plan(key, engine, built.value)
        self._plans.append(plan)
        plan.space = self._step(key, "workspace", partial(workspace_size, plan.plan)).value or 0
        self.wire.note("plan", [engine, knobs, source, plan.space], key)
        if key in self.work.done:
            plan.runs = True
            return
        if plan.space > MOST_WORKSPACE:
            self.wire.note("failure", f"wants {plan.space >> 20} MiB of workspace", key)
            return
        first = engine not in self._tested
        if self._reference(plan, self._memory(0, plan.space)):
            plan.runs = True
            self._tested.add(engine)
            self._tests(plan, first=first)

    def _tests(self, plan: _Plan, *, first: bool) -> None:
        """Tests 1, 2 and 4 and the clone. The quick form leaves out 4 and the clone, and makes test 2 on the first plan
        of each engine and where test 1 alarms or cannot be made."""
        bench, memory, reference = self.bench, self._memory(0, plan.space), plan.reference
        captured = self._test(plan, "capture", partial(bench.capture, bench.given, plan.plan, memory))
        self._test(plan, "capture_control", partial(bench.capture, self.builder, plan.plan, memory))
        if first or not self.work.quick or captured is None or captured.error or capture_alarm(captured):
            self._test(plan, "held", partial(bench.held, bench.given, plan.plan, memory, reference))
            self._test(plan, "held_control", partial(bench.held, self.builder, plan.plan, memory, reference))
        if not self.work.quick and reference is not None:
            self._test(plan, "threads", partial(bench.threads, plan.plan, self._bursts(plan.space), reference))
        if first and not self.work.quick:
            self._test(plan, "clone", partial(self._clone, plan, memory))
        self.wire.note("done", True, plan.key)

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

    def _clone(self, plan: _Plan, memory: Memory) -> CloneSeen:
        start = time.perf_counter()
        with ExitStack() as stack:
            given = self.bench.given
            graph = stack.enter_context(Graph(self.backend, given.handle, self.work.problem))
            clone = stack.enter_context(clone_plan(plan.plan, graph, given.handle))
            ms = (time.perf_counter() - start) * 1000
            same = plan_choice(clone) == plan_choice(plan.plan) and plan_handle(clone) == given.handle
            capture = self.bench.capture(given, clone, memory)
            equal = None if plan.reference is None else self.bench.run(given, clone, memory) == plan.reference
        return CloneSeen(ms=round(ms, 3), capture=capture, equal=equal, same_choice=same)

    def _destroyed(self) -> None:
        """Test 3 for all plans: their handle goes, a new one comes, perhaps at the same address."""
        self._step("", "cudnnDestroy", self._drop_builder)
        stranger = self.session.handle(self.wire, self.session.third.stream)
        for plan in self._plans:
            if plan.runs and plan.key not in self.work.destroyed_done:
                memory = self._memory(0, plan.space)
                self._test(plan, "destroyed", partial(self._after_destruction, plan, memory))
        self.session.cudnn.cudnnDestroy(stranger)

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
        return DestroyedSeen(capture=capture, equal=None if plan.reference is None else output == plan.reference)

    # -- memory

    def _input(self, tensor: Tensor) -> int:
        if tensor.role == "value":
            return ctypes.addressof(self.graph.scale)
        pointer = self.gpu.allocate(tensor.bytes)
        self._stack.callback(self.gpu.free, pointer)
        self.gpu.write(pointer, pattern(tensor))
        return pointer

    def _memory(self, number: int, space: int) -> Memory:
        """The memory of this number, replaced by a larger one where a plan needs more workspace."""
        memory = self._memories.get(number)
        if memory is None or memory.space < space:
            if memory is not None:
                memory.close()
            memory = Memory(self.gpu, self.backend, self.graph.tensors, self.inputs, space)
            self._memories[number] = memory
        return memory

    def _bursts(self, space: int) -> list[list[Memory]]:
        """For each of the two threads of test 4: outputs of its own for a burst, and one workspace."""
        for thread in (1, 2):
            lender = self._memory(thread, space)
            kept = self._borrowers.get(thread, [])
            if not kept or kept[0].lender is not lender:
                for memory in kept:
                    memory.close()
                self._borrowers[thread] = [
                    Memory(self.gpu, self.backend, self.graph.tensors, self.inputs, lender.space, lender)
                    for _ in range(BURST - 1)
                ]
        return [[self._memories[thread], *self._borrowers[thread]] for thread in (1, 2)]

    def _drop_memories(self) -> None:
        for borrowers in self._borrowers.values():
            for memory in borrowers:
                memory.close()
        for memory in self._memories.values():
            memory.close()

    # -- steps

    def _test(self, plan: _Plan, name: str, test: Callable[[], Any]) -> Any:
        seen = self._step(plan.key, name, test).value
        if seen is not None:
            self.wire.note(name, msgspec.to_builtins(seen), plan.key)
        return seen

    def _step(self, key: str, name: str, work: Callable[[], Any], *, must: bool = False) -> Answer:
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
                    self.wire.note("poisoned", e.name, step)
                    os._exit(POISONED)
                return e.status, None

        faulthandler.dump_traceback_later(self.work.stall, exit=True)
        answer = self.wire.call(step, made, decode=lambda _: reason[0])
        faulthandler.cancel_dump_traceback_later()
        if must and answer.status != SUCCESS:
            raise StopTask
        return answer


def pattern(tensor: Tensor) -> bytes:
    """Small whole numbers, -1, 0 and 1 in an order without a short period, in the tensor's data type."""
    one = {"fp16": (b"\x00\x3c", b"\x00\xbc"), "bf16": (b"\x80\x3f", b"\x80\xbf"), "int8": (b"\x01", b"\xff")}
    plus, minus = one.get(tensor.data_type, (b"\x00\x00\x80\x3f", b"\x00\x00\x80\xbf"))
    zero = bytes(len(plus))
    state, values = 12345 + tensor.uid, []
    for _ in range(4099):  # a prime, so that no row or channel repeats it in step
        state = (state * 1103515245 + 12345) % (1 << 31)
        values.append((zero, plus, minus, zero)[state >> 29])
    block = b"".join(values)
    return (block * (tensor.bytes // len(block) + 1))[: tensor.bytes]
