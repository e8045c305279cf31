"""What leaves this machine with a ticket says nothing of who uses it: a pass over values, never over keys.

The same thing gets the same placeholder everywhere (`<user-1>`, `<host-1>`, `~` for a home), so that "the same path" or
"the same host" can still be seen. GPU UUIDs keep their form and become hashes: the same card is known again in the next
ticket, and a snapshot judged after redaction gives the findings that it gave before. Words of the documents' own
vocabulary survive, whatever the user is called: a user named `cuda` is replaced where a user is meant (`/home/cuda`,
`cuda@host`), not in `/usr/local/cuda`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_origin

import msgspec

from cudnn_doctor.model.base import Base, Known
from cudnn_doctor.model.facts import Host
from cudnn_doctor.model.report import Evidence, Report
from cudnn_doctor.probe.environment import ALLOWED
from cudnn_doctor.redact import addresses, credentials, devices, environment, hosts, names, people, tokens
from cudnn_doctor.redact import patterns as p
from cudnn_doctor.redact.changes import PLACEHOLDER, Change, Written, changed_lines, outside
from cudnn_doctor.redact.search import Signed, fold
from cudnn_doctor.redact.spans import Kind, Span, apart

S = TypeVar("S", bound=msgspec.Struct)

# Fields whose strings are words of our own, not values of the machine.
OURS: dict[str, frozenset[str]] = {
    "Evidence": frozenset({"pointer"}),
    "Finding": frozenset({"code", "causes"}),
    "ScenarioResult": frozenset({"scenario"}),
    "Step": frozenset({"call", "name"}),
    "Tool": frozenset({"name", "version", "matrix_checked_on"}),
    "Cause": frozenset({"cause"}),  # of an explanation
    "Question": frozenset({"id", "decides"}),
}
REMOVED = "<removed>"
NAMES_MAX = 64  # of users and of hosts
PLACED = "d0c7"  # the last digits of a UUID that stands for another
LONG = 4096  # characters from which on a text's findings are kept between `learn` and `text`
# Colours and other commands to a terminal, and characters without width: a secret may have some in the middle.
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[PX^_][^\x1b]{0,512}\x1b\\"
    r"|[ -/]{0,8}[0-~])"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]|[\u200b\u200c\u200d\u2060\ufeff\u00ad]"
)
_OPTION = re.compile(r"--?[A-Za-z][\w-]{1,80}")
_ONE_WORD = re.compile(r"[A-Za-z_]{0,15}|\d{0,6}")


class Redaction(Base, frozen=True, kw_only=True):
    """One thing that was replaced, and how often. `original` of a secret is cut after four characters."""

    kind: Kind
    original: str
    replacement: str
    count: int


class Identity(Base, frozen=True, kw_only=True):
    """Names that belong to the person and machine at hand."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()


def this_machine(environ: Mapping[str, str] = os.environ) -> Identity:
    """Who runs this and where: environment, user database and host name. What cannot be read is left out."""
    import socket

    users = [environ.get(name, "") for name in p.USER_VARIABLES]
    homes = [environ.get("HOME", ""), environ.get("USERPROFILE", "")]
    hosts = [socket.gethostname(), *(environ.get(name, "") for name in p.HOST_VARIABLES)]
    try:
        import pwd

        entry = pwd.getpwuid(os.getuid())
    except (ImportError, KeyError):  # Windows; a container's user without an entry
        pass
    else:
        users += [entry.pw_name, entry.pw_gecos.split(",")[0]]
        homes.append(entry.pw_dir)
    hosts += [h.split(".")[0] for h in hosts]
    return Identity(users=_unique(users), hosts=_unique(hosts), homes=_unique(homes))


def redact(document: S, identity: Identity | None = None) -> tuple[S, tuple[Redaction, ...]]:
    """The document without what identifies anybody, and what was replaced. `identity` is this machine's where None."""
    redactor = Redactor(this_machine() if identity is None else identity)
    redactor.learn(document)
    return redactor.struct(document), redactor.redactions


def marked(report: Report, redactions: Iterable[Redaction] | None) -> Report:
    """The report with a remark on what the pass did; None says that the user declined it."""
    if redactions is None:
        note = "Not redacted (--no-redact): names, paths, addresses and serial numbers are as they are."
    else:
        kinds: dict[str, int] = {}
        for r in redactions:
            kinds[r.kind] = kinds.get(r.kind, 0) + 1
        what = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        note = f"Redacted: {what or 'nothing was found to replace'}. Placeholders stand for the same thing everywhere."
    return msgspec.structs.replace(report, notes=(*report.notes, note))


