"""The four tests of one plan, and their positive controls. Runs in a child.

A plan is built with handle A (stream A) and executed with handle B (stream B). A right engine queues all in stream B.
The control executes with handle A where B is expected, which is what an engine with the fault of MXNet PR 21104 does by
itself, and must be seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from cudnn_doctor.engines.gpu import STICKY, CudaError, Gate, Gpu
from cudnn_doctor.engines.memory import BURST, Memory
from cudnn_doctor.model.engines import CaptureSeen, HeldSeen, ThreadsSeen
from cudnn_doctor.native.cudnn_backend import Backend, BackendDescriptor, BackendError

HOLD_AT_MOST = 0.5  # seconds after which a held stream is released, in case the call waits for it
SETTLE = 0.001  # seconds for work that escaped to a stream nobody knows
ROUNDS = 3  # bursts of a thread in test 4


class Side:
    """A handle with its stream."""

    def __init__(self, handle: int, stream: int) -> None:
        self.handle, self.stream = handle, stream


class PlanTests:
    """What the tests work with: the GPU, the backend, the side that builds and the side that executes, a third."""

    def __init__(self, gpu: Gpu, backend: Backend, builder: Side, given: Side, third: Side) -> None:
        self.gpu, self.backend = gpu, backend
        self.builder, self.given, self.third = builder, given, third
        self.gate: Gate = gpu.gate()

    def execute(self, side: Side, plan: BackendDescriptor, memory: Memory) -> None:
        """One execution with a side's handle; does not wait."""
        self.backend.execute(side.handle, plan, memory.pack)

    def run(self, side: Side, plan: BackendDescriptor, memory: Memory) -> bytes:
        """One execution with a side's handle, waited for; the output."""
        memory.clear()
        self.execute(side, plan, memory)
        for s in (side, self.builder, self.given):
            self.gpu.synchronize(s.stream)
        return memory.read()

    def capture(self, side: Side, plan: BackendDescriptor, memory: Memory) -> CaptureSeen:
        """Test 1 with a side's handle; nothing runs, unless it escapes the captures."""
        streams = [self.given.stream, self.builder.stream, self.third.stream]
        try:
            seen = self.gpu.capture(streams, lambda: self.execute(side, plan, memory))
        except (BackendError, CudaError) as e:
            return CaptureSeen(error=str(e))
        given, built, other = seen.nodes
        return CaptureSeen(given=given, plan=built, other=other, kernels=sum(seen.kernels), error=seen.error)

    def held(self, side: Side, plan: BackendDescriptor, memory: Memory, reference: bytes | None) -> HeldSeen:
        """Test 2 with a side's handle while the given side's stream is held."""
        memory.clear()
        try:
            self.gate.hold(self.given.stream)
        except CudaError as e:
            return HeldSeen(error=str(e))
        waited = threading.Event()

        def release() -> None:
            waited.set()
            self.gate.open()

        timer = threading.Timer(HOLD_AT_MOST, release)
        timer.start()
        try:
            self.execute(side, plan, memory)
            self.gpu.synchronize(self.builder.stream)
            time.sleep(SETTLE)
            touched = memory.touched()
            late = waited.is_set()  # what was read after the release says nothing
        except BackendError as e:
            return HeldSeen(error=str(e))
        finally:
            timer.cancel()
            self.gate.open()
            self.gpu.synchronize(self.given.stream)
        equal = None if reference is None else memory.read() == reference
        return HeldSeen(early=touched and not late, equal=equal, waited=late)

    def threads(
        self, plans: tuple[BackendDescriptor, BackendDescriptor], memories: Sequence[Sequence[Memory]], reference: bytes
    ) -> ThreadsSeen:
        """Test 4: the given and the third side execute at the same time, each into memory of its own; `plans` are what
        each executes, the same one twice to share it.

        Raises:
            CudaError: a kernel's fault has taken the context.
        """
        workers = [
            _Worker(self, side, plan, memory, reference)
            for side, plan, memory in zip((self.given, self.third), plans, memories, strict=True)
        ]
        start = threading.Barrier(len(workers))
        threads = [threading.Thread(target=worker.run, args=(start,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for worker in workers:
            if isinstance(worker.error, CudaError) and worker.error.status in STICKY:
                raise worker.error
        errors = {f"{type(w.error).__name__}: {w.error}" for w in workers if w.error}
        different = sum(worker.different for worker in workers)
        return ThreadsSeen(runs=len(workers) * ROUNDS * BURST, different=different, error="; ".join(sorted(errors)))


class _Worker:
    """One thread of test 4."""

    def __init__(
        self, bench: PlanTests, side: Side, plan: BackendDescriptor, memories: Sequence[Memory], reference: bytes
    ) -> None:
        self.bench, self.side, self.plan = bench, side, plan
        self.memories, self.reference = memories, reference
        self.different = 0
        self.error: Exception | None = None

    def run(self, start: threading.Barrier) -> None:
        try:
            self.bench.gpu.use_context()
            start.wait(10)
            for _ in range(ROUNDS):
                self._burst()
        except (BackendError, CudaError, threading.BrokenBarrierError) as e:
            self.error = e

    def _burst(self) -> None:
        for memory in self.memories:
            memory.clear_output()
        for memory in self.memories:
            self.bench.execute(self.side, self.plan, memory)
        self.bench.gpu.synchronize(self.side.stream)
        self.different += sum(1 for memory in self.memories if memory.read() != self.reference)
