"""Device memory of the executions: inputs of small whole numbers, marked outputs and workspaces. Runs in a child."""

from __future__ import annotations

from collections.abc import Sequence

from cudnn_doctor.engines.gpu import Gpu
from cudnn_doctor.engines.graphs import Graph, Tensor
from cudnn_doctor.engines.plans import variant_pack
from cudnn_doctor.native.cudnn_backend import Backend

UNTOUCHED = 0xA5  # the mark; no output is this byte throughout
LOOKED_AT = 256 * 1024  # bytes of the workspace that are read back
APART = 256  # bytes; several outputs lie in one block, each at a multiple of this
BURST = 4  # executions of a thread in test 4 without waiting between


def untouched(data: bytes) -> bool:
    """Whether nothing but the mark is there."""
    return data.count(UNTOUCHED) == len(data)


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


class Memories:
    """The memory of one problem: its inputs, and outputs with workspaces that grow with the plans' wishes."""

    def __init__(self, gpu: Gpu, graph: Graph) -> None:
        self.gpu, self.graph = gpu, graph
        self.inputs = {t.uid: self._input(t) for t in graph.tensors if t.role != "output"}
        self._lenders: dict[int, Memory] = {}
        self._borrowers: dict[int, list[Memory]] = {}

    def close(self) -> None:
        """Returns all of it."""
        for memory in (*(m for kept in self._borrowers.values() for m in kept), *self._lenders.values()):
            memory.close()
        for tensor in self.graph.tensors:
            if tensor.role == "input":
                self.gpu.free(self.inputs[tensor.uid])

    def first(self, space: int) -> Memory:
        """The memory of a single execution."""
        return self._lender(0, space)

    def bursts(self, space: int) -> list[list[Memory]]:
        """For each of the two threads of test 4: outputs of its own for a burst, and one workspace."""
        for thread in (1, 2):
            lender = self._lender(thread, space)
            kept = self._borrowers.get(thread, [])
            if not kept or kept[0].lender is not lender:
                for memory in kept:
                    memory.close()
                self._borrowers[thread] = [self._made(lender.space, lender) for _ in range(BURST - 1)]
        return [[self._lenders[thread], *self._borrowers[thread]] for thread in (1, 2)]

    def _lender(self, number: int, space: int) -> Memory:
        memory = self._lenders.get(number)
        if memory is None or memory.space < space:
            if memory is not None:
                memory.close()
            memory = self._lenders[number] = self._made(space)
        return memory

    def _made(self, space: int, lender: Memory | None = None) -> Memory:
        return Memory(self.gpu, self.graph.backend, self.graph.tensors, self.inputs, space, lender)

    def _input(self, tensor: Tensor) -> int:
        if tensor.role == "value":
            return self.graph.scale_address()
        pointer = self.gpu.allocate(tensor.bytes)
        self.gpu.write(pointer, pattern(tensor))
        return pointer


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
