"""libcuda by ctypes, as an extension of somebody else's in the same process would call it."""

from __future__ import annotations

import ctypes

cu = ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: object) -> None:
    """Calls a driver function; a status other than 0 is an exception."""
    status = getattr(cu, name)(*arguments)
    if status:
        raise OSError(f"{name}: {status}")


def make_context() -> ctypes.c_void_p:
    """A second context on device 0; it is current afterwards."""
    call("cuInit", 0)
    context = ctypes.c_void_p()
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    return context


def make_stream() -> ctypes.c_void_p:
    """A stream of the current context."""
    stream = ctypes.c_void_p()
    call("cuStreamCreate", ctypes.byref(stream), 1)
    return stream


def pop() -> None:
    """Makes the context before this one current again."""
    call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
