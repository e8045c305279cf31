"""Documents of our own beside a text, each a source of facts, findings, or both.

A new kind of document is one entry of `_READERS`: a function from its bytes to a `Given`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from cudnn_doctor.diagnose.given import Given, GivenFinding
from cudnn_doctor.model.base import Base, decode
from cudnn_doctor.model.errors import InputError
from cudnn_doctor.model.facts import Snapshot


class _Finding(Base, frozen=True, kw_only=True):
    code: str = ""
    status: str = ""
    severity: Literal["error", "warning", "note"] = "error"
    title: str = ""
    causes: tuple[str, ...] = ()


class _Document(Base, frozen=True, kw_only=True):
    schema: str
    snapshot: Snapshot | None = None
    findings: tuple[_Finding, ...] = ()


def _report(data: bytes) -> Given:
    document = decode(data, _Document)
    found = (
        GivenFinding(code=f.code, status=f.status, severity=f.severity, title=f.title, causes=f.causes)
        for f in document.findings
    )
    return Given(snapshot=document.snapshot, findings=tuple(found))


_READERS: dict[str, Callable[[bytes], Given]] = {
    "cudnn-doctor/report/": _report,
    "cudnn-doctor/snapshot/": _report,
}


class _Head(msgspec.Struct):
    schema: str


def read(name: str, data: bytes) -> Given:
    """A document of cudnn-doctor.

    Raises:
        InputError: it says that it is ours and is not, or is of a kind that tells nothing of a machine.
    """
    try:
        schema = decode(data, _Head).schema
        reader = next((read for prefix, read in _READERS.items() if schema.startswith(prefix)), None)
        if reader is None:
            kinds = ", ".join(f"{prefix}N" for prefix in _READERS)
            raise InputError(f"{name} has schema {schema!r}; beside a log, explain reads {kinds}")
        return reader(data)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise InputError(f"{name} looks like a cudnn-doctor document and is not one: {e}") from None
