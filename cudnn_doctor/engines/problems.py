"""What is put to the engines: operations, data types, layouts and shapes, as pure data.

Inputs are small whole numbers, so that every order of summation gives the same bits in fp32 accumulators and a plan's
output can be compared bit by bit with its own reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from cudnn_doctor.model.base import Base

Operation = Literal[
    "conv-forward", "conv-backward-data", "conv-backward-filter", "conv-bias-relu", "matmul", "attention"
]
OPERATIONS: tuple[Operation, ...] = (
    "conv-forward",
    "conv-backward-data",
    "conv-backward-filter",
    "conv-bias-relu",
    "matmul",
    "attention",
)
DATA_TYPES = ("fp16", "bf16", "fp32", "int8")
SIZE = {"fp16": 2, "bf16": 2, "fp32": 4, "int8": 1, "int32": 4}  # bytes of an element
LAYOUTS = ("nchw", "nhwc")
ROW_MAJOR = "row-major"  # the one layout of matmul and attention

# The operation's name in an errata file of cudnn-frontend; "" where the file cannot name it.
# Source: rules in XLA's cuda_dnn.cc (ConvFwd, ConvFwd_Add_Add_ReluFwd) and cudnn_frontend_Errata.h.
ERRATA_NAME: dict[str, str] = {
    "conv-forward": "ConvFwd",
    "conv-backward-data": "ConvBwdData",
    "conv-backward-filter": "ConvBwdFilter",
    "conv-bias-relu": "ConvFwd_Add_ReluFwd",
    "matmul": "Matmul",
    "attention": "",
}


class ConvShape(Base, frozen=True, kw_only=True):
    """A 2-D convolution: batch, input channels, height and width, output channels, square filter, its padding and
    stride, groups."""

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    pad: int
    stride: int = 1
    groups: int = 1

    @property
    def p(self) -> int:
        """Output height."""
        return (self.h + 2 * self.pad - self.r) // self.stride + 1

    @property
    def q(self) -> int:
        """Output width."""
        return (self.w + 2 * self.pad - self.r) // self.stride + 1


CONV_SHAPES: dict[str, ConvShape] = {
    "3x3": ConvShape(n=8, c=64, h=32, w=32, k=64, r=3, pad=1),  # the shape of the 210 plans seen before
    "1x1-stride2": ConvShape(n=4, c=64, h=32, w=32, k=128, r=1, pad=0, stride=2),
    "grouped": ConvShape(n=8, c=32, h=16, w=16, k=32, r=3, pad=1, groups=2),  # 16 channels a group, as MXNet's test
    "depthwise": ConvShape(n=8, c=32, h=32, w=32, k=32, r=3, pad=1, groups=32),
}
MATMUL_SHAPES: dict[str, tuple[int, int, int, int]] = {  # batch, m, n, k
    "b4-128x128x64": (4, 128, 128, 64),
    "b1-256x64x128": (1, 256, 64, 128),
}
ATTENTION_SHAPES: dict[str, tuple[int, int, int, int]] = {  # batch, heads, sequence, head size; how the graph says it
    "composite": (2, 4, 128, 64),  # matmul, scale, softmax in five operations, matmul
    "composite-statistics": (2, 4, 128, 64),  # with the softmax statistics that training needs, as a second output
    "unified": (2, 4, 128, 64),  # CUDNN_BACKEND_OPERATION_SDPA_FWD: since 9.13
}


class Problem(Base, frozen=True, kw_only=True):
    """One operation on one data type, layout and shape."""

    operation: Operation
    data_type: str
    layout: str
    shape: str

    @property
    def id(self) -> str:
        """ "conv-forward/fp16/nhwc/3x3"."""
        return f"{self.operation}/{self.data_type}/{self.layout}/{self.shape}"

    @property
    def group(self) -> str:
        """What one child process takes on: operation, data type and layout."""
        return f"{self.operation}/{self.data_type}/{self.layout}"


def problems(
    *, operations: Sequence[str] = (), data_types: Sequence[str] = (), quick: bool = False
) -> tuple[Problem, ...]:
    """What to run, in the order of the report; `quick` keeps the convolutions without fusion on their first shape.

    Raises:
        ValueError: an operation or data type that is not known, or a choice that leaves nothing.
    """
    for given, known, option in ((operations, OPERATIONS, "--op"), (data_types, DATA_TYPES, "--dtype")):
        for name in given:
            if name not in known:
                raise ValueError(f"{option} {name}: not known. Known are {', '.join(known)}.")
    chosen = tuple(
        p
        for p in _all()
        if p.operation in (operations or OPERATIONS)
        and p.data_type in (data_types or DATA_TYPES)
        and not (quick and not operations and not _in_quick_form(p))
        and not (quick and p.operation.startswith("conv") and p.shape != "3x3")
    )
    if not chosen:
        raise ValueError(f"no problem is both of {', '.join(operations)} and of {', '.join(data_types)}.")
    return chosen


def _in_quick_form(problem: Problem) -> bool:
    return (
        problem.operation in ("conv-forward", "conv-backward-data", "conv-backward-filter")
        and problem.data_type != "int8"
        and problem.layout == "nhwc"
    )


def _all() -> Iterator[Problem]:
    for operation in OPERATIONS:
        if operation == "matmul":
            places = [(d, ROW_MAJOR, s) for d in DATA_TYPES for s in MATMUL_SHAPES]
        elif operation == "attention":
            places = [(d, ROW_MAJOR, s) for d in ("fp16", "bf16") for s in ATTENTION_SHAPES]
        else:
            forward = operation in ("conv-forward", "conv-bias-relu")
            places = [
                (d, layout, s)
                for d in DATA_TYPES
                for layout in LAYOUTS
                for s in CONV_SHAPES
                if d != "int8" or (forward and layout == "nhwc")  # all that cuDNN documents for plain int8
            ]
        for data_type, layout, shape in places:
            yield Problem(operation=operation, data_type=data_type, layout=layout, shape=shape)
