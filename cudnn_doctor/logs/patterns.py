"""The authored YAML of explain in one JSON file, so that a ticket needs no YAML reader.

`knowledge/explain.json` is made when the package is built (.ci/build_hook.py) and never committed. It tells which YAML
it was made of; where that has changed since, as in a checkout at work, or where there is no such file, the YAML itself
is compiled.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from cudnn_doctor.logs.signatures import Signature, form
from cudnn_doctor.model.explanation import Role

if TYPE_CHECKING:
    from cudnn_doctor.matrix.tables import Matrix

# Strings, no pathlib: its import takes longer than reading the file.
PACKAGE = os.path.dirname(os.path.dirname(__file__))
FILE = os.path.join(PACKAGE, "knowledge", "explain.json")
SOURCES = (
    *("signatures", "statements", "causes", "facts", "ranking", "questions", "status"),
    *("circumstances", "experiments"),
)


class Name(msgspec.Struct, frozen=True, kw_only=True):
    """How texts write a framework or a system: a regular expression, and letters of which some must occur."""

    words: str
    stems: list[str]


class FrameworkName(Name, frozen=True, kw_only=True):
    """See facts.yaml."""

    name: str
    signs: list[str]
    special: bool
    beside: list[str] = []


class GpuName(Name, frozen=True, kw_only=True):
    """A row of the matrix's table gpu_names, and the GPUs before cuDNN."""

    cc: str


class Names(msgspec.Struct, frozen=True):
    frameworks: list[FrameworkName]
    systems: list[Name]


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """For whom a fix or an experiment is: the `for` of causes.yaml and experiments.yaml, see `diagnose.conditions`."""

    framework: list[str] = []
    os: list[str] = []
    not_os: list[str] = []
    manager: list[str] = []
    not_manager: list[str] = []
    when: list[str] = []
    unless: list[str] = []
    below: str = ""
    since: str = msgspec.field(default="", name="from")


class CauseFix(msgspec.Struct, frozen=True, kw_only=True):
    """A fix with its conditions."""

    text: str
    command: str = ""
    verify: str = ""
    condition: Condition = msgspec.field(default=Condition(), name="for")


class KnownCause(msgspec.Struct, frozen=True, kw_only=True):
    """See causes.yaml."""

    id: str
    title: str
    role: Role
    kin: list[str]
    asks: list[str]
    avoid: str
    fixes: list[CauseFix]


class Circumstance(msgspec.Struct, frozen=True, kw_only=True):
    """See circumstances.yaml."""

    id: str
    words: list[str]
    pattern: str = ""


