"""The frame of every HTML page: no script, no request, nothing embedded."""

from __future__ import annotations

from collections.abc import Iterable

from cudnn_doctor.render.clean import disarmed
from cudnn_doctor.render.html_elements import Markup, tag
from cudnn_doctor.render.html_style import STYLE

# Nothing may be fetched, run or embedded, whatever a log managed to smuggle in.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(title: str, parts: Iterable[Markup], style: str = "") -> str:
    """The page, in UTF-8. `style` is added to the common one."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(STYLE + style)),
    )
    body = tag("body", tag("main", *parts))
    return disarmed(f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n")
