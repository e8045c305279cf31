"""The CUDA calls that the detectors need, on one device's primary context. Runs in a child.

Streams are non-blocking, so that nothing ties them to the default stream and a capture on one forbids nothing there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from cudnn_doctor.native.cuda import Bindings

# Errors after which every call on the context fails (CUDA 12.9 headers: "process must be terminated").
STICKY = frozenset({226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911})


class CudaError(Exception):
    """A CUDA driver call that did not succeed."""

    def __init__(self, call: str, status: int, name: str) -> None:
        super().__init__(f"{call}: {status} {name}")
        self.call, self.status, self.name = call, status, name


class Capture:
    """What a capture of several streams took: the nodes of each stream's graph, or why there is none."""

    def __init__(self, nodes: list[int], kernels: list[int], error: str) -> None:
        self.nodes, self.kernels, self.error = nodes, kernels, error


class Gpu:
    """One device with its primary context current.

    Raises:
        CudaError: no driver, no such device, no context.
        ImportError: cuda.bindings cannot be used.
    """

    def __init__(self, device: int) -> None:
        self.cuda = Bindings()
        self._call("cuInit", 0)
        self.device = self._call("cuDeviceGet", device)
        self.context = self._call("cuDevicePrimaryCtxRetain", self.device)
        self.use_context()
        self._copies = self.stream()

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *values = getattr(self.cuda, name)(*arguments)
        if int(status):
            raise CudaError(name, int(status), self.cuda.decode(int(status))[0])
        return values[0] if values else None

    def error(self, status: int) -> tuple[str, str]:
        """A CUresult as number and name."""
        return str(status), self.cuda.decode(status)[0]

    def use_context(self) -> None:
        """Makes the primary context current to the calling thread."""
        self._call("cuCtxSetCurrent", self.context)

    def name(self) -> str:
        """ "NVIDIA H200"."""
        raw: bytes = self._call("cuDeviceGetName", 256, self.device)
        return raw.split(b"\0", 1)[0].decode("utf-8", "replace")

    def stream(self) -> int:
        """A new non-blocking stream."""
        return int(self._call("cuStreamCreate", 1))

    def synchronize(self, stream: int) -> None:
        """Waits for one stream."""
        self._call("cuStreamSynchronize", stream)

    def allocate(self, size: int) -> int:
        """Device memory of at least one byte."""
        return int(self._call("cuMemAlloc", max(size, 256)))

    def free(self, pointer: int) -> None:
        """Returns device memory."""
        self._call("cuMemFree", pointer)

    def fill(self, pointer: int, byte: int, size: int) -> None:
        """Sets every byte; done when it returns."""
        if size:
            self._call("cuMemsetD8Async", pointer, byte, size, self._copies)
            self.synchronize(self._copies)

    def write(self, pointer: int, data: bytes) -> None:
        """Copies to the device; done when it returns."""
        self._call("cuMemcpyHtoDAsync", pointer, data, len(data), self._copies)
        self.synchronize(self._copies)

    def read(self, pointer: int, size: int) -> bytes:
        """Copies from the device on a stream of its own, whatever else waits."""
        buffer = ctypes.create_string_buffer(max(size, 1))
        self._call("cuMemcpyDtoHAsync", ctypes.addressof(buffer), pointer, size, self._copies)
        self.synchronize(self._copies)
        return buffer.raw[:size]

    def capture(self, streams: Sequence[int], work: Callable[[], None]) -> Capture:
        """Does `work` while every one of `streams` is in relaxed capture and counts the nodes of each.

        What `work` raises is raised again, after the captures have ended.
        """
        mode = self.cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        begun: list[int] = []
        try:
            for stream in streams:
                self._call("cuStreamBeginCapture", stream, mode)
                begun.append(stream)
            work()
        finally:
            ended = [self.cuda.cuStreamEndCapture(stream) for stream in begun]
            counted = [self._count(graph) if not int(status) else (0, 0) for status, graph in ended]
        failed = [f"cuStreamEndCapture: {' '.join(self.error(int(status)))}" for status, _ in ended if int(status)]
        return Capture([n for n, _ in counted], [k for _, k in counted], "; ".join(failed))

    def _count(self, graph: Any) -> tuple[int, int]:
        """Nodes of a graph, and how many of them are kernels; the graph is destroyed."""
        n = int(self.cuda.cuGraphGetNodes(graph, 0)[2])
        kernel = self.cuda.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
        nodes = self.cuda.cuGraphGetNodes(graph, n)[1] if n else []
        kernels = sum(1 for node in nodes if self._call("cuGraphNodeGetType", node) == kernel)
        self._call("cuGraphDestroy", graph)
        return n, kernels

    def gate(self) -> Gate:
        """A new gate for streams."""
        return Gate(self)


class Gate:
    """Holds a stream at a 32-bit word of pinned host memory: opening it is a plain store, so no CUDA call that might
    itself wait for the stream stands between a held stream and its release."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        address = int(gpu._call("cuMemHostAlloc", 64, int(gpu.cuda.CU_MEMHOSTALLOC_DEVICEMAP)))
        self._word = ctypes.c_uint32.from_address(address)
        self._device = int(gpu._call("cuMemHostGetDevicePointer", address, 0))

    def hold(self, stream: int) -> None:
        """Closes the gate and lets `stream` wait at it.

        Raises:
            CudaError: the device or driver has no stream memory operations (801, CUDA_ERROR_NOT_SUPPORTED).
        """
        self._word.value = 0
        geq = self._gpu.cuda.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        self._gpu._call("cuStreamWaitValue32", stream, self._device, 1, int(geq))

    def open(self) -> None:
        """Lets the stream go on."""
        self._word.value = 1
