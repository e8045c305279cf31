"""The live check: everything from opening libcudnn to one convolution whose result is known.

Not one of the states of `reproduce`: it shows that the healthy way works here, sub-libraries included.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cudnn_doctor.live.session import Session, mapped_libraries, session
from cudnn_doctor.live.wire import Wire
from cudnn_doctor.native.cudnn import CROSS_CORRELATION, FLOAT, IMPLICIT_GEMM, NCHW

ID = "live-check"
C, K, H, W = 8, 8, 16, 16  # input channels, output channels, height, width; 3x3 filter, padding 1
X_BYTES, W_BYTES, Y_BYTES = 4 * C * H * W, 4 * K * C * 9, 4 * K * H * W

# Small integers: every product and sum is exact in fp32 and in TF32's 11 bits. The filter is a product of three
# factors, so that the right answer costs a millisecond of Python; no factor is symmetric, so a flipped filter, swapped
# channels or a shifted border give another answer.
BY_OUTPUT = (1, -2, 3, 4, -1, 2, -3, 5)
BY_INPUT = (2, -1, 1, 3, -2, 1, -3, 2)
BY_TAP = (1, 2, -1, 0, 3, -2, 2, -1, 1)


def input_values() -> list[int]:
    """x[c][h][w], flat."""
    return [(5 * c + 3 * h + 7 * w + h * w) % 7 - 3 for c in range(C) for h in range(H) for w in range(W)]


def filter_values() -> list[int]:
    """w[k][c][r][s], flat."""
    return [k * c * t for k in BY_OUTPUT for c in BY_INPUT for t in BY_TAP]


def expected_values() -> list[int]:
    """y[k][h][w], flat: cross-correlation of the two above with stride 1 and padding 1."""
    x = input_values()
    one = [sum(b * x[c * H * W + i] for c, b in enumerate(BY_INPUT)) for i in range(H * W)]
    padded = [[0] * (W + 2), *([0, *one[h * W : (h + 1) * W], 0] for h in range(H)), [0] * (W + 2)]
    taps = [(t // 3, t % 3, f) for t, f in enumerate(BY_TAP)]
    plane = [sum(f * padded[h + r][w + s] for r, s, f in taps) for h in range(H) for w in range(W)]
    return [k * v for k in BY_OUTPUT for v in plane]


def run(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """Opens, sets and gets the stream, convolves on it, compares, cleans up."""
    s = session(wire, args, shared)
    s.primary()
    stream = s.stream()
    handle = s.handle()
    s.cudnn("cudnnSetStream", handle, stream, must=True)
    got = s.cudnn("cudnnGetStream", handle, must=True).value
    wire.note("stream kept", got == stream)
    convolve(s, handle, stream)
    s.cudnn("cudnnDestroy", handle)
    s.cuda("cuStreamDestroy", stream)
    wire.note("libraries", mapped_libraries())


def convolve(s: Session, handle: int, stream: int, before: Callable[[], object] = lambda: None) -> None:
    """The convolution on the handle's stream, compared with what is right. `before` is called just before it."""
    x_desc = s.cudnn("cudnnCreateTensorDescriptor", label="x", must=True).value
    y_desc = s.cudnn("cudnnCreateTensorDescriptor", label="y", must=True).value
    w_desc = s.cudnn("cudnnCreateFilterDescriptor", must=True).value
    conv = s.cudnn("cudnnCreateConvolutionDescriptor", must=True).value
    s.cudnn("cudnnSetTensor4dDescriptor", x_desc, NCHW, FLOAT, 1, C, H, W, label="x", must=True)
    s.cudnn("cudnnSetTensor4dDescriptor", y_desc, NCHW, FLOAT, 1, K, H, W, label="y", must=True)
    s.cudnn("cudnnSetFilter4dDescriptor", w_desc, FLOAT, NCHW, K, C, 3, 3, must=True)
    s.cudnn("cudnnSetConvolution2dDescriptor", conv, 1, 1, 1, 1, 1, 1, CROSS_CORRELATION, FLOAT, must=True)

    host_x = (ctypes.c_float * (C * H * W))(*input_values())
    host_w = (ctypes.c_float * (K * C * 9))(*filter_values())
    host_y = (ctypes.c_float * (K * H * W))()
    x, w, y = (int(s.cuda("cuMemAlloc", size, must=True).value) for size in (X_BYTES, W_BYTES, Y_BYTES))
    s.cuda("cuMemcpyHtoDAsync", x, ctypes.addressof(host_x), X_BYTES, stream, label="x", must=True)
    s.cuda("cuMemcpyHtoDAsync", w, ctypes.addressof(host_w), W_BYTES, stream, label="w", must=True)
    one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
    convolution = (one, x_desc, x, w_desc, w, conv, IMPLICIT_GEMM, None, 0, zero, y_desc, y)
    before()
    s.cudnn("cudnnConvolutionForward", handle, *convolution, label="convolution", must=True)
    s.cuda("cuMemcpyDtoHAsync", ctypes.addressof(host_y), y, Y_BYTES, stream, must=True)
    s.cuda("cuStreamSynchronize", stream, must=True)

    right = expected_values()
    wrong = [i for i, (got, want) in enumerate(zip(host_y, right, strict=True)) if got != want]
    first = f"y[{wrong[0]}] is {host_y[wrong[0]]}, not {right[wrong[0]]}" if wrong else ""
    s.wire.note("wrong values", len(wrong), first, label="wrong values")
    for memory in (x, w, y):
        s.cuda("cuMemFree", memory)
    for name, descriptor in (("Tensor", x_desc), ("Tensor", y_desc), ("Filter", w_desc), ("Convolution", conv)):
        s.cudnn(f"cudnnDestroy{name}Descriptor", descriptor)