class ExperimentForm(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    outcome: str
    command: str = ""
    condition: Condition = msgspec.field(default=Condition(), name="for")


class KnownExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """See experiments.yaml."""

    id: str
    rank: float
    decides: list[str]
    forms: list[ExperimentForm]
    when: list[str] = []
    unless: list[str] = []
    verdicts: tuple[str, ...] = ("cause-found", "undetermined")


class KnownQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """See questions.yaml."""

    id: str
    rank: int
    ask: str
    decides: list[str]


class PointRule(msgspec.Struct, frozen=True, kw_only=True):
    """See ranking.yaml."""

    cause: str
    points: int
    because: str
    when: list[str] = []
    either: list[str] = msgspec.field(default_factory=list, name="any")
    unless: list[str] = []
    decisive: bool = False
    role: Role | None = None


class PointRules(msgspec.Struct, frozen=True, kw_only=True):
    found: int
    margin: int
    confirmed: int
    rules: list[PointRule]


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """All that explaining a text needs."""

    made_of: int
    signatures: list[Signature]
    statements: list[Signature]
    names: Names
    gpu_names: list[GpuName]
    old_wheels: dict[str, dict[str, list[str]]]
    statuses: dict[str, str]  # number -> observation ("7" -> "mapping-error"); "3..." -> that of the category
    ranking: PointRules
    causes: dict[str, KnownCause]
    questions: list[KnownQuestion]
    circumstances: list[Circumstance]
    experiments: list[KnownExperiment]

    @property
    def matrix(self) -> Matrix:
        """The compatibility matrix, read on first use."""
        from cudnn_doctor.matrix.load import load_matrix

        return load_matrix()


@cache
def load() -> Knowledge:
    """What is in explain.json, or else in the YAML."""
    return stored() or msgspec.json.decode(compile_all(), type=Knowledge)


class _Head(msgspec.Struct):
    made_of: int


def stored() -> Knowledge | None:
    """The content of explain.json, where there is one that was made of today's YAML."""
    try:
        with open(FILE, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    current = msgspec.json.decode(data, type=_Head).made_of == _sum()
    return msgspec.json.decode(data, type=Knowledge) if current else None


def write() -> None:
    """Makes explain.json; for the build of the package."""
    with open(FILE, "wb") as file:
        file.write(compile_all())


def _sum() -> int:
    """A checksum of the YAML and of this compiler."""
    from zlib import crc32

    matrix = os.path.join(PACKAGE, "compat_matrix.yaml")
    if not os.path.exists(matrix):  # a checkout has it at the top
        matrix = os.path.join(os.path.dirname(PACKAGE), "compat_matrix.yaml")
    total = 0
    for path in (*(os.path.join(PACKAGE, "knowledge", f"{name}.yaml") for name in SOURCES), matrix, __file__):
        with open(path, "rb") as file:
            total = crc32(file.read(), total)
    return total


def compile_all() -> bytes:
    """The content of explain.json, from the YAML."""
    from cudnn_doctor.knowledge.load import knowledge
    from cudnn_doctor.matrix.load import load_matrix

    facts = knowledge("facts")
    names = [(r.cc, r.regex) for r in load_matrix().gpu_names] + [("2.0", facts["before_cudnn"])]
    return msgspec.json.encode(
        {
            "made_of": _sum(),
            "signatures": [_signature(s) for s in knowledge("signatures")],
            "statements": [_signature({**s, "kind": "says"}) for s in knowledge("statements")],
            "names": {
                "frameworks": [{**f, "stems": stems(f["words"])} for f in facts["frameworks"]],
                "systems": [{"words": s, "stems": stems(s)} for s in facts["systems"]],
            },
            "gpu_names": [{"cc": cc, "words": regex, "stems": stems(regex)} for cc, regex in names],
            "old_wheels": facts["old_wheels"],
            "statuses": _statuses(),
            "ranking": knowledge("ranking"),
            "causes": {c["id"]: c for c in knowledge("causes")},
            "questions": knowledge("questions"),
            "circumstances": knowledge("circumstances"),
            "experiments": knowledge("experiments"),
        }
    )


_SUSPECTED = frozenset({"memory", "driver", "arch"})  # kinds that people name by suspicion
# What makes a status of cuDNN 9 more than its category, in its name.
_TELLING = (
    ("STREAM_MISMATCH", "stream-mismatch"),
    ("ARCH_MISMATCH", "arch-mismatch"),
    ("VERSION_MISMATCH", "version-mismatch"),
    ("ALLOCATION_FAILED", "alloc-failed"),
)


def _statuses() -> dict[str, str]:
    from cudnn_doctor.knowledge.load import knowledge

    table = knowledge("status")
    old = {s["code"]: s["name"] for s in table["cudnn_8"]}
    new = {s["code"]: s["name"] for s in table["cudnn_9"]}
    categories = {thousand: new.get(thousand) or new[thousand + 1] for thousand in table["categories"] if thousand}
    found = {str(code): _plain(name) for code, name in old.items() if code}
    found |= {f"{thousand // 1000}...": _plain(name) for thousand, name in categories.items()}
    for code, name in new.items():
        if told := next((word for sign, word in _TELLING if sign in name), ""):
            found[str(code)] = told
    return found


def _plain(name: str) -> str:
    return name.removeprefix("CUDNN_STATUS_").lower().replace("_", "-")


def _signature(entry: dict[str, Any]) -> Signature:
    return Signature(
        id=entry["id"],
        kind=entry["kind"],
        anchors=entry["anchor"],
        form=form(entry["pattern"]),
        pattern=entry["pattern"],
        framework=entry.get("framework", ""),
        call=entry.get("call", ""),
        suspected=entry.get("hearsay", entry["kind"] in _SUSPECTED or entry.get("success", False)),
        also=entry.get("also", []),
        success=entry.get("success", False),
    )


def _needed(regex: str, begun: str = "") -> str:
    """The expression without lookarounds, optional groups and the brackets of the other ones. Groups after a word of
    the same alternative (`begun` before the expression) go as well: the word is enough."""
    at = regex.find("(") if "\\(" not in regex else re.sub(r"\\.", "__", regex).find("(")
    if at < 0:
        return regex
    depth, end = 0, at
    for end in range(at, len(regex)):
        if regex[end - 1] != "\\":
            depth += (regex[end] == "(") - (regex[end] == ")")
        if not depth:
            break
    inside, rest, before = regex[at + 1 : end], regex[end + 1 :], regex[:at]
    begun = before.rsplit("|", 1)[1] if "|" in before else begun + before
    optional = inside[1:2] in "!=<" or rest[:1] in ("?", "*")
    dropped = optional or re.search(r"(?<![A-Za-z])[a-z]{3}", begun) is not None
    kept = "\0" if dropped else _needed(inside.removeprefix("?:"))
    return f"{before}{kept}{_needed(rest[1:] if rest[:1] == '?' else rest, begun)}"


def stems(words: str) -> list[str]:
    """Letters of which one must occur where the expression matches: the longest run of each alternative, without what
    is optional."""
    plain = re.sub(r"(?:\\.|\[[^]]*\]|[\w ])(?:[?*]|\{0[^}]*\})|\{[^}]*\}|\\[a-zA-Z]|\[[^]]*\]", "\0", _needed(words))
    plain = plain.replace("\\.", ".").lower()
    runs = ([run.strip() for run in re.findall(r"[a-z0-9. \u0080-\uffff]+", part)] for part in plain.split("|"))
    return list(dict.fromkeys(max(alternative, key=len) for alternative in runs if alternative))