class Redactor:
    """Replaces in texts, trees and structs; one instance a set of documents, so that placeholders agree."""

    def __init__(self, identity: Identity) -> None:
        homes = sorted({h.rstrip("/\\") for h in identity.homes if _personal_home(h)}, key=len, reverse=True)
        self._homes = [Signed(rf"(?<![\w.~-]){re.escape(h)}(?![\w.-])", fold(h)) for h in homes]
        self._known: dict[Kind, dict[str, Signed]] = {"secret": {}, "host": {}, "user": {}}
        self._versions: set[str] = set()
        self._uuids: dict[str, int] = {}  # full UUIDs, and which one each is
        self._names: dict[tuple[Kind, str], str] = {}
        self._last: dict[Kind, int] = {}
        self._count: dict[tuple[Kind, str, str], int] = {}
        self._found: dict[str, tuple[Span, ...]] = {}
        self._written: list[Written] = []
        for user in identity.users:
            self._know("user", user)
        for host in identity.hosts:
            self._know("host", host)

    @property
    def redactions(self) -> tuple[Redaction, ...]:
        """Everything replaced so far, by kind."""
        found = [
            Redaction(kind=kind, original=original, replacement=new, count=n)
            for (kind, original, new), n in self._count.items()
        ]
        return tuple(sorted(found, key=lambda r: (r.kind, r.replacement)))

    def changes(self) -> Iterator[Change]:
        """Every changed line so far, each once."""
        seen = set()
        for text, places in self._written:
            for change in changed_lines(text, places):
                if change not in seen:
                    seen.add(change)
                    yield change

    def learn(self, node: Any) -> None:
        """Collects what texts elsewhere must be compared with: names of users and hosts, secrets, full UUIDs, and
        versions that look like addresses ("9.19.0.56")."""
        if isinstance(node, str):
            self._learn_text(node)
        elif isinstance(node, Mapping):
            for value in node.values():
                self.learn(value)
        elif isinstance(node, (list, tuple)):
            for value in node:
                self.learn(value)
        elif isinstance(node, msgspec.Struct):
            if isinstance(node, Known) and isinstance(node.value, str) and devices.QUAD.pattern.fullmatch(node.value):
                self._versions.add(node.value)  # no fact of a snapshot is an address
            for name in node.__struct_fields__:
                value = getattr(node, name)
                if name == "version" and isinstance(value, str):
                    self._versions.add(value)
                self.learn(value)

    def _learn_text(self, text: str) -> None:
        text = _plain(text)
        for span in self._spans(text):
            value = text[span.start : span.end]
            if span.learn and span.kind in ("user", "host"):
                self._know(span.kind, value)
            elif span.kind == "secret" and len(value) >= 8 and names.unlike_words(value) and "\n" not in value:
                self._know("secret", value)
            elif span.kind == "uuid" and len(value) >= 36:
                self._uuids.setdefault(value.lower(), len(self._uuids) + 1)
            elif span.kind == "address" and addresses.is_version(text, span.start, span.end):
                self._versions.add(value)

    def struct(self, node: S) -> S:
        """The same struct with its texts redacted; words of a fixed vocabulary stay."""
        kept = _vocabulary_fields(type(node)) | OURS.get(type(node).__name__, frozenset())
        changes: dict[str, Any] = {}
        for name in node.__struct_fields__:
            old = getattr(node, name)
            if name in kept:
                continue
            new = self._environment(old) if isinstance(node, Host) and name == "environment" else self.tree(old)
            if new is not old and new != old:
                changes[name] = new
        if isinstance(node, Evidence) and not self._may_be_quoted(node.pointer):
            changes["value"] = self._replaced("environment", node.value, REMOVED)
        return msgspec.structs.replace(node, **changes) if changes else node

    def tree(self, node: Any) -> Any:
        """Any value of a document: structs, JSON trees, texts, numbers."""
        if isinstance(node, str):
            return self.text(node)
        if isinstance(node, msgspec.Struct):
            return self.struct(node)
        if isinstance(node, Mapping):
            return {key: self._named(key, value) for key, value in node.items()}
        if isinstance(node, (tuple, list)):
            before = ("", *node)
            return type(node)(
                self._named(word, value) if isinstance(word, str) and _OPTION.fullmatch(word) else self.tree(value)
                for word, value in zip(before, node, strict=False)
            )
        return node

    def _named(self, name: object, value: Any) -> Any:
        """The value of a key, or of an option before it in a list of words: a text alone does not say what it is."""
        secret = isinstance(name, str) and isinstance(value, str) and names.strength(name) == "strong"
        if secret and value and not names.harmless(str(name), value) and not PLACEHOLDER.fullmatch(value):
            return self._replaced("secret", f"{value[:4]}... ({len(value)} characters)", "<secret>")
        return self.tree(value)

    def text(self, text: str) -> str:
        """One text or a whole log."""
        if len(text) < 3:
            return text
        text = _plain(text)
        places = []
        for span in apart(outside(text, [*self._spans(text), *self._known_names(text)])):
            old = text[span.start : span.end]
            new = self._replacement(text, span)
            if new != old:
                places.append((span.start, span.end, new, span.sure))
        if not places:
            return text
        self._written.append(Written(text, tuple(places)))
        parts, done = [], 0
        for start, end, new, _ in places:
            parts += [text[done:start], new]
            done = end
        return "".join(parts) + text[done:]

    # ------------------------------------------------------------ finding

    def _spans(self, text: str) -> Sequence[Span]:
        """What the detectors find; kept for a long text, which is learned first and then written."""
        if len(text) < LONG:
            return _detected(text)
        if text not in self._found:
            self._found[text] = _detect(text)
        return self._found[text]

    def _known_names(self, text: str) -> Iterator[Span]:
        folded = fold(text)
        for home in self._homes:
            for match in home.finditer(text, folded):
                yield Span(match.start(), match.end(), "home")
        for kind, patterns in self._known.items():
            for name, pattern in patterns.items():
                if name in folded:
                    for match in pattern.finditer(text, folded):
                        yield Span(match.start(), match.end(), kind)

    # ------------------------------------------------------------ replacing

    def _replacement(self, text: str, span: Span) -> str:
        old = text[span.start : span.end]
        if span.kind == "secret":
            return self._replaced("secret", f"{old[:4]}... ({len(old)} characters)", "<secret>")
        if span.kind == "environment":
            return self._replaced("environment", old, REMOVED)
        if span.kind == "home":
            return self._replaced("home", old, "~")
        if span.kind == "uuid":
            return self._uuid(old)
        if span.kind == "address" and (old in self._versions or not addresses.is_address(text, span.start, span.end)):
            return old
        return self._numbered(span.kind, old)

    def _uuid(self, uuid: str) -> str:
        """Same form, other digits: which of the ticket's UUIDs it is, and nothing of itself. An abbreviation stays the
        beginning of its full UUID; what is replaced already stays, so that redacting twice is redacting once."""
        short = uuid.lower()
        full = max((u for u in self._uuids if u.startswith(short)), key=lambda u: (len(u), u), default=short)
        if full.endswith(PLACED) or len(full) <= 12:  # a few digits that belong to no device here tell of nobody
            return uuid
        number = self._uuids.setdefault(full, len(self._uuids) + 1)
        start = 4 if full[3] == "-" else 0  # "GPU-" and "MIG-" stay
        digits = iter(f"{0xA000 + number:x}".ljust(len(full), "0"))
        new = full[:start] + "".join(c if c == "-" else next(digits) for c in full[start:])
        new = new[: -len(PLACED)] + PLACED
        return self._replaced("uuid", uuid, uuid[:start] + new[start : len(uuid)])

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        return {
            name: self.text(value) if name in ALLOWED else self._replaced("environment", value, REMOVED)
            for name, value in variables.items()
        }

    def _may_be_quoted(self, pointer: str) -> bool:
        name = pointer.partition("/host/environment/")[2]
        return not name or name in ALLOWED

    # ------------------------------------------------------------ names and counts

    def _know(self, kind: Kind, name: str) -> None:
        """A name that is meant wherever it stands; a log that invents thousands does not make every search slow."""
        low = fold(name)
        known = self._known[kind]
        if len(name) < 3 or len(known) >= NAMES_MAX or low in known or PLACEHOLDER.search(name):
            return
        if kind == "secret" or low not in _words():
            around = "A-Za-z0-9<" if kind != "secret" else "<"
            known[low] = Signed(
                rf"(?i)(?<![{around}]){re.escape(name)}" + ("" if kind == "secret" else "(?![A-Za-z0-9])"), low
            )

    def _numbered(self, kind: Kind, original: str) -> str:
        key = (kind, original.lower())
        if key not in self._names:
            self._last[kind] = self._last.get(kind, 0) + 1
            self._names[key] = f"<{kind}-{self._last[kind]}>"
        return self._replaced(kind, original, self._names[key])

    def _replaced(self, kind: Kind, original: str, new: str) -> str:
        key = (kind, original, new)
        self._count[key] = self._count.get(key, 0) + 1
        return new


