"""One NVML session for all probes: nothing raises, nothing hangs, every failure is an `Absent` with NVML's own name.

NVML is the driver's management library (libnvidia-ml.so.1); it creates no CUDA context and loads neither libcuda nor
cuDNN. Bindings are nvidia-ml-py (module pynvml), 12.535 or newer: no attribute of the module is taken for granted, and
a driver older than the bindings answers FUNCTION_NOT_FOUND.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from cudnn_doctor.model import Absent, AbsentReason, Known, NvmlStatus, known
from cudnn_doctor.probe.roots import ROOT, absent, clean, on_linux

T = TypeVar("T")

SONAME = "libnvidia-ml.so.1"
_LIBRARY_NOT_FOUND = 12

# nvmlReturn_t of nvml.h, "NVML_ERROR_" left out; 0 is NVML_SUCCESS.
ERRORS: dict[int, str] = {
    1: "UNINITIALIZED",
    2: "INVALID_ARGUMENT",
    3: "NOT_SUPPORTED",
    4: "NO_PERMISSION",
    5: "ALREADY_INITIALIZED",
    6: "NOT_FOUND",
    7: "INSUFFICIENT_SIZE",
    8: "INSUFFICIENT_POWER",
    9: "DRIVER_NOT_LOADED",
    10: "TIMEOUT",
    11: "IRQ_ISSUE",
    12: "LIBRARY_NOT_FOUND",
    13: "FUNCTION_NOT_FOUND",
    14: "CORRUPTED_INFOROM",
    15: "GPU_IS_LOST",
    16: "RESET_REQUIRED",
    17: "OPERATING_SYSTEM",
    18: "LIB_RM_VERSION_MISMATCH",
    19: "IN_USE",
    20: "MEMORY",
    21: "NO_DATA",
    22: "VGPU_ECC_NOT_SUPPORTED",
    23: "INSUFFICIENT_RESOURCES",
    24: "FREQ_NOT_SUPPORTED",
    25: "ARGUMENT_VERSION_MISMATCH",
    26: "DEPRECATED",
    27: "NOT_READY",
    28: "GPU_NOT_FOUND",
    29: "INVALID_STATE",
    30: "RESET_TYPE_NOT_SUPPORTED",
    999: "UNKNOWN",
}
_REASONS: dict[int, AbsentReason] = {
    3: "not-supported",
    4: "no-permission",
    6: "not-found",
    10: "timeout",
    13: "not-supported",
    25: "not-supported",
    26: "not-supported",
}


def error_name(code: int) -> str:
    """ "NVML_ERROR_LIB_RM_VERSION_MISMATCH" of 18; a code newer than the table keeps its number."""
    return "NVML_SUCCESS" if code == 0 else f"NVML_ERROR_{ERRORS[code]}" if code in ERRORS else f"NVML_ERROR_{code}"


def absent_code(call: str, code: int) -> Absent:
    """What a status of an NVML call means for the fact that it should have given."""
    return Absent(reason=_REASONS.get(code, "error"), detail=f"{call}: {error_name(code)} ({code})")


class NvmlSession:
    """An initialised NVML, or the reason why there is none. Use as a context manager; open it once.

    Attributes:
        status: what nvmlInit answered; absent where no library is on the loader's path, so that nothing was asked.
        library: path of the library, "" where there is none or the platform does not tell.
    """

    def __init__(
        self,
        root: Path = ROOT,
        environ: Mapping[str, str] | None = None,
        *,
        module: Any = None,
        timeout_s: float = 10.0,
    ) -> None:
        """Finds the library, imports pynvml only if it is there, and initialises it.

        Args:
            module: stands in for pynvml; then no library is looked for.
            timeout_s: the longest that initialising, or one later `bounded` call, may take. Without persistence mode a
                driver may spend a second or two on each GPU here.
        """
        self.library = ""
        self._timeout_s = timeout_s
        self._stuck = False
        self._module = module
        self.status = self._open(root, os.environ if environ is None else environ)

    def _open(self, root: Path, environ: Mapping[str, str]) -> Known[NvmlStatus] | Absent:
        if self._module is None:
            place = _find_library(root, environ)
            if isinstance(place, Absent):
                return place
            self.library = place
            try:
                self._module = _import_bindings()
            except Exception as error:
                return absent(error)
        return self.bounded(lambda: _initialise(self._module, self.library), "nvmlInit")

    @property
    def ready(self) -> bool:
        return isinstance(self.status, Known) and self.status.value.code == 0 and not self._stuck

    @property
    def why_not(self) -> Absent:
        """The reason that all facts of a session that is not ready share."""
        if isinstance(self.status, Absent):
            return self.status
        if self._stuck:
            return Absent(reason="timeout", detail="an earlier NVML call did not return")
        return absent_code("nvmlInit", self.status.value.code)

    def constant(self, name: str) -> int | None:
        """A constant of the bindings, None where they are too old to have it."""
        value = getattr(self._module, name, None)
        return value if isinstance(value, int) else None

    def call(self, name: str, *args: Any) -> Known[Any] | Absent:
        """One NVML function's answer; the fact's source is the function."""
        if not self.ready:
            return self.why_not
        return self.call_uninitialised(name, *args)

    def call_uninitialised(self, name: str, *args: Any) -> Known[Any] | Absent:
        """As `call`, for the few functions that need no nvmlInit."""
        if self._module is None:
            return self.why_not
        function = getattr(self._module, name, None)
        if function is None:
            return Absent(reason="not-supported", detail=f"the installed nvidia-ml-py has no {name}")
        try:
            return known(function(*args), name)
        except Exception as error:
            code = _code(error)
            return absent(error) if code is None else absent_code(name, code)

    def call_text(self, name: str, *, initialised: bool = True) -> Known[str] | Absent:
        """A string about the whole system, within the time limit."""
        call = self.call if initialised else self.call_uninitialised
        answer = self.bounded(lambda: call(name), name)
        return answer if isinstance(answer, Absent) else known(text(answer.value), answer.source)

    def bounded(self, answer: Callable[[], T], what: str) -> T | Absent:
        """The answer, if it comes in time. After one call that hangs the session answers nothing more."""
        if self._stuck:
            return self.why_not
        results = _within(answer, self._timeout_s)
        if not results:
            self._stuck = True
            return Absent(reason="timeout", detail=f"{what} did not return within {self._timeout_s:g} s")
        return results[0]

    def close(self) -> None:
        """Shuts NVML down; a stuck one is left alone, because the call would wait for the same lock."""
        if self.ready:
            self.bounded(lambda: self.call("nvmlShutdown"), "nvmlShutdown")
            self.status = Absent(reason="not-examined", detail="the NVML session is closed")

    def __enter__(self) -> NvmlSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def text(value: Any) -> str:
    """A string of the driver; some bindings give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else clean(str(value))


