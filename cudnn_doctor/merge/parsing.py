"""One report as bytes -> what is compared of it.

Sections stay raw JSON until it is known that they are new: on a fleet nearly all nodes have the same packages, copies
and libraries byte for byte, so most of a report is hashed and never decoded. What is decoded is checked by the types of
the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple, Union

import msgspec
from msgspec import Raw

from cudnn_doctor.merge import canonical as c
from cudnn_doctor.merge.canonical import NODE, Canonical
from cudnn_doctor.model import facts as f
from cudnn_doctor.model.base import Absent, Fact, Known
from cudnn_doctor.model.report import Finding, Owner, Report, Severity, SnapshotFile, Status, Verdict
from cudnn_doctor.recordings import utf8

Judge = Callable[[SnapshotFile], Report]
REPORT, SNAPSHOT = "cudnn-doctor/report/1", "cudnn-doctor/snapshot/1"
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NAME_MAX = 255  # characters of a node's name


class NotAReportError(ValueError):
    """What came is no report; the message says what it is."""


class _Head(msgspec.Struct):
    schema: str = ""
    node: str = ""


class _Tool(msgspec.Struct):
    version: str = ""


class Found(msgspec.Struct):
    """The part of a finding that is compared and counted."""

    code: str
    status: Status
    severity: Severity
    owner: Owner
    subject: str
    title: str


class _Snapshot(msgspec.Struct):
    taken_at: str
    patient: Raw
    host: Raw
    driver: Raw
    gpus: Raw
    cudnn: Raw
    resolutions: Raw
    cuda: Raw
    packages: Raw
    overwrites: Raw
    frameworks: Raw


class _Report(msgspec.Struct):
    schema: str
    tool: _Tool
    verdict: Verdict
    reason: str
    findings: tuple[Found, ...]
    snapshot: _Snapshot
    fail_on: Severity = "error"
    node: str = ""


class _Cards(msgspec.Struct):
    uuid: Fact[str]


Gpus = Fact[tuple[f.Gpu, ...]]
Packages = Fact[tuple[f.Package, ...]]
Overwrites = tuple[f.Overwrite, ...]
Resolutions = tuple[f.Resolution, ...]


class Part(NamedTuple):
    """How a section is made of fields of the snapshot."""

    name: str
    title: str
    fields: tuple[tuple[str, Any], ...]  # name and type
    make: Callable[..., Canonical] = c.flat


PARTS: tuple[Part, ...] = (
    Part("driver", "Driver", (("driver", f.Driver),)),
    Part("gpus", "GPUs", (("gpus", Gpus), ("host", f.Host)), lambda g, h: c.gpus(g, h.environment)),
    Part("gpu-buses", "GPU buses", (("gpus", Gpus), ("driver", f.Driver), ("host", f.Host)),
         lambda g, d, h: c.layout(g, d, h.environment)),
    Part("cudnn", "cuDNN copies",
         (("cudnn", tuple[f.CudnnCopy, ...]), ("resolutions", Resolutions)), c.cudnn),
    Part("cuda", "CUDA libraries", (("cuda", f.Cuda), ("resolutions", Resolutions)), c.cuda),
    Part("frameworks", "Frameworks", (("frameworks", tuple[f.Framework, ...]),)),
    Part("packages", "Packages", (("packages", Packages), ("overwrites", Overwrites), ("patient", f.TargetEnv)),
         c.packages),
    Part("python", "Python environment", (("patient", f.TargetEnv),)),
    Part("system", "System", (("host", f.Host),)),
    Part("variables", "Variables", (("host", f.Host),), lambda h: c.variables(h.environment)),
    Part("limits", "Limits", (("host", f.Host),), lambda h: c.flat(h.limits)),
)  # fmt: skip
SECTIONS: tuple[tuple[str, str], ...] = (*((p.name, p.title) for p in PARTS), ("findings", "Findings"))
FIELDS = tuple(dict.fromkeys(name for part in PARTS for name, _ in part.fields))
_DECODERS = {p.name: tuple(msgspec.json.Decoder(kind) for _, kind in p.fields) for p in PARTS}
_REPORT = msgspec.json.Decoder(_Report)
_CARDS = msgspec.json.Decoder(Union[Known[tuple[_Cards, ...]], Absent])
_HEAD = msgspec.json.Decoder(_Head)


class Content(NamedTuple):
    """One section of one report, as it is and with the node's own name taken out."""

    digest: bytes  # of the raw JSON of its fields
    plain: Canonical | None  # None: this raw JSON was seen before
    nameless: Canonical | None = None  # None: the node's name is not in it


class Parsed(NamedTuple):
    """What is kept of one report until the picture is drawn."""

    node: str
    version: str
    verdict: Verdict
    reason: str
    taken_at: str
    fail_on: Severity
    findings: tuple[Found, ...]
    sections: tuple[Content, ...]  # in the order of SECTIONS
    cards: frozenset[str]  # UUIDs of its GPUs
    report: bytes  # UTF-8, judged
    mark: bytes  # a digest of what it says


def parse(data: bytes, node: str, seen: Callable[[int, bytes], bool], judge: Judge) -> Parsed:
    """Reads a report, or a snapshot that `judge` makes one of. `node` is its name where the report gives none. `seen`
    tells whether the section at this place with this digest of its raw JSON is known; it is not decoded again then.

    Raises:
        NotAReportError: with the reason, in words.
    """
    try:
        return _parse(utf8(data), node, seen, judge)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise NotAReportError(_why(data, e)) from e


