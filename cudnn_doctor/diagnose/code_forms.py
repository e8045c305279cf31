"""A code as people type it: "7", "0x2bc", "-11", "CUDA error 35", "Xid 31", "exit code 137", "IllegalAddress"."""

from __future__ import annotations

import re

from cudnn_doctor.knowledge.code_tables import PREFIXES, words_of
from cudnn_doctor.model.base import Base

NUMBER = r"-?\d{1,6}|0x[0-9a-f]{1,8}"
# What may stand before a number, and the tables that it points to; "" = any.
BEFORE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(?:nvrm:? )?xid", ("xid",)),
    (r"(?:process )?(?:exit|exited|return|returned|rc)(?: with)?(?: code| status)?", ("exit", "signal")),
    (r"(?:killed by |got )?sig(?:nal)?", ("signal",)),
    (r"cuda(?: ?rt| runtime)? ?(?:api )?(?:error|err|code|status)?(?: code)?", ("cuda",)),
    (r"cudnn(?: status| error| code)*", ("cudnn",)),
    (r"cublas(?: ?lt)?(?: status| error| code)*", ("cublas",)),
    (r"cufft(?: status| error| code| result)*", ("cufft",)),
    (r"cusolver(?: status| error| code)*", ("cusolver",)),
    (r"cusparse(?: status| error| code)*", ("cusparse",)),
    (r"curand(?: status| error| code)*", ("curand",)),
    (r"nccl(?: status| error| code| result)*", ("nccl",)),
    (r"nvml(?: status| error| code)*", ("nvml",)),
    (r"(?:error|err|status|code|errno|error code|status code)", ()),
    ("", ()),
)
FULL_NAME = re.compile(
    r"(?:CUDNN_STATUS|CUDA_ERROR|CUBLAS_STATUS|CUFFT|CUSOLVER_STATUS|CUSPARSE_STATUS|CURAND_STATUS|NVML_ERROR|NVML|NCCL)"
    r"_\w+|cuda(?:Error|Success)\w*|CUDA_SUCCESS|nccl[A-Z]\w+|SIG[A-Z]{2,6}",
    re.IGNORECASE,
)
PARTIAL = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?:[A-Z][a-z]+){2,}\w*|[a-z]+(?:[A-Z][a-z]+)+\w*")


class Asked(Base, frozen=True, kw_only=True):
    """What was asked for: a number, in the tables that the words point to (all for none), or a name."""

    number: int | None = None
    tables: tuple[str, ...] = ()
    name: str = ""
    partial: bool = False  # a piece of a name: no code when no table has it


def read(text: str) -> Asked | None:
    """The code in a text, None for one that has the form of none."""
    plain = " ".join(re.sub(r"[:=#(){}\[\],]+", " ", text).split())
    for before, tables in BEFORE:
        found = re.fullmatch(rf"(?:{before}) ?({NUMBER})" if before else f"({NUMBER})", plain, re.IGNORECASE)
        if found and (before or re.fullmatch(r"-?\d{1,4}|0x[0-9a-f]{1,8}|10000", plain, re.IGNORECASE)):
            return Asked(number=int(found[1], 0) if "x" in found[1].lower() else int(found[1]), tables=tables)
    if FULL_NAME.fullmatch(plain):
        return Asked(name=plain)
    if PARTIAL.fullmatch(plain):
        return Asked(name=plain, partial=True)
    return None


def same_name(asked: str, name: str) -> bool:
    """Whether a typed name is that name, with or without its prefix, in any case."""
    lower = asked.lower()
    if lower == name.lower():
        return True
    known = any(lower.startswith(p.lower()) for p in PREFIXES if len(p) > len("cuda"))
    return not known and _letters(asked) == words_of(name).replace(" ", "")


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower()).removeprefix("error")
