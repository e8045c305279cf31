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
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, TypeVar, get_origin

import msgspec

from cudnn_doctor.model.base import Base, Known
from cudnn_doctor.model.facts import Host
from cudnn_doctor.model.report import Evidence, Report
from cudnn_doctor.probe.environment import ALLOWED
from cudnn_doctor.redact import patterns as p
from cudnn_doctor.redact.search import Signed, fold

S = TypeVar("S", bound=msgspec.Struct)
Kind = Literal["user", "home", "host", "email", "address", "mac", "uuid", "serial", "secret", "environment"]

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
HASHED = "d0c7"  # the last digits of a UUID that is a hash


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
        self._homes = tuple(
            sorted({h.rstrip("/\\") for h in identity.homes if _personal_home(h)}, key=len, reverse=True)
        )
        self._users: list[str] = []
        self._hosts: list[str] = []
        self._versions: set[str] = set()
        self._uuids: set[str] = set()
        self._names: dict[tuple[Kind, str], str] = {}
        self._last: dict[Kind, int] = {}
        self._count: dict[tuple[Kind, str, str], int] = {}
        for user in identity.users:
            self._know_user(user)
        for host in identity.hosts:
            self._know_host(host)

    @property
    def redactions(self) -> tuple[Redaction, ...]:
        """Everything replaced so far, by kind."""
        found = [
            Redaction(kind=kind, original=original, replacement=new, count=n)
            for (kind, original, new), n in self._count.items()
        ]
        return tuple(sorted(found, key=lambda r: (r.kind, r.replacement)))

    def learn(self, node: Any) -> None:
        """Collects what texts elsewhere must be compared with: user names in home paths and prompts, full UUIDs, and
        versions that look like addresses ("9.19.0.56")."""
        if isinstance(node, str):
            for match in p.HOME_PATH.finditer(node):
                self._know_user(match[2])
            for match in p.LOGIN.finditer(node):
                self._know_user(match[1])
                self._know_host(match[2])
            for match in p.HOST_FIELD.finditer(node):
                if p.LIKE_A_HOST.search(match[2]):
                    self._know_host(match[2])
            for match in p.USER_FIELD.finditer(node):
                if match[1].lower().startswith("logged in"):
                    self._know_user(match[2])
            self._uuids.update(m[0].lower() for m in p.UUID.finditer(node))
            self._versions.update(m[0] for m in p.QUAD.finditer(node) if _in_version_place(m))
        elif isinstance(node, Mapping):
            for value in node.values():
                self.learn(value)
        elif isinstance(node, (list, tuple)):
            for value in node:
                self.learn(value)
        elif isinstance(node, msgspec.Struct):
            if isinstance(node, Known) and isinstance(node.value, str) and p.QUAD.pattern.fullmatch(node.value):
                self._versions.add(node.value)  # no fact of a snapshot is an address
            for name in node.__struct_fields__:
                value = getattr(node, name)
                if name == "version" and isinstance(value, str):
                    self._versions.add(value)
                self.learn(value)

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
            return {key: self.tree(value) for key, value in node.items()}
        if isinstance(node, tuple):
            return tuple(map(self.tree, node))
        return [self.tree(v) for v in node] if isinstance(node, list) else node

    def text(self, text: str) -> str:
        """One text or a whole log."""
        if len(text) < 3:
            return text
        for pattern, replace in self._passes:
            text = pattern.sub(replace, text)
        return self._known_names(text)

    def log(self, text: str) -> str:
        """A log that was learned: `text`, and lines of an `env` dump whose variable is not on the allow-list lose their
        value."""

        def line(m: re.Match[str]) -> str:
            keep = m[2] in ALLOWED or p.HARMLESS_VALUE.fullmatch(m[3])
            return m[0] if keep else f"{m[1]}{m[2]}={self._replaced('environment', m[3], REMOVED)}"

        return self.text(p.ENV_LINE.sub(line, text))

    # ------------------------------------------------------------ passes, in the order of what must not be torn

    @cached_property
    def _passes(self) -> list[tuple[re.Pattern[str] | Signed, Callable[[re.Match[str]], str]]]:
        home = [(Signed(rf"(?<![\w.~-]){re.escape(h)}(?![\w.-])", fold(h)), self._own_home) for h in self._homes]
        return [
            (p.PRIVATE_KEY, lambda m: self._secret(m[0])),
            (p.SECRET, lambda m: self._secret(m[0])),
            (p.URL_LOGIN, lambda m: f"{m[1]}{self._secret(m[2])}@"),
            (p.USER_PASSWORD, lambda m: f"{m[1]}{self._secret(m[2])}"),
            (p.AUTHORIZATION, lambda m: f"{m[1]}{self._secret(m[2])}"),
            (p.FLAG, self._assignment),
            (p.ASSIGNMENT, self._assignment),
            (p.URL_HOST, self._url_host),
            *home,
            (p.HOME_PATH, self._after_label),
            (p.EMAIL, lambda m: self._numbered("email", m[0])),
            (p.LOGIN, self._login),
            (p.USER_FIELD, self._after_label),
            (p.HOST_FIELD, self._host_field),
            (p.PRIVATE_HOST, lambda m: self._numbered("host", m[0])),
            (p.SERIAL, lambda m: f"{m[1]}{self._numbered('serial', m[2])}"),
            (p.UUID, self._uuid),
            (p.MAC, lambda m: self._numbered("mac", m[0])),
            (p.QUAD, self._quad),
            (p.IPV6, self._ipv6),
        ]

    def _known_names(self, text: str) -> str:
        kinds: tuple[tuple[Kind, list[str]], ...] = (("host", self._hosts), ("user", self._users))
        folded = fold(text)
        for kind, names in kinds:
            for name in names:
                if fold(name) in folded:
                    pattern = Signed(rf"(?i)(?<![A-Za-z0-9<]){re.escape(name)}(?![A-Za-z0-9])", fold(name))
                    text = pattern.sub(partial(self._known_name, kind), text)
        return text

    def _known_name(self, kind: Kind, match: re.Match[str]) -> str:
        return self._numbered(kind, match[0])

    def _own_home(self, match: re.Match[str]) -> str:
        return self._replaced("home", match[0], "~")

    def _after_label(self, match: re.Match[str]) -> str:
        return match[0] if match[2] in p.NOBODY else f"{match[1]}{self._numbered('user', match[2])}"

    def _host_field(self, match: re.Match[str]) -> str:
        host = match[2]
        return match[0] if host.lower() in p.COMMON_NAMES else f"{match[1]}{self._numbered('host', host)}"

    def _login(self, match: re.Match[str]) -> str:
        user = match[1] if match[1] in p.NOBODY else self._numbered("user", match[1])
        return f"{user}@{self._numbered('host', match[2])}"

    def _assignment(self, match: re.Match[str]) -> str:
        return match[0] if p.HARMLESS_VALUE.fullmatch(match[3]) else f"{match[1]}{match[2]}{self._secret(match[3])}"

    def _url_host(self, match: re.Match[str]) -> str:
        host = match[2]
        public = host.lower() in p.PUBLIC_HOSTS or host.lower().endswith(tuple("." + h for h in p.PUBLIC_HOSTS))
        if public or p.QUAD.pattern.fullmatch(host):
            return match[0]
        return f"{match[1]}{self._numbered('host', host)}"

    def _quad(self, match: re.Match[str]) -> str:
        quad = match[0]
        if quad in self._versions or quad in p.OPEN_ADDRESSES or any(int(part) > 255 for part in quad.split(".")):
            return quad
        return quad if _in_version_place(match) else self._numbered("address", quad)

    def _ipv6(self, match: re.Match[str]) -> str:
        from ipaddress import AddressValueError, IPv6Address

        try:
            address = IPv6Address(match[0].partition("%")[0])
        except AddressValueError:
            return match[0]
        return match[0] if address.is_loopback or address.is_unspecified else self._numbered("address", match[0])

    def _uuid(self, match: re.Match[str]) -> str:
        """Same form, other digits, the same for the same device in every ticket. An abbreviation stays the beginning of
        its full UUID; what is hashed already stays, so that redacting twice is redacting once."""
        from hashlib import sha256

        uuid = match[0]
        longest = max((u for u in self._uuids if u.startswith(uuid.lower())), key=lambda u: (len(u), u), default="")
        full = longest or uuid.lower()
        if full.endswith(HASHED) or len(full) < 12:  # a few digits that belong to no device here tell of nobody
            return uuid
        digits = iter(sha256(full.encode()).hexdigest())
        start = 4 if full[3] == "-" else 0  # "GPU-" and "MIG-" stay
        new = full[:start] + "".join(c if c == "-" else next(digits) for c in full[start:])
        new = new[: -len(HASHED)] + HASHED
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

    def _know_user(self, name: str) -> None:
        _add_name(self._users, name)

    def _know_host(self, name: str) -> None:
        _add_name(self._hosts, name)

    def _secret(self, value: str) -> str:
        return self._replaced("secret", f"{value[:4]}... ({len(value)} characters)", "<secret>")

    def _numbered(self, kind: Kind, original: str) -> str:
        key = (kind, original.lower())
        if original.startswith("<") or original == REMOVED:
            return original
        if key not in self._names:
            self._last[kind] = self._last.get(kind, 0) + 1
            self._names[key] = f"<{kind}-{self._last[kind]}>"
        return self._replaced(kind, original, self._names[key])

    def _replaced(self, kind: Kind, original: str, new: str) -> str:
        key = (kind, original, new)
        self._count[key] = self._count.get(key, 0) + 1
        return new


def _add_name(names: list[str], name: str) -> None:
    """Longest first, so that no name tears another; a log that invents thousands does not make every search slow."""
    if len(name) > 2 and len(names) < NAMES_MAX and name not in names and name.lower() not in _words():
        names.append(name)
        names.sort(key=len, reverse=True)


def _personal_home(home: str) -> bool:
    return home.rstrip("/\\") not in p.SYSTEM_FOLDERS and (home.startswith("/") or home[1:2] == ":")


def _in_version_place(quad: re.Match[str]) -> bool:
    """Whether what stands beside four dotted numbers makes them a version: an operator, a product, a revision."""
    text, start, end = quad.string, quad.start(), quad.end()
    return bool(p.VERSION_BEFORE.search(text[max(0, start - 64) : start]) or p.VERSION_AFTER.match(text, end))


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