def _detect(text: str) -> tuple[Span, ...]:
    folded = fold(text)
    return (
        *credentials.find(text, folded), *tokens.find(text, folded), *environment.find(text, folded),
        *people.find(text, folded), *hosts.find(text, folded), *devices.find(text, folded),
    )  # fmt: skip


@lru_cache(maxsize=1 << 14)
def _detected(text: str) -> tuple[Span, ...]:
    """The same for a short text: a report says most things more than once."""
    return () if _ONE_WORD.fullmatch(text) else _detect(text)


def _plain(text: str) -> str:
    """The text as it reads: without commands to a terminal and characters that nobody sees."""
    return text if text.isascii() and "\x1b" not in text else _TERMINAL.sub("", text)


def _personal_home(home: str) -> bool:
    return home.rstrip("/\\") not in p.SYSTEM_FOLDERS and (home.startswith("/") or home[1:2] == ":")


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v.strip() for v in values if v.strip()))


@lru_cache(maxsize=256)
def _vocabulary_fields(kind: type) -> frozenset[str]:
    """Fields that hold one of fixed words."""
    return frozenset(f.name for f in msgspec.structs.fields(kind) if get_origin(f.type) is Literal)


@lru_cache(maxsize=1)
def _words() -> frozenset[str]:
    """Words that mean something to a report whoever is called so: every word of its schema, and those of the field."""
    from cudnn_doctor.schemas import path_of

    schema = path_of("report-1").read_text(encoding="utf-8").lower()
    return frozenset(re.findall(r"[a-z][a-z0-9_-]+", schema)) | p.COMMON_NAMES
