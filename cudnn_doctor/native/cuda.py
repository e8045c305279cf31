"""The CUDA driver: cuda.bindings.driver for the work, plain ctypes for the two questions that must always be answered.

cuda.bindings 12.8 to 13 are served; where a signature differs between them the helper here knows both. Loaded in child
processes alone.
"""

from __future__ import annotations

import ctypes
from typing import Any

LIBCUDA = "libcuda.so.1"


class Libcuda:
    """libcuda by ctypes: works with every driver that has `cuInit`, whatever cuda.bindings thinks of it.

    Raises:
        OSError: libcuda cannot be loaded; the text is the loader's own.
    """

    def __init__(self, path: str = LIBCUDA) -> None:
        self._library = ctypes.CDLL(path)

    def init(self) -> int:
        """`cuInit(0)`'s status."""
        return int(self._library.cuInit(0))

    def driver_version(self) -> tuple[int, int]:
        """Status and number of `cuDriverGetVersion` (13000 is CUDA 13.0); it answers without `cuInit`."""
        version = ctypes.c_int()
        return int(self._library.cuDriverGetVersion(ctypes.byref(version))), version.value

    def decode(self, status: int) -> tuple[str, str]:
        """Name and text of a CUresult by the driver itself; empty where it does not know the number."""
        return self._text("cuGetErrorName", status), self._text("cuGetErrorString", status) if status else ""

    def _text(self, function: str, status: int) -> str:
        try:
            call = getattr(self._library, function)
        except AttributeError:
            return ""
        text = ctypes.c_char_p()
        call(status, ctypes.byref(text))
        return (text.value or b"").decode("utf-8", "replace")


class Bindings:
    """cuda.bindings.driver with its differences between 12.8 and 13 evened out.

    Attributes are the module's own; calls return `(CUresult, value...)`.

    Raises:
        ImportError: cuda.bindings is not there or does not fit this interpreter.
    """

    def __init__(self) -> None:
        from cuda.bindings import __version__, driver

        self.driver: Any = driver
        self.version = str(__version__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def decode(self, status: int) -> tuple[str, str]:
        """The name of a CUresult; empty for a number that these bindings do not know."""
        try:
            return self.driver.CUresult(status).name, ""
        except ValueError:
            return "", ""

    def create_context(self, device: Any, flags: int = 0) -> tuple[Any, ...]:
        """`cuCtxCreate`: its first parameter is new in the bindings for CUDA 13, and so is the driver function behind
        it; every driver has the old one."""
        try:
            if int(self.version.split(".", 1)[0]) >= 13:
                return tuple(self.driver.cuCtxCreate(None, flags, device))
            return tuple(self.driver.cuCtxCreate(flags, device))
        except RuntimeError:  # the driver is older than the bindings and lacks the function
            context = ctypes.c_void_p()
            status = int(ctypes.CDLL(LIBCUDA).cuCtxCreate_v2(ctypes.byref(context), flags, int(device)))
            return status, self.driver.CUcontext(context.value or 0)
