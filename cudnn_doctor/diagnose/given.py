"""What is given beside a text: documents of our own, each a source of facts, findings, or both.

A new kind of document is one entry of `_READERS`: a function from its bytes to a `Given`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cudnn_doctor.model.base import Base, decode
from cudnn_doctor.model.errors import InputError
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.report import Evidence, Severity

BLANK = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and white space
_OURS = 200  # bytes within which a document of cudnn-doctor names its schema


class GivenFinding(Base, frozen=True, kw_only=True):
    """What another run of cudnn-doctor found: as much of a `report.Finding` as counts here."""

    code: str = ""
    status: str = ""
    severity: Severity = "error"
    title: str = ""
    causes: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class Given(Base, frozen=True, kw_only=True):
    """Facts of the machine that wrote the text, and what was found on it."""

    snapshot: Snapshot | None = None
    findings: tuple[GivenFinding, ...] = ()

    def __or__(self, other: Given) -> Given:
        """Both together; of two snapshots the first."""
        return Given(snapshot=self.snapshot or other.snapshot, findings=(*self.findings, *other.findings))


class _Document(Base, frozen=True, kw_only=True):
    schema: str
    snapshot: Snapshot | None = None
    findings: tuple[GivenFinding, ...] = ()


def _report(data: bytes) -> Given:
    document = decode(data, _Document)
    return Given(snapshot=document.snapshot, findings=document.findings)


_READERS: dict[str, Callable[[bytes], Given]] = {
    "cudnn-doctor/report/": _report,
    "cudnn-doctor/snapshot/": _report,
}


def is_ours(data: bytes) -> bool:
    """Whether a source claims to be a document of cudnn-doctor."""
    return data.lstrip(BLANK)[:1] == b"{" and b'"cudnn-doctor/' in data[:_OURS]


class _Head(msgspec.Struct):
    schema: str


def read(name: str, data: bytes) -> Given:
    """A document of cudnn-doctor.

    Raises:
        InputError: it says that it is ours and is not, or is of a kind that tells nothing of a machine.
    """
    data = data.lstrip(BLANK)
    try:
        schema = decode(data, _Head).schema
        reader = next((read for prefix, read in _READERS.items() if schema.startswith(prefix)), None)
        if reader is None:
            kinds = ", ".join(f"{prefix}N" for prefix in _READERS)
            raise InputError(f"{name} has schema {schema!r}; beside a log, explain reads {kinds}")
        return reader(data)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise InputError(f"{name} looks like a cudnn-doctor document and is not one: {e}") from None
