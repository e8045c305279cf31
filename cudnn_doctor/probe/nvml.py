"""NVML by its Python bindings: nothing raises, every failure is an `Absent` with NVML's own name.

For a child process only. NVML is the driver's management library (libnvidia-ml.so.1) and makes no CUDA context, but its
nvmlInit opens libcuda.so.1 (seen in the memory map under driver 580.159.04).

Bindings are nvidia-ml-py (module pynvml), 12.535 or newer: no attribute of the module is taken for granted, and a
driver older than the bindings answers FUNCTION_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cudnn_doctor.model.base import Absent, AbsentReason, Known, known
from cudnn_doctor.model.facts import NvmlStatus
from cudnn_doctor.probe.root_files import absent, clean

T = TypeVar("T")

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


class Nvml:
    """An initialised NVML, or the reason why there is none. Never raises; a crash or a hang is the parent's to see.

    Attributes:
        status: what nvmlInit answered; absent where the bindings could not ask.
    """

    def __init__(self, module: Any = None, library: str = "") -> None:
        """Imports pynvml, unless `module` stands in for it, and initialises it. `library` is where the loader finds it,
        for messages."""
        self._module = module
        self.status = self._initialise(library)

    def _initialise(self, library: str) -> Known[NvmlStatus] | Absent:
        try:
            if self._module is None:
                import pynvml

                self._module = pynvml
            self._module.nvmlInit()
        except Exception as error:
            code = _code(error)
            if code is None:
                return absent(error)
            refused = (
                f": {library} is there, but the loader refused it" if code == _LIBRARY_NOT_FOUND and library else ""
            )
            status = NvmlStatus(code=code, name=error_name(code), message=_message(error) + refused)
        else:
            status = NvmlStatus(code=0, name="NVML_SUCCESS")
        return known(status, f"nvmlInit of {library}" if library else "nvmlInit")

    @property
    def ready(self) -> bool:
        return isinstance(self.status, Known) and self.status.value.code == 0

    @property
    def why_not(self) -> Absent:
        """The reason that all facts share where NVML is not ready."""
        return self.status if isinstance(self.status, Absent) else absent_code("nvmlInit", self.status.value.code)

    def constant(self, name: str) -> int | None:
        """A constant of the bindings, None where they are too old to have it."""
        value = getattr(self._module, name, None)
        return value if isinstance(value, int) else None

    def call(self, name: str, *args: Any) -> Known[Any] | Absent:
        """One NVML function's answer; the fact's source is the function."""
        return self._ask(name, *args) if self.ready else self.why_not

    def release(self) -> Known[str] | Absent:
        """The driver's release; where NVML did not start, that of its library, with which the kernel module has to be
        compared then."""
        if self.ready:
            return convert(self.call("nvmlSystemGetDriverVersion"), text)
        asked = convert(self._ask("nvmlSystemGetNVMLVersion"), text)  # needs no nvmlInit
        # "13.580.159.04": the CUDA major, then the release.
        return known(asked.value.partition(".")[2], asked.source) if isinstance(asked, Known) else self.why_not

    def close(self) -> None:
        if self.ready:
            self.call("nvmlShutdown")

    def _ask(self, name: str, *args: Any) -> Known[Any] | Absent:
        function = getattr(self._module, name, None)
        if function is None:
            return Absent(reason="not-supported", detail=f"the installed nvidia-ml-py has no {name}")
        try:
            return known(function(*args), name)
        except Exception as error:
            code = _code(error)
            return absent(error) if code is None else absent_code(name, code)


def convert(fact: Known[Any] | Absent, change: Callable[[Any], T]) -> Known[T] | Absent:
    """The fact with its value changed; a value that does not fit makes it absent."""
    if isinstance(fact, Absent):
        return fact
    try:
        return known(change(fact.value), fact.source)
    except Exception as error:
        why = absent(error)
        return Absent(reason=why.reason, detail=f"{fact.source}: answer not understood: {why.detail}")


def text(value: Any) -> str:
    """A string of the driver; some bindings give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else clean(str(value))


def _code(error: Exception) -> int | None:
    # Newer bindings wrap FUNCTION_NOT_FOUND of an unversioned name in an NVMLLibraryMismatchError without a status.
    values = [getattr(e, "value", None) for e in (error, error.__context__)]
    return next((value for value in values if isinstance(value, int)), None)


def _message(error: Exception) -> str:
    try:
        return clean(str(error))
    except Exception:  # NVMLError.__str__ asks the library, which may be the one that failed
        return ""
