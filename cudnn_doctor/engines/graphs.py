"""Operation graphs of the backend API for each problem. Runs in a child.

Shapes of the attributes: docs of cudnnBackendAttributeName_t; the composite attention is the graph that cudnn-frontend
documents for its attention node (matmul, scale, max, sub, exp, sum, div, matmul).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import Any, Literal

from cudnn_doctor.engines.problems import ATTENTION_SHAPES, CONV_SHAPES, MATMUL_SHAPES, SIZE, Problem
from cudnn_doctor.model.base import Base
from cudnn_doctor.native.backend_enums import Attr, ConvolutionMode, DataType, Descriptor, Pointwise, Reduce, Type
from cudnn_doctor.native.cudnn_backend import Backend, BackendDescriptor

NUMBER = {
    "fp16": DataType.HALF,
    "bf16": DataType.BFLOAT16,
    "fp32": DataType.FLOAT,
    "int8": DataType.INT8,
    "int32": DataType.INT32,
}
ALIGNMENT = 16  # bytes; cuMemAlloc gives 256
DESC = Type.BACKEND_DESCRIPTOR


class Tensor(Base, frozen=True, kw_only=True):
    """A tensor that the variant pack gives a pointer for. `value` is a host float, given by its address."""

    uid: int
    role: Literal["input", "output", "value"]
    data_type: str
    elements: int

    @property
    def bytes(self) -> int:
        return self.elements * SIZE[self.data_type]


class Graph:
    """A finalised operation graph with all that it refers to; a context manager."""

    def __init__(self, backend: Backend, handle: int, problem: Problem) -> None:
        self.backend, self.problem = backend, problem
        self.tensors: list[Tensor] = []
        self.scale = ctypes.c_float(0.125)
        self._uid = 0
        with ExitStack() as stack:
            self._stack = stack
            operations = self._operations()
            self.descriptor = self._made(
                Descriptor.OPERATIONGRAPH,
                (Attr.OPERATIONGRAPH_HANDLE, Type.HANDLE, [handle]),
                (Attr.OPERATIONGRAPH_OPS, DESC, operations),
            )
            self._stack = stack.pop_all()

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def scale_address(self) -> int:
        """Where the one host float is that attention takes by value."""
        return ctypes.addressof(self.scale)

    def engine_count(self) -> int:
        """CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT."""
        return int(self.descriptor.get(Attr.OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, Type.INT64)[0])

    # -- operations

    def _operations(self) -> list[BackendDescriptor]:
        operation = self.problem.operation
        if operation == "matmul":
            return self._matmul_problem()
        if operation == "attention":
            return self._unified_attention() if self.problem.shape == "unified" else self._composite_attention()
        return self._convolution_problem()

    def _convolution_problem(self) -> list[BackendDescriptor]:
        shape, data_type = CONV_SHAPES[self.problem.shape], self.problem.data_type
        x = (shape.n, shape.c, shape.h, shape.w)
        w = (shape.k, shape.c // shape.groups, shape.r, shape.r)
        y = (shape.n, shape.k, shape.p, shape.q)
        convolution = self._made(
            Descriptor.CONVOLUTION,
            (Attr.CONVOLUTION_SPATIAL_DIMS, Type.INT64, [2]),
            (Attr.CONVOLUTION_COMP_TYPE, Type.DATA_TYPE, [self._compute()]),
            (Attr.CONVOLUTION_CONV_MODE, Type.CONVOLUTION_MODE, [ConvolutionMode.CROSS_CORRELATION]),
            (Attr.CONVOLUTION_PRE_PADDINGS, Type.INT64, [shape.pad] * 2),
            (Attr.CONVOLUTION_POST_PADDINGS, Type.INT64, [shape.pad] * 2),
            (Attr.CONVOLUTION_FILTER_STRIDES, Type.INT64, [shape.stride] * 2),
            (Attr.CONVOLUTION_DILATIONS, Type.INT64, [1, 1]),
        )
        if self.problem.operation == "conv-backward-data":
            return [
                self._made(
                    Descriptor.OPERATION_CONVOLUTION_BACKWARD_DATA,
                    (Attr.OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, DESC, [convolution]),
                    (Attr.OPERATION_CONVOLUTION_BWD_DATA_DY, DESC, [self._tensor(y)]),
                    (Attr.OPERATION_CONVOLUTION_BWD_DATA_W, DESC, [self._tensor(w)]),
                    (Attr.OPERATION_CONVOLUTION_BWD_DATA_DX, DESC, [self._tensor(x, "output")]),
                    (Attr.OPERATION_CONVOLUTION_BWD_DATA_ALPHA, Type.FLOAT, [1.0]),
                    (Attr.OPERATION_CONVOLUTION_BWD_DATA_BETA, Type.FLOAT, [0.0]),
                )
            ]
        if self.problem.operation == "conv-backward-filter":
            return [
                self._made(
                    Descriptor.OPERATION_CONVOLUTION_BACKWARD_FILTER,
                    (Attr.OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, DESC, [convolution]),
                    (Attr.OPERATION_CONVOLUTION_BWD_FILTER_X, DESC, [self._tensor(x)]),
                    (Attr.OPERATION_CONVOLUTION_BWD_FILTER_DY, DESC, [self._tensor(y)]),
                    (Attr.OPERATION_CONVOLUTION_BWD_FILTER_DW, DESC, [self._tensor(w, "output")]),
                    (Attr.OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, Type.FLOAT, [1.0]),
                    (Attr.OPERATION_CONVOLUTION_BWD_FILTER_BETA, Type.FLOAT, [0.0]),
                )
            ]
        fused = self.problem.operation == "conv-bias-relu"
        between = "int32" if data_type == "int8" else "fp32"
        out = self._tensor(y, "virtual", between) if fused else self._tensor(y, "output")
        forward = self._made(
            Descriptor.OPERATION_CONVOLUTION_FORWARD,
            (Attr.OPERATION_CONVOLUTION_FORWARD_CONV_DESC, DESC, [convolution]),
            (Attr.OPERATION_CONVOLUTION_FORWARD_X, DESC, [self._tensor(x)]),
            (Attr.OPERATION_CONVOLUTION_FORWARD_W, DESC, [self._tensor(w)]),
            (Attr.OPERATION_CONVOLUTION_FORWARD_Y, DESC, [out]),
            (Attr.OPERATION_CONVOLUTION_FORWARD_ALPHA, Type.FLOAT, [1.0]),
            (Attr.OPERATION_CONVOLUTION_FORWARD_BETA, Type.FLOAT, [0.0]),
        )
        if not fused:
            return [forward]
        bias = self._tensor((1, shape.k, 1, 1), "input", "fp32" if data_type == "int8" else data_type)
        added = self._tensor(y, "virtual", "fp32")
        return [
            forward,
            self._pointwise(Pointwise.ADD, out, bias, added),
            self._pointwise(Pointwise.RELU_FWD, added, None, self._tensor(y, "output")),
        ]

    def _matmul_problem(self) -> list[BackendDescriptor]:
        b, m, n, k = MATMUL_SHAPES[self.problem.shape]
        out = "int32" if self.problem.data_type == "int8" else self.problem.data_type
        left, right = self._tensor((b, m, k)), self._tensor((b, k, n))
        return [self._matmul(left, right, self._tensor((b, m, n), "output", out))]

    def _composite_attention(self) -> list[BackendDescriptor]:
        b, h, s, d = ATTENTION_SHAPES[self.problem.shape]
        q, v = self._tensor((b, h, s, d)), self._tensor((b, h, s, d))
        transposed_k = self._tensor((b, h, d, s), strides=(h * s * d, s * d, 1, d))
        scale = self._tensor((1, 1, 1, 1), "value", "fp32")
        square = [self._tensor((b, h, s, s), "virtual", "fp32") for _ in range(4)]
        top, total = (self._tensor((b, h, s, 1), "virtual", "fp32") for _ in range(2))
        # The second matmul takes the data type of V; cuDNN converts inside the fused kernel.
        weights = self._tensor((b, h, s, s), "virtual", self.problem.data_type)
        scores, scaled, shifted, powers = square
        statistics: list[BackendDescriptor] = []
        if self.problem.shape == "composite-statistics":
            logarithm = self._tensor((b, h, s, 1), "virtual", "fp32")
            statistics = [
                self._pointwise(Pointwise.LOG, total, None, logarithm),
                self._pointwise(Pointwise.ADD, top, logarithm, self._tensor((b, h, s, 1), "output", "fp32")),
            ]
        return [
            self._matmul(q, transposed_k, scores),
            self._pointwise(Pointwise.MUL, scores, scale, scaled),
            self._reduction(Reduce.MAX, scaled, top),
            self._pointwise(Pointwise.SUB, scaled, top, shifted),
            self._pointwise(Pointwise.EXP, shifted, None, powers),
            self._reduction(Reduce.ADD, powers, total),
            *statistics,
            self._pointwise(Pointwise.DIV, powers, total, weights),
            self._matmul(weights, v, self._tensor((b, h, s, d), "output")),
        ]

    def _unified_attention(self) -> list[BackendDescriptor]:
        b, h, s, d = ATTENTION_SHAPES[self.problem.shape]
        return [
            self._made(
                Descriptor.OPERATION_SDPA_FWD,
                (Attr.OPERATION_SDPA_FWD_QDESC, DESC, [self._tensor((b, h, s, d))]),
                (Attr.OPERATION_SDPA_FWD_KDESC, DESC, [self._tensor((b, h, s, d))]),
                (Attr.OPERATION_SDPA_FWD_VDESC, DESC, [self._tensor((b, h, s, d))]),
                (Attr.OPERATION_SDPA_FWD_ODESC, DESC, [self._tensor((b, h, s, d), "output")]),
                (Attr.OPERATION_SDPA_FWD_SCALEDESC, DESC, [self._tensor((1, 1, 1, 1), "value", "fp32")]),
            )
        ]

    # -- parts

    def _compute(self) -> DataType:
        return DataType.INT32 if self.problem.data_type == "int8" else DataType.FLOAT

    def _made(self, kind: Descriptor, *attributes: tuple[Attr, Type, Sequence[Any]]) -> BackendDescriptor:
        descriptor = self.backend.made(kind, *attributes)
        self._stack.callback(descriptor.close)
        return descriptor

    def _tensor(
        self,
        dims: tuple[int, ...],
        role: Literal["input", "output", "value", "virtual"] = "input",
        data_type: str = "",
        strides: tuple[int, ...] = (),
    ) -> BackendDescriptor:
        self._uid += 1
        data_type = data_type or self.problem.data_type
        if role != "virtual":
            self.tensors.append(Tensor(uid=self._uid, role=role, data_type=data_type, elements=prod(dims)))
        attributes: list[tuple[Attr, Type, Sequence[Any]]] = [
            (Attr.TENSOR_DATA_TYPE, Type.DATA_TYPE, [NUMBER[data_type]]),
            (Attr.TENSOR_DIMENSIONS, Type.INT64, dims),
            (Attr.TENSOR_STRIDES, Type.INT64, strides or packed(dims, channels_last=self.problem.layout == "nhwc")),
            (Attr.TENSOR_UNIQUE_ID, Type.INT64, [self._uid]),
            (Attr.TENSOR_BYTE_ALIGNMENT, Type.INT64, [ALIGNMENT]),
            (Attr.TENSOR_IS_VIRTUAL, Type.BOOLEAN, [role == "virtual"]),
        ]
        if role == "value":
            attributes.append((Attr.TENSOR_IS_BY_VALUE, Type.BOOLEAN, [True]))
        return self._made(Descriptor.TENSOR, *attributes)

    def _pointwise(
        self, mode: Pointwise, x: BackendDescriptor, b: BackendDescriptor | None, y: BackendDescriptor
    ) -> BackendDescriptor:
        pointwise = self._made(
            Descriptor.POINTWISE,
            (Attr.POINTWISE_MODE, Type.POINTWISE_MODE, [mode]),
            (Attr.POINTWISE_MATH_PREC, Type.DATA_TYPE, [DataType.FLOAT]),
        )
        second = [] if b is None else [(Attr.OPERATION_POINTWISE_BDESC, DESC, [b])]
        return self._made(
            Descriptor.OPERATION_POINTWISE,
            (Attr.OPERATION_POINTWISE_PW_DESCRIPTOR, DESC, [pointwise]),
            (Attr.OPERATION_POINTWISE_XDESC, DESC, [x]),
            *second,
            (Attr.OPERATION_POINTWISE_YDESC, DESC, [y]),
        )

    def _reduction(self, operator: Reduce, x: BackendDescriptor, y: BackendDescriptor) -> BackendDescriptor:
        reduction = self._made(
            Descriptor.REDUCTION,
            (Attr.REDUCTION_OPERATOR, Type.REDUCTION_OPERATOR_TYPE, [operator]),
            (Attr.REDUCTION_COMP_TYPE, Type.DATA_TYPE, [DataType.FLOAT]),
        )
        return self._made(
            Descriptor.OPERATION_REDUCTION,
            (Attr.OPERATION_REDUCTION_DESC, DESC, [reduction]),
            (Attr.OPERATION_REDUCTION_XDESC, DESC, [x]),
            (Attr.OPERATION_REDUCTION_YDESC, DESC, [y]),
        )

    def _matmul(self, a: BackendDescriptor, b: BackendDescriptor, c: BackendDescriptor) -> BackendDescriptor:
        matmul = self._made(Descriptor.MATMUL, (Attr.MATMUL_COMP_TYPE, Type.DATA_TYPE, [self._compute()]))
        return self._made(
            Descriptor.OPERATION_MATMUL,
            (Attr.OPERATION_MATMUL_ADESC, DESC, [a]),
            (Attr.OPERATION_MATMUL_BDESC, DESC, [b]),
            (Attr.OPERATION_MATMUL_CDESC, DESC, [c]),
            (Attr.OPERATION_MATMUL_DESC, DESC, [matmul]),
        )


def packed(dims: Sequence[int], *, channels_last: bool = False) -> tuple[int, ...]:
    """Strides of a tensor without gaps, in elements; `channels_last` makes axis 1 the innermost one."""
    order = [0, *range(2, len(dims)), 1] if channels_last else range(len(dims))
    strides, step = [0] * len(dims), 1
    for axis in reversed(order):
        strides[axis], step = step, step * dims[axis]
    return tuple(strides)
