"""What every type of the program is made of: frozen structs, facts that are known or absent, JSON in and out.

All types are frozen; JSON in and out goes through `decode` and `encode` alone.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec

T = TypeVar("T")


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """Frozen and tolerant of fields that a newer version added. Subclasses repeat `frozen` and `kw_only`: msgspec does
    not inherit the second and type checkers want both."""


S = TypeVar("S", bound=Base)


class Known(Base, Generic[T], frozen=True, kw_only=True, tag_field="kind", tag="known"):
    """A fact that was read, and where it was read."""

    value: T
    source: str


AbsentReason = Literal[
    "not-found",  # looked, and it is not there
    "no-permission",  # it may be there, this user may not read it
    "not-supported",  # this OS, driver or device has no such fact
    "error",  # reading failed; `detail` says how
    "timeout",
    "not-examined",  # nobody looked (an option or an earlier failure left it out)
]


class Absent(Base, frozen=True, kw_only=True, tag_field="kind", tag="absent"):
    """A fact that could not be read, and why. Never the same as healthy."""

    reason: AbsentReason
    detail: str = ""


Fact = Union[Known[T], Absent]

NOT_EXAMINED = Absent(reason="not-examined")


def known(value: T, source: str) -> Known[T]:
    """Shorthand for a fact that was read."""
    return Known(value=value, source=source)


def value_or(fact: Known[T] | Absent, default: T) -> T:
    """The value, or `default` where the fact is absent. For display; rules use `rules.base.need`."""
    return fact.value if isinstance(fact, Known) else default


def blank(kind: type[S], absent: Absent) -> S:
    """A struct of `kind` in which every fact is `absent` and every list is empty: what a crashed probe leaves."""
    return kind(**{f.name: _blank(f.type, absent) for f in msgspec.structs.fields(kind) if f.required})


def _blank(annotation: Any, absent: Absent) -> Any:
    if Absent in get_args(annotation):
        return absent
    origin = get_origin(annotation) or annotation
    if origin is Literal:
        return get_args(annotation)[0]
    return blank(origin, absent) if issubclass(origin, Base) else origin()


def encode(document: msgspec.Struct | dict[str, Any]) -> bytes:
    """JSON, indented by two spaces, one final newline. Bytes of file names and variables that are not UTF-8 (lone
    surrogates in Python) become `\\udcff` as text; characters that a terminal obeys or hides are escaped."""
    try:
        raw = msgspec.json.encode(document)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(_sayable(msgspec.to_builtins(document)))
    text = msgspec.json.format(raw, indent=2) + b"\n"
    return text if text.isascii() and b"\x7f" not in text else "".join(map(_shown, text.decode())).encode()


def _shown(char: str) -> str:
    """A character of a JSON text, as `\\u009b` where it would not be seen."""
    if char == "\n" or char.isprintable():
        return char
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _sayable(node: Any) -> Any:
    if isinstance(node, str):
        return node.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(node, dict):
        return {_sayable(k): _sayable(v) for k, v in node.items()}
    if isinstance(node, (list, tuple)):
        return [_sayable(v) for v in node]
    return node


def decode(data: bytes, kind: type[T]) -> T:
    """Strict decoding.

    Raises:
        msgspec.ValidationError: with the path of the field that does not fit.
    """
    return msgspec.json.decode(data, type=kind)
