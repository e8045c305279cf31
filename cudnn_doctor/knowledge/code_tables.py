"""What the numbers and names of CUDA's other libraries mean: runtime of both eras, cuBLAS, cuFFT, cuSOLVER, cuSPARSE,
cuRAND, NCCL, NVML, Xids, signals and exit codes. Data in code_tables.yaml, code_meanings.yaml, xid_catalog.yaml and
exit_codes.yaml, read on first use.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.model.base import Base

PREFIXES = (
    *("CUDNN_STATUS_", "CUDA_ERROR_", "CUDA_", "cudaError", "cuda", "CUBLAS_STATUS_", "CUFFT_", "CUSOLVER_STATUS_"),
    *("CUSPARSE_STATUS_", "CURAND_STATUS_", "NVML_ERROR_", "NVML_", "nccl"),
)


class Code(Base, frozen=True, kw_only=True):
    """One code of one library."""

    family: str  # "cuda-runtime", "cublas", "xid", "signal", "exit"
    of: str  # "CUDA runtime up to 10.0"
    code: int
    name: str
    text: str
    do: str = ""
    causes: tuple[str, ...] = ()
    source: str = ""


def words_of(name: str) -> str:
    """ "cudaErrorIllegalAddress" and "CUDA_ERROR_ILLEGAL_ADDRESS" -> "illegal address"."""
    prefix = next((p for p in PREFIXES if name.startswith(p)), "")
    rest = name[len(prefix) :]
    if "_" in rest or rest.isupper():
        return rest.replace("_", " ").lower()
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", rest).lower()


def meaning_of(name: str) -> dict[str, Any]:
    """Text, causes and what to do, by the words in a name."""
    words = f" {words_of(name)} "
    found: dict[str, Any] = next(
        row
        for row in knowledge("code_meanings")["rows"]
        if "has" not in row or any(f" {h} " in words for h in row["has"])
    )
    return found


@cache
def codes() -> tuple[Code, ...]:
    """Every code of every table but cuDNN's and the driver's."""
    return (*_libraries(), *_xids(), *_ends())


def _libraries() -> list[Code]:
    found = []
    for family in knowledge("code_tables"):
        for line in family["codes"]:
            number, name = line.split()
            meaning = meaning_of(name)
            found.append(
                Code(
                    family=family["id"],
                    of=family["of"],
                    code=int(number),
                    name=name,
                    text=meaning["text"],
                    do=meaning.get("do", ""),
                    causes=tuple(meaning.get("causes", ())),
                    source=f"{family['source']}, read {family['checked_on']}",
                )
            )
    return found


def _xids() -> list[Code]:
    catalog, ours = knowledge("xid_catalog"), knowledge("xids")["xids"]
    found = []
    for line in catalog["xids"]:
        head, *rest = line.split(" | ")
        number, name = head.split()
        mine = ours.get(int(number), {})
        text = rest[0] if rest else "not used by current drivers"
        found.append(
            Code(
                family="xid",
                of="Xid in the kernel log",
                code=int(number),
                name=name,
                text=text[0].upper() + text[1:] + ".",
                do=mine.get("action") or (catalog["actions"][rest[1]] if rest[1:] else ""),
                causes=tuple(mine.get("causes", ())),
                source=f"{catalog['source']}, read {catalog['checked_on']}",
            )
        )
    return found


def _ends() -> list[Code]:
    data = knowledge("exit_codes")
    source = data["source"]
    found = []
    for row in data["signals"]:
        causes = tuple(row.get("causes", ()))
        common = {"name": row["name"], "text": row["text"], "do": row["do"], "causes": causes, "source": source}
        found.append(Code(family="signal", of="Signal", code=row["number"], **common))
        found.append(Code(family="exit", of="Exit code of a process", code=128 + row["number"], **common))
    return found + [
        Code(family="exit", of="Exit code of a process", name="exit", code=r["number"], text=r["text"], source=source)
        for r in data["exits"]
    ]
