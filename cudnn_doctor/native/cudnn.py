"""cuDNN by ctypes, 8 and 9: what the live check and the scenarios call, with argument types for every symbol.

Signatures: cudnn_ops_infer.h and cudnn_cnn_infer.h of 8.9.7, cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h of 9.1.0 and
9.27.0 (they agree). Standard library only; loaded in child processes alone.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

SUCCESS = 0
FLOAT, NCHW, CROSS_CORRELATION, IMPLICIT_GEMM = 0, 0, 1, 0  # cudnnDataType_t, cudnnTensorFormat_t, ... of both majors
OPERATION_GRAPH = 15  # CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR

# name: (result, arguments). cudnnStatus_t is an int; handles, descriptors, streams and device memory are pointers.
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "cudnnGetVersion": (c_size_t, ()),
    "cudnnGetCudartVersion": (c_size_t, ()),
    "cudnnGetMaxDeviceVersion": (c_size_t, ()),
    "cudnnGetErrorString": (c_char_p, (c_int,)),
    "cudnnGetLastErrorString": (None, (c_char_p, c_size_t)),
    "cudnnGetProperty": (c_int, (c_int, POINTER(c_int))),
    "cudnnCreate": (c_int, (POINTER(c_void_p),)),
    "cudnnDestroy": (c_int, (c_void_p,)),
    "cudnnSetStream": (c_int, (c_void_p, c_void_p)),
    "cudnnGetStream": (c_int, (c_void_p, POINTER(c_void_p))),
    "cudnnCreateTensorDescriptor": (c_int, (POINTER(c_void_p),)),
    "cudnnSetTensor4dDescriptor": (c_int, (c_void_p, c_int, c_int, c_int, c_int, c_int, c_int)),
    "cudnnDestroyTensorDescriptor": (c_int, (c_void_p,)),
    "cudnnCreateFilterDescriptor": (c_int, (POINTER(c_void_p),)),
    "cudnnSetFilter4dDescriptor": (c_int, (c_void_p, c_int, c_int, c_int, c_int, c_int, c_int)),
    "cudnnDestroyFilterDescriptor": (c_int, (c_void_p,)),
    "cudnnCreateConvolutionDescriptor": (c_int, (POINTER(c_void_p),)),
    "cudnnSetConvolution2dDescriptor": (
        c_int,
        (c_void_p, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int),
    ),
    "cudnnDestroyConvolutionDescriptor": (c_int, (c_void_p,)),
    "cudnnConvolutionForward": (
        c_int,
        # handle, alpha, x descriptor, x, w descriptor, w, convolution; algorithm, workspace, its size; beta, y's two
        (*(c_void_p,) * 7, c_int, c_void_p, c_size_t, *(c_void_p,) * 3),
    ),
    "cudnnBackendCreateDescriptor": (c_int, (c_int, POINTER(c_void_p))),
    "cudnnBackendFinalize": (c_int, (c_void_p,)),
    "cudnnBackendDestroyDescriptor": (c_int, (c_void_p,)),
}


def dotted(version: int) -> str:
    """`cudnnGetVersion`'s number as text: 8907 is 8.9.7, 91900 is 9.19.0 (cuDNN 9 multiplies the major by 10000)."""
    if version >= 90000:
        return f"{version // 10000}.{version // 100 % 100}.{version % 100}"
    return f"{version // 1000}.{version // 100 % 10}.{version % 100}"


def cuda_dotted(version: int) -> str:
    """CUDA's version number as text: 12090 is 12.9."""
    return f"{version // 1000}.{version % 1000 // 10}"


class Cudnn:
    """One loaded libcudnn. Methods named after the native functions return statuses as they are.

    Raises:
        OSError: the library or one that it needs cannot be loaded; the text is the loader's own.
        AttributeError: on use of a function that this version does not have.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)

    def __getattr__(self, name: str) -> Any:
        """The native function, typed."""
        if name not in SIGNATURES:
            raise AttributeError(name)
        function = getattr(self._library, name)
        function.restype, function.argtypes = SIGNATURES[name]
        setattr(self, name, function)
        return function

    def has(self, name: str) -> bool:
        """Whether this version exports `name`."""
        return hasattr(self, name)

    def decode(self, status: int) -> tuple[str, str]:
        """The status's name by this very library, and after a failure the reason that cuDNN 9 keeps."""
        name = (self.cudnnGetErrorString(status) or b"").decode("utf-8", "replace")
        return name, self.last_error() if status else ""

    def last_error(self) -> str:
        """`cudnnGetLastErrorString`: cuDNN 9 only, empty where the failing check left none."""
        if not self.has("cudnnGetLastErrorString"):
            return ""
        text = ctypes.create_string_buffer(2048)
        self.cudnnGetLastErrorString(text, len(text))
        return text.value.decode("utf-8", "replace")

    def create(self) -> tuple[int, int]:
        """Status and handle of `cudnnCreate`."""
        handle = c_void_p()
        return self.cudnnCreate(ctypes.byref(handle)), handle.value or 0

    def get_stream(self, handle: int) -> tuple[int, int]:
        """Status and stream of `cudnnGetStream`."""
        stream = c_void_p()
        return self.cudnnGetStream(handle, ctypes.byref(stream)), stream.value or 0

    def new(self, name: str) -> tuple[int, int]:
        """Status and descriptor of one of the `cudnnCreate...Descriptor` functions."""
        descriptor = c_void_p()
        return getattr(self, name)(ctypes.byref(descriptor)), descriptor.value or 0
