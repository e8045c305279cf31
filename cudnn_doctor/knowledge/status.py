"""What status numbers mean: cuDNN's by (major, code), CUDA's by code. Data in status.yaml, read on first use."""

from __future__ import annotations

from functools import cache
from typing import Any

from cudnn_doctor.model.base import Base

OLD_MAJORS = (5, 6, 7, 8)  # one table for all of them


class CudnnStatus(Base, frozen=True, kw_only=True):
    """A cudnnStatus_t value of one range of majors."""

    code: int
    name: str
    since: str
    meaning: str
    causes: tuple[str, ...] = ()  # ids of causes.yaml, most likely first
    majors: tuple[int, ...] = ()

    @property
    def category(self) -> str:
        """cuDNN 9's category of the code ("bad parameter"), "" for cuDNN up to 8, which has none."""
        categories: dict[int, str] = _data()["categories"]
        return categories[self.code // 1000 * 1000] if 9 in self.majors else ""


class CudaError(Base, frozen=True, kw_only=True):
    """A CUresult or, where the driver has no such number, a cudaError_t value."""

    code: int
    name: str
    meaning: str = ""
    sticky: str = ""  # "yes", "no", "set-up" (until the machine is changed), ...
    process_dead: bool = False  # cuda.h: the process must be ended
    xid: str = ""  # Xid numbers that the kernel log shows with it
    causes: tuple[str, ...] = ()


def cudnn_status(major: int, code: int) -> CudnnStatus | None:
    """The status with that number in that major; None where it has none (7 in cuDNN 9, 2007 in cuDNN 8)."""
    return _cudnn(9 if major >= 9 else 8).get(code)


def cudnn_statuses(code: int) -> tuple[CudnnStatus, ...]:
    """What the number means wherever it means anything: by cuDNN up to 8, then by 9."""
    return tuple(s for s in (cudnn_status(8, code), cudnn_status(9, code)) if s)


def cudnn_statuses_named(name: str) -> tuple[CudnnStatus, ...]:
    """Every status of that name, with or without CUDNN_STATUS_, whichever case. Old names that cuDNN 9's headers keep
    as aliases give the status that they compile to there."""
    full = name.upper() if name.upper().startswith("CUDNN_") else f"CUDNN_STATUS_{name.upper()}"
    found = [s for table in (8, 9) for s in _cudnn(table).values() if s.name == full]
    alias = _data()["aliases_9"].get(full)
    if alias is not None and alias in _cudnn(9):
        found.append(_cudnn(9)[alias])
    return tuple(found)


def category(major: int, code: int) -> str:
    """Category of a code, known or not: cuDNN 9 puts it into the thousands. "" before."""
    categories: dict[int, str] = _data()["categories"]
    return categories.get(code // 1000 * 1000, "") if major >= 9 else ""


def cuda_error(code: int) -> CudaError | None:
    """The CUDA error with that number."""
    return _cuda().get(code)


def cuda_error_named(name: str) -> CudaError | None:
    """The CUDA error of that name, whichever case."""
    return next((e for e in _cuda().values() if e.name.lower() == name.lower()), None)


def cuda_errors() -> tuple[CudaError, ...]:
    """All of the driver's errors."""
    return tuple(_cuda().values())


def names() -> tuple[str, ...]:
    """Every name of cuDNN and of the driver."""
    return (*(s.name for table in (8, 9) for s in _cudnn(table).values()), *(e.name for e in _cuda().values()))


def sources() -> dict[str, str]:
    """Where the tables come from."""
    found: dict[str, str] = _data()["source"]
    return found


def _data() -> dict[str, Any]:
    from cudnn_doctor.knowledge.load import knowledge

    data: dict[str, Any] = knowledge("status")
    return data


@cache
def _cudnn(table: int) -> dict[int, CudnnStatus]:
    import msgspec

    rows = msgspec.convert(_data()[f"cudnn_{table}"], list[CudnnStatus])
    majors = (9,) if table == 9 else OLD_MAJORS
    return {row.code: msgspec.structs.replace(row, majors=majors) for row in rows}


@cache
def _cuda() -> dict[int, CudaError]:
    import msgspec

    return {row.code: row for row in msgspec.convert(_data()["cuda"], list[CudaError])}
