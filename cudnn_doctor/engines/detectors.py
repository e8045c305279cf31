"""The four tests of one plan, and their positive controls. Runs in a child.

A plan is built with handle A (stream A) and executed with handle B (stream B). A right engine queues all in stream B.
The control executes with handle A where B is expected, which is what an engine with the fault of MXNet PR 21104 does by
itself, and must be seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from cudnn_doctor.engines.gpu import CudaError, Gate, Gpu
from cudnn_doctor.engines.graphs import Tensor
from cudnn_doctor.engines.plans import variant_pack
from cudnn_doctor.engines.types import CaptureSeen, HeldSeen, ThreadsSeen
from cudnn_doctor.native.cudnn_backend import Backend, BackendDescriptor, BackendError

UNTOUCHED = 0xA5  # the mark; no output is this byte throughout
LOOKED_AT = 256 * 1024  # bytes of the workspace that are read back
APART = 256  # bytes; several outputs lie in one block, each at a multiple of this
HOLD_AT_MOST = 0.5  # seconds after which a held stream is released, in case the call waits for it
SETTLE = 0.001  # seconds for work that escaped to a stream nobody knows
ROUNDS, BURST = 3, 4  # executions of a thread in test 4: bursts without waiting between


def untouched(data: bytes) -> bool:
    """Whether nothing but the mark is there."""
    return data.count(UNTOUCHED) == len(data)


class Side:
    """A handle with its stream."""

    def __init__(self, handle: int, stream: int) -> None:
        self.handle, self.stream = handle, stream


class Memory:
    """Outputs and workspace of one execution, and the variant pack that names them beside the inputs.

    Executions in one stream may share a workspace: `lender` is the memory whose workspace this one borrows.
    """

    def __init__(
        self,
        gpu: Gpu,
        backend: Backend,
        tensors: Sequence[Tensor],
        inputs: dict[int, int],
        space: int,
        lender: Memory | None = None,
    ) -> None:
        self.gpu, self.space, self.lender = gpu, space, lender
        offsets: dict[int, int] = {}
        self.size = 0
        for tensor in tensors:
            if tensor.role == "output":
                offsets[tensor.uid] = self.size
                self.size += -(-tensor.bytes // APART) * APART
        self.output = gpu.allocate(self.size)
        self.workspace: int = gpu.allocate(space) if lender is None else lender.workspace
        pointers = [self.output + offsets[t.uid] if t.uid in offsets else inputs[t.uid] for t in tensors]
        self.pack = variant_pack(backend, [t.uid for t in tensors], pointers, self.workspace)

    def close(self) -> None:
        """Returns the memory."""
        self.pack.close()
        self.gpu.free(self.output)
        if self.lender is None:
            self.gpu.free(self.workspace)

    def clear(self) -> None:
        """Overwrites output and workspace with the mark."""
        self.clear_output()
        self.gpu.fill(self.workspace, UNTOUCHED, self.space)

    def clear_output(self) -> None:
        """Overwrites the output with the mark, so that no earlier plan's output passes for this one's."""
        self.gpu.fill(self.output, UNTOUCHED, self.size)

    def read(self) -> bytes:
        """The output."""
        return self.gpu.read(self.output, self.size)

    def touched(self) -> bool:
        """Whether anything was written since `clear`."""
        looked = min(self.space, LOOKED_AT)
        return any(data.count(UNTOUCHED) != len(data) for data in (self.read(), self.gpu.read(self.workspace, looked)))


class Bench:
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

    def threads(self, plan: BackendDescriptor, memories: Sequence[Sequence[Memory]], reference: bytes) -> ThreadsSeen:
        """Test 4: the given and the third side execute one plan at the same time, each into memory of its own."""
        counts, errors = [0, 0], ["", ""]
        start = threading.Barrier(2)
        workers = [
            threading.Thread(target=self._worker, args=(i, side, plan, memories[i], reference, start, counts, errors))
            for i, side in enumerate((self.given, self.third))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return ThreadsSeen(
            runs=2 * ROUNDS * BURST, different=sum(counts), error="; ".join(sorted({e for e in errors if e}))
        )

    def _worker(
        self,
        index: int,
        side: Side,
        plan: BackendDescriptor,
        memories: Sequence[Memory],
        reference: bytes,
        start: threading.Barrier,
        counts: list[int],
        errors: list[str],
    ) -> None:
        try:
            self.gpu.use_context()
            start.wait(10)
            for _ in range(ROUNDS):
                for memory in memories:
                    memory.clear_output()
                for memory in memories:
                    self.execute(side, plan, memory)
                self.gpu.synchronize(side.stream)
                counts[index] += sum(1 for memory in memories if memory.read() != reference)
        except (BackendError, CudaError, threading.BrokenBarrierError) as e:
            errors[index] = f"{type(e).__name__}: {e}"