def _find_library(root: Path, environ: Mapping[str, str]) -> str | Absent:
    if on_linux():
        from cudnn_doctor.probe.onpath import find_on_path

        copies = find_on_path(SONAME, root, environ)
        if copies:
            return copies[0].path
        where = "LD_LIBRARY_PATH, ld.so.cache and the default folders"
        return Absent(reason="not-found", detail=f"no {SONAME} in {where}")
    if sys.platform == "win32":
        places = (
            os.path.join(environ.get("WINDIR", "C:/Windows"), "System32", "nvml.dll"),
            os.path.join(environ.get("ProgramFiles", "C:/Program Files"), "NVIDIA Corporation", "NVSMI", "nvml.dll"),
        )
        found = [p for p in places if os.path.exists(p)]
        return found[0] if found else Absent(reason="not-found", detail=f"no nvml.dll: {' or '.join(places)}")
    return Absent(reason="not-supported", detail=f"NVML does not exist on {sys.platform}")


def _import_bindings() -> Any:
    import pynvml  # 33 ms: only where there is a library to talk to

    return pynvml


def _initialise(module: Any, library: str) -> Known[NvmlStatus] | Absent:
    source = f"nvmlInit of {library}" if library else "nvmlInit"
    try:
        module.nvmlInit()
    except Exception as error:
        code = _code(error)
        if code is None:
            return absent(error)
        message = _message(error)
        if code == _LIBRARY_NOT_FOUND and library:
            message = f"{message}: {library} is there, but the loader refused it"
        return known(NvmlStatus(code=code, name=error_name(code), message=message), source)
    return known(NvmlStatus(code=0, name="NVML_SUCCESS"), source)


def _code(error: Exception) -> int | None:
    # Newer bindings wrap FUNCTION_NOT_FOUND of an unversioned name in an NVMLLibraryMismatchError without a status.
    values = [getattr(e, "value", None) for e in (error, error.__context__)]
    return next((value for value in values if isinstance(value, int)), None)


def _message(error: Exception) -> str:
    try:
        return clean(str(error))
    except Exception:  # NVMLError.__str__ asks the library, which may be the one that failed
        return ""


def _within(answer: Callable[[], T], seconds: float) -> list[T | Absent]:
    """The answer, nothing if it does not come in time. In a daemon thread, because a call into a driver that hangs
    cannot be interrupted."""
    import threading

    results: list[T | Absent] = []

    def work() -> None:
        try:
            results.append(answer())
        except Exception as error:
            results.append(absent(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return results
