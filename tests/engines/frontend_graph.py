"""Operation graphs of the cross-check's problems in the words of nvidia-cudnn-frontend. Runs in a child."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from cudnn_doctor.engines.child_task import Session
from cudnn_doctor.engines.detectors import Side
from cudnn_doctor.engines.graphs import Tensor, packed
from cudnn_doctor.engines.problems import ATTENTION_SHAPES, CONV_SHAPES, MATMUL_SHAPES, Problem
from cudnn_doctor.live.wire import Wire

TYPES = {"fp16": "HALF", "bf16": "BFLOAT16", "fp32": "FLOAT", "int8": "INT8", "int32": "INT32"}


class Frontend:
    """nvidia-cudnn-frontend on the library of a session, with a handle A and a handle B of its own making.

    Raises:
        ImportError: it is not installed.
        RuntimeError: it has brought a second libcudnn.
    """

    def __init__(self, wire: Wire, session: Session) -> None:
        sys.modules.setdefault("torch", None)  # type: ignore[arg-type] # its import takes seconds; the package does without
        self.cudnn = import_module("cudnn")
        library = ctypes.CDLL(session.cudnn.path)
        self.cudnn._pybind_module._set_dlhandle_cudnn(ctypes.cast(library._handle, ctypes.c_void_p).value)
        mapped = {p for p in re.findall(r"/.*", Path("/proc/self/maps").read_text()) if "/libcudnn.so" in p}
        if len(mapped) > 1:
            raise RuntimeError(f"two copies of libcudnn are loaded: {', '.join(sorted(mapped))}")
        wire.note("frontend", self.cudnn.__version__)
        self.builder, self.given = (self._side(stream) for stream in session.streams[:2])

    def _side(self, stream: int) -> Side:
        handle = self.cudnn.create_handle()
        self.cudnn.set_stream(handle, stream)
        return Side(handle, stream)


class Expression:
    """A problem's operation graph in the frontend's words, on the tensors of our graph: same uids, sizes and types."""

    def __init__(self, frontend: Frontend, problem: Problem, tensors: Sequence[Tensor]) -> None:
        self.cudnn, self.problem = frontend.cudnn, problem
        self._inputs = [t for t in tensors if t.role == "input"]
        self._values = [t for t in tensors if t.role == "value"]
        self._outputs = [t for t in tensors if t.role == "output"]
        float_ = self.cudnn.data_type.FLOAT
        self.graph = self.cudnn.pygraph(
            io_data_type=self._type(problem.data_type),
            intermediate_data_type=float_,
            compute_data_type=float_,
            handle=frontend.builder.handle,
        )
        if problem.operation == "matmul":
            self._matmul()
        elif problem.operation == "attention":
            self._composite() if problem.shape == "composite" else self._attention()
        else:
            self._convolution()
        if self._inputs or self._outputs or self._values:
            raise ValueError(f"{problem.id}: tensors are left over")
        self.graph.validate()
        self.graph.build_operation_graph()

    # -- tensors

    def _type(self, name: str) -> Any:
        return getattr(self.cudnn.data_type, TYPES[name])

    def _strides(self, dims: Sequence[int]) -> tuple[int, ...]:
        return packed(dims, channels_last=self.problem.layout == "nhwc")

    def _input(self, dims: Sequence[int], data_type: str = "") -> Any:
        return self._given(self._inputs.pop(0), dims, data_type or self.problem.data_type)

    def _scale(self) -> Any:
        return self._given(self._values.pop(0), (1, 1, 1, 1), "fp32", by_value=True)

    def _given(self, tensor: Tensor, dims: Sequence[int], data_type: str, *, by_value: bool = False) -> Any:
        _same(tensor, dims, data_type)
        return self.graph._make_tensor(
            dim=list(dims),
            stride=list(self._strides(dims)),
            data_type=self._type(data_type),
            is_pass_by_value=by_value,
            uid=tensor.uid,
        )

    def _output(self, made: Any, dims: Sequence[int], data_type: str = "") -> None:
        tensor = self._outputs.pop(0)
        _same(tensor, dims, data_type or self.problem.data_type)
        self._virtual(made, dims, data_type or self.problem.data_type).set_output(True).set_uid(tensor.uid)

    def _virtual(self, made: Any, dims: Sequence[int], data_type: str = "fp32") -> Any:
        return made.set_dim(list(dims)).set_stride(list(self._strides(dims)))._set_data_type(self._type(data_type))

    # -- operations

    def _compute(self) -> Any:
        return self._type("int32" if self.problem.data_type == "int8" else "fp32")

    def _convolution(self) -> None:
        shape, operation, int8 = (
            CONV_SHAPES[self.problem.shape],
            self.problem.operation,
            self.problem.data_type == "int8",
        )
        x = (shape.n, shape.c, shape.h, shape.w)
        w = (shape.k, shape.c // shape.groups, shape.r, shape.r)
        y = (shape.n, shape.k, shape.p, shape.q)
        pads: dict[str, Any] = {"pre_padding": [shape.pad] * 2, "post_padding": [shape.pad] * 2}
        how = {**pads, "stride": [shape.stride] * 2, "dilation": [1, 1], "compute_data_type": self._compute()}
        if operation == "conv-backward-data":
            self._output(self.graph.conv_dgrad(loss=self._input(y), filter=self._input(w), **how), x)
            return
        if operation == "conv-backward-filter":
            self._output(self.graph.conv_wgrad(image=self._input(x), loss=self._input(y), **how), w)
            return
        out = self.graph.conv_fprop(image=self._input(x), weight=self._input(w), **how)
        if operation == "conv-forward":
            self._output(out, y)
            return
        self._virtual(out, y, "int32" if int8 else "fp32")
        bias = self._input((1, shape.k, 1, 1), "fp32" if int8 else "")
        added = self._virtual(self.graph.add(a=out, b=bias), y)
        self._output(self.graph.relu(input=added), y)

    def _matmul(self) -> None:
        b, m, n, k = MATMUL_SHAPES[self.problem.shape]
        left, right = self._input((b, m, k)), self._input((b, k, n))
        out = self.graph.matmul(A=left, B=right, compute_data_type=self._compute())
        self._output(out, (b, m, n), "int32" if self.problem.data_type == "int8" else "")

    def _composite(self) -> None:
        b, h, s, d = ATTENTION_SHAPES[self.problem.shape]
        graph, square, row = self.graph, (b, h, s, s), (b, h, s, 1)
        q, v, k = (self._input((b, h, s, d)) for _ in range(3))
        k.set_dim([b, h, d, s]).set_stride([h * s * d, s * d, 1, d])
        scaled = self._virtual(graph.mul(a=self._virtual(graph.matmul(A=q, B=k), square), b=self._scale()), square)
        top = self._virtual(graph.reduction(input=scaled, mode=self.cudnn.reduction_mode.MAX), row)
        powers = self._virtual(graph.exp(input=self._virtual(graph.sub(a=scaled, b=top), square)), square)
        total = self._virtual(graph.reduction(input=powers, mode=self.cudnn.reduction_mode.ADD), row)
        weights = self._virtual(graph.div(a=powers, b=total), square, self.problem.data_type)
        self._output(graph.matmul(A=weights, B=v), (b, h, s, d))

    def _attention(self) -> None:
        """The frontend's own node; it transposes K itself where it takes the operation apart."""
        b, h, s, d = ATTENTION_SHAPES[self.problem.shape]
        unified = self.problem.shape == "unified"
        first, second, third = (self._input((b, h, s, d)) for _ in range(3))
        out, statistics = self.graph.sdpa(
            q=first,
            k=second if unified else third,
            v=third if unified else second,
            attn_scale=self._scale(),
            generate_stats=not unified,
            implementation=getattr(self.cudnn.attention_implementation, "UNIFIED" if unified else "COMPOSITE"),
        )
        if not unified:
            self._output(statistics, (b, h, s, 1), "fp32")
        self._output(out, (b, h, s, d))


def _same(tensor: Tensor, dims: Sequence[int], data_type: str) -> None:
    if (prod(dims), data_type) != (tensor.elements, tensor.data_type):
        raise ValueError(f"tensor {tensor.uid} has {tensor.elements} {tensor.data_type}, not {dims} {data_type}")
