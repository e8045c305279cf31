"""Undoes what happens to a log on its way into a ticket.

One physical line becomes zero or more clean ones (a progress bar hides several behind carriage returns). What was taken
off its front (stamp, rank, container) is kept as far as it says when or who.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TABS = str.maketrans({"\t": " ", "\u00a0": " ", "\u3000": " ", "\u2007": " ", "\u202f": " ", "\ufeff": "", "\u200b": "",
                      "\u200c": "", "\u200d": "", "\u2060": "", "\u00ad": "", "\u2018": "'", "\u2019": "'", "\u201a": "'",
                      "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"', "\u2013": "-",
                      "\u2014": "-", "\u2212": "-", "\u2026": "...", "\u0000": ""})  # fmt: skip
# Full-width forms of ASCII (Chinese and Japanese input) and their own punctuation.
TABS.update({0xFF01 + i: chr(0x21 + i) for i in range(94)})
TABS.update({0x3001: ", ", 0x3002: ". ", 0x300C: '"', 0x300D: '"', 0x3010: "[", 0x3011: "]", 0xFF0C: ", ", 0xFF1A: ": "})

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[PX^_][^\x1b]{0,512}\x1b\\|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]")
# Colour codes whose escape character was lost on the way: "[31m", "[0;1m"; a digit is demanded, "[m" may be meant.
_BARE_ANSI = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,4}m|\[0?K(?=\W|$)")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-z]{2,6}|[A-Z][a-z]{4,5});")
_TAG = re.compile(
    r"</?(?:p|pre|code|br|div|span|b|i|em|strong|li|ul|ol|h[1-6]|blockquote|table|thead|tbody|tr|td|th|a|font|tt|details|summary|samp|kbd|img|hr)(?:\s[^<>]{0,300})?/?>",
    re.IGNORECASE,
)
_CELL_END = re.compile(r"</t[dh]>\s*<t[dh][^<>]{0,80}>", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_QUOTE = re.compile(r"(?:>\s?)+(?!>)")
_SPACES = re.compile(r" {2,}")

# What launchers and collectors put before a line. Each must consume something; they are taken off in turn.
_PREFIXES = re.compile(
    r"""
    \[\d+,\d+\]<std(?:out|err|diag)>:\s?              # mpirun -tag-output
  | \[\d+(?:,\d+)?\]\s*<std(?:out|err)>:?\s?
  | (?:\d{1,4}|rank\s?\d{1,5}|\[rank\d{1,5}\]|\[default\d\]|\[\d{1,4}\]):\s(?=\S)   # srun -l, torchrun, mpiexec -l
  | \((?:[\w.<>]{1,64}\s)?pid=\d+(?:,\s?ip=[\d.]+)?\)\s?   # ray
  | \(\w{1,64}\spid=\d+(?:,[^)]{0,60})?\)\s?
  | [\w./-]{2,80}\s{0,30}\|\s(?=\s*\S)                  # docker compose
  | \[pod/[\w./-]{1,160}\]\s?                          # kubectl logs --prefix
  | \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(?:Z|[+-]\d\d:\d\d)\s(?:std(?:out|err)\s[FP]\s)?   # docker, cri
  | [A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d:\d\d(?:\.\d+)?\s[\w.-]{1,64}\s[\w./@:-]{1,80}(?:\[\d+\])?:\s   # journald, syslog
  | \d{4}-\d\d-\d\dT[\d:.]{8,15}(?:Z|[+-]\d\d:?\d\d)\s[\w.-]{1,64}\s[\w./@-]{1,80}\[\d+\]:\s
  | \[[\w.-]{1,40}\]\s(?=\[?(?:\d{4}-\d\d-\d\d|[EWIF]\d{4}\s))   # an actor's or worker's name before a stamp
    """,
    re.VERBOSE,
)
_TABLE = re.compile(r"^\s*\|(.*)\|\s*$")


class Clean(NamedTuple):
    text: str
    prefix: str  # what was taken off, for the time and the rank
    quoted: int  # depth of quoting


def decode(data: bytes) -> str:
    """Text of a line in whatever encoding: UTF-8, else bytes that are not become Latin-1-like replacement."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def clean(text: str) -> list[Clean]:
    """The clean lines in one physical line.

    >>> [c.text for c in clean("[1,0]<stderr>:\\x1b[31mRuntimeError:&nbsp;x\\x1b[0m")]
    ['RuntimeError: x']
    """
    if "\r" in text:
        return [c for part in text.split("\r") if part.strip() for c in clean(part)]
    if not text.isascii():
        text = text.translate(TABS)
    elif "\t" in text or "\0" in text:
        text = text.translate(TABS)
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    if "[" in text and "m" in text:
        text = _BARE_ANSI.sub("", text)
    if "&" in text:
        text = _entities(text)
    if "<" in text and ">" in text:
        text = _TAG.sub("", _CELL_END.sub(" | ", text))
    text = _CONTROL.sub("", text).strip()
    quoted = 0
    if text[:1] == ">" and text[:3] != ">>>":
        match = _QUOTE.match(text)
        if match:
            quoted = match.group().count(">")
            text = text[match.end() :].lstrip()
    prefix = ""
    while match := _PREFIXES.match(text):
        prefix += match.group()
        text = text[match.end() :].lstrip()
    return [Clean(_SPACES.sub(" ", text), prefix, quoted)]


def _entities(text: str) -> str:
    import html

    for _ in range(2):  # &amp;gt; happens
        text = _ENTITY.sub(lambda m: html.unescape(m.group()).replace("\u00a0", " "), text)
    return text
