"""XML and HTML that cannot be broken by what they show: plain strings are escaped, only `Markup` goes in as it is."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from cudnn_doctor.render.clean import visible

VOID = frozenset({"meta", "br", "hr", "wbr"})


class Markup(str):
    """Text that is markup already, made by `tag` or `join` alone."""

    __slots__ = ()


def safe(text: str) -> Markup:
    """`text` as markup: control characters shown, `&<>"'` escaped; `Markup` stays."""
    return text if isinstance(text, Markup) else Markup(escape(visible(text)))


def tag(name: str, /, *children: str, **attributes: str | int | float | None) -> Markup:
    """`<name a="b">children</name>`. A trailing `_` of an attribute name is dropped (`class_`), others become `-`;
    attributes that are None are left out."""
    head = name + "".join(
        f' {key.rstrip("_").replace("_", "-")}="{safe(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{head}>")
    return Markup(f"<{head}>{join(children)}</{name}>") if children else Markup(f"<{head}></{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Parts side by side, each made safe."""
    return Markup(between.join(safe(p) for p in parts))