def _parse(data: bytes, node: str, seen: Callable[[int, bytes], bool], judge: Judge) -> Parsed:
    head = _HEAD.decode(data)
    if head.schema == SNAPSHOT:
        data = msgspec.json.encode(judge(msgspec.json.decode(data, type=SnapshotFile)))
    elif head.schema != REPORT:
        what = f"its schema is {head.schema[:80]!r}" if head.schema else "it is JSON without a schema"
        raise NotAReportError(f"no report of cudnn-doctor: {what}; {REPORT} and {SNAPSHOT} are read")
    report = _REPORT.decode(data)
    node_name = (head.node or node)[:NAME_MAX]
    fields = {name: bytes(getattr(report.snapshot, name)) for name in FIELDS}
    digests = {name: sha256(raw).digest() for name, raw in fields.items()}
    sections = [_content(place, part, fields, digests, node_name, seen) for place, part in enumerate(PARTS)]
    findings = _findings(report.findings)
    sections.append(Content(b"", findings, without_name(findings, node_name)))
    return Parsed(
        node=node_name,
        version=report.tool.version,
        verdict=report.verdict,
        reason=report.reason,
        taken_at=report.snapshot.taken_at,
        fail_on=report.fail_on,
        findings=report.findings,
        sections=tuple(sections),
        cards=_cards(report.snapshot.gpus),
        report=data,
        mark=sha256(b"".join((*digests.values(), report.reason.encode()))).digest(),
    )


def _content(
    place: int,
    part: Part,
    fields: dict[str, bytes],
    digests: dict[str, bytes],
    node: str,
    seen: Callable[[int, bytes], bool],
) -> Content:
    digest = b"".join(digests[field] for field, _ in part.fields)
    raws = [fields[field] for field, _ in part.fields]
    short = node.partition(".")[0].encode()
    named = len(short) > 1 and any(short in raw for raw in raws)
    if not named and seen(place, digest):
        return Content(digest, None)
    made = part.make(*(d.decode(raw) for d, raw in zip(_DECODERS[part.name], raws, strict=True)))
    return Content(digest, made, without_name(made, node) if named else None)


def without_name(canonical: Canonical, name: str) -> Canonical | None:
    """The section with `<node>` for the node's own name, whole or before its first dot; None where it is not named.
    `HOSTNAME=n17` is the same on all nodes then."""
    short = name.partition(".")[0]
    if len(short) < 2 or not any(short in leaf or short in text for leaf, text in canonical.leaves.items()):
        return None
    leaves = {_nameless(leaf, name, short): _nameless(text, name, short) for leaf, text in canonical.leaves.items()}
    return canonical._replace(leaves=leaves) if leaves != canonical.leaves else None


def _nameless(text: str, *names: str) -> str:
    """Without a regular expression: compiling one for each of 10,000 nodes takes longer than all the rest."""
    for name in names:
        at = text.find(name)
        while at >= 0:
            end = at + len(name)
            whole = not text[at - 1 : at].isalnum() and not text[end : end + 1].isalnum()
            text = f"{text[:at]}{NODE}{text[end:]}" if whole else text
            at = text.find(name, at + len(NODE) if whole else at + 1)
    return text


def _cards(raw: Raw) -> frozenset[str]:
    gpus = _CARDS.decode(raw)
    cards = gpus.value if isinstance(gpus, Known) else ()
    return frozenset(g.uuid.value for g in cards if isinstance(g.uuid, Known))


def _findings(found: tuple[Found, ...]) -> Canonical:
    """Problems and what could not be judged. Numbers in a title may be a temperature or memory in use: they do not
    count here, the sections of facts compare them where they matter."""
    leaves: dict[str, str] = {}
    for finding in found:
        if finding.status in ("ok", "skipped"):
            continue
        what = finding.severity if finding.status == "problem" else finding.status
        leaves[f"{finding.code} {finding.subject}".rstrip()] = f"{what}: {without_numbers(finding.title)}"
    return Canonical(leaves)


def without_numbers(title: str) -> str:
    """The title with every number as `#`."""
    return NUMBER.sub("#", title)


class _Findings(msgspec.Struct):
    findings: tuple[Finding, ...]


def full_finding(report: bytes, found: Found) -> Finding:
    """The finding with its detail and fixes; without them where they do not fit the model."""
    try:
        everything = msgspec.json.decode(report, type=_Findings).findings
    except msgspec.ValidationError:
        everything = ()
    for finding in everything:
        if (finding.code, finding.subject, finding.title) == (found.code, found.subject, found.title):
            return finding
    return Finding(**msgspec.structs.asdict(found))


def _why(data: bytes, error: Exception) -> str:
    if not data.strip():
        return "it is empty"
    if isinstance(error, msgspec.ValidationError):
        return f"it does not fit the schema: {error}"
    if isinstance(error, msgspec.DecodeError) and "truncated" in str(error):
        return f"it ends early, after {len(data)} bytes"
    if isinstance(error, RecursionError):
        return "it is nested deeper than a report can be"
    return f"it is no JSON: {str(error)[:200]}"
