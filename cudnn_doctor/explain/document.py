"""The input as clean, numbered lines with what is known of each: when, by whom, log or prose."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from cudnn_doctor.explain.clean import clean, decode
from cudnn_doctor.explain.scan import Raw

# 2018-05-29 10:47:31.840117: E ... of TensorFlow, 2025-10-30T02:25:39,118 of others
_STAMP = re.compile(r"[\[(]?(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d(?:[.,]\d{1,9})?)")
_GLOG = re.compile(r"([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d{1,9})?) ")
_ABSL = re.compile(r"([IWEF])0000 00:00:(\d{9,10}\.\d+)")
_LEVEL = re.compile(r": ([IWEF]) (?:\S+[/.]|\./)|^([IWEF]) (?:tensorflow|external|\./)\S*:\d+\]|^([IWEF])\d{4} \d\d:")
_LOG = re.compile(
    r"""
    ^(?:
      [IWEF]\d{4}\s\d\d:\d\d:\d\d                      # glog and absl
    | \d{4}-\d\d-\d\d[\sT]\d\d:\d\d:\d\d
    | \d{4}\s\d\d:\d\d:\d\d\.\d+:\s[IWEF]\s            # a date cut short
    | [IWEF]\s\S+\.(?:cc|cpp|h|cu):\d+\]
    | Traceback\s\(most\srecent | File\s"[^"]{1,300}",\sline\s\d+ | During\shandling\sof
    | (?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Interrupt)(?:\[\d+\])?:\s | terminate\scalled | what\(\):
    | frame\s\#\d+ | \[bt\]\s | \#\d+\s+0x | \[\d\d:\d\d:\d\d\]\s\S+\.(?:cc|h):\d+ | \[[EWI]:\w+
    | \(?(?:core\sdumped|Aborted|Segmentation\sfault|Killed)
    | Node:\s | \[\[\{\{ | Process\sfinished | \$\s | >>>\s | PS\s\w:\\ | C:\\[^>]{0,80}> | \w[\w.-]*@[\w.-]+:
    | name:\s.{1,60}\smajor: | pciBusID | totalMemory | \+-{5,} | \|\s(?:NVIDIA-SMI|GPU|Fan|\s*\d+\s) | Epoch\s\d+
    | \d{1,3}%\| | Num\sGPUs | NVRM: | nvrtc: | Unable\sto\sload\sany | Invalid\shandle | Could\snot\sload\slibrary
    )
    """,
    re.VERBOSE,
)
# A script or a search pattern that holds an error's name is not the error.
_CODE = re.compile(
    r"\b(?:e?grep|rg|awk|sed|findstr|journalctl)\b[^|]{0,40}['\"|\\]|\bre\.(?:search|compile|match|findall)\(|^(?:if|elif|while|case|except|assert|raise|catch)\b.{0,120}[:{;]\s*$"
    r"|\b(?:in|=~|contains|match)\b.{0,40}[\"'].{0,80}[\"'].{0,20}(?:then|:|\{|\]\])\s*$|\|[A-Z_]{6,}[^|]{0,40}\||\|Failed to|assertRaises"
)
_SPEAKERS = (
    re.compile(r"^(?:\*\*|__|#{1,6} )@?([A-Za-z][\w.-]{1,39})(?:\*\*|__)?(?: (?:commented|wrote|said|replied|posted)\b.{0,80})?:?$"),
    re.compile(r"^@?([A-Za-z][\w.-]{1,39}) (?:commented|wrote|replied|posted|says|said)(?: (?:on|at|\d).{0,60})?:?$"),
    re.compile(r"^([A-Za-z][\w.-]{1,39}) · (?:comment|description|reply)\b"),
    re.compile(r"^-{2,} ?(?:reply|comment|post|answer)?(?: (?:by|from|of) )?@?([A-Za-z][\w.-]{1,39})(?:,? (?:later|wrote|again|on|at|\d).{0,60})? ?-{2,}$"),
    re.compile(r"^={2,} ?@?([A-Za-z][\w.-]{1,39}) ?={2,}$"),
    re.compile(r"^(?:From|Von|De|От): (.{1,60})$"),
    re.compile(r"^#{1,6} (?:Comment|Reply|Answer|Post)(?: (?:by|from|of|#|no\.?))? ?@?([\w.-]{1,40})"),
)
_CHAT = re.compile(r"^(?:\[\d\d:\d\d(?::\d\d)?(?: ?[AP]M)?\]|\d\d:\d\d(?::\d\d)?) ?<?@?([A-Za-z][\w.-]{0,39})>?: |^<@?([A-Za-z][\w.-]{0,39})> ")
_METOO = re.compile(
    r"^(?:same (?:here|problem|issue|error|for me|on)|me too|\+1\b|seeing this (?:here )?too|i (?:also |too )?(?:have|get|got|see|am getting|face) (?:the|this) (?:same|exact)|also (?:getting|seeing|have|having) (?:this|the same)|i.?m (?:also )?having the same|so am i)",
    re.IGNORECASE,
)


class Line(NamedTuple):
    number: int
    text: str
    source: int
    time: float | None  # seconds on a scale of its own; comparable within the document
    level: str  # I, W, E, F or ""
    log: bool  # printed by software, as far as its form tells
    code: bool  # a script or pattern that only names an error
    speaker: int  # 0 before anybody is named
    prefix: str


class Document:
    """All lines, and the texts that patterns run over."""

    def __init__(self, lines: list[Line], sources: tuple[str, ...]) -> None:
        self.lines = lines
        self.sources = sources

    @cached_property
    def text(self) -> str:
        """Lower case, one line per line."""
        return "\n".join(line.text for line in self.lines).lower()

    @cached_property
    def flat(self) -> str:
        """`text` with spaces for line breaks: same offsets."""
        return self.text.replace("\n", " ")

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = [], 0
        for line in self.lines:
            starts.append(at)
            at += len(line.text.lower()) + 1
        return starts

    def line_at(self, offset: int) -> int:
        """Index of the line that holds this offset of `text`."""
        return bisect_right(self._starts, offset) - 1

    @cached_property
    def glued(self) -> tuple[str, list[int]]:
        """Lines joined without anything between, for wraps inside words, and the offset at which each begins."""
        starts, parts, at = [], [], 0
        for line in self.lines:
            part = line.text.lower()
            starts.append(at)
            parts.append(part)
            at += len(part)
        return "".join(parts), starts


def build(sources: Iterable[tuple[str, Iterable[Raw]]]) -> Document:
    """A document of the kept lines of one or more sources."""
    lines: list[Line] = []
    names: list[str] = []
    for index, (name, raws) in enumerate(sources):
        names.append(name)
        _add(lines, raws, index)
    return Document(lines, tuple(names))


def _add(lines: list[Line], raws: Iterable[Raw], source: int) -> None:
    speakers: dict[str, int] = {}
    speaker = 0
    clock: float | None = None
    for raw in raws:
        for text, prefix, _quoted in clean(decode(raw.data)):
            inline = speaker
            if text and len(text) < 200:
                speaker, inline, text = _who(text, speakers, speaker)
            time, level = _when(text, prefix)
            clock = time if time is not None else clock
            lines.append(
                Line(
                    number=raw.number, text=text, source=source, time=clock, level=level, speaker=inline, prefix=prefix,
                    log=bool(text) and _LOG.match(text) is not None,
                    code=len(text) > 12 and _CODE.search(text) is not None,
                )
            )  # fmt: skip


def _who(text: str, speakers: dict[str, int], current: int) -> tuple[int, int, str]:
    """The speaker from here on, the speaker of this line, and the line without a chat's name."""
    first = text[0]
    if first in "[<0123456789" and (match := _CHAT.match(text)):
        name = (match[1] or match[2]).lower()
        return current, speakers.setdefault(name, len(speakers) + 1), text[match.end() :]
    if first in "*_#-=" or " " not in text or text[-1] in ":-" or "wrote" in text or "·" in text or first in "FVDО":
        for pattern in _SPEAKERS:
            match = pattern.match(text)
            if match and match[1].lower() not in _NOT_NAMES:
                name = match[1].lower()
                if name in ("author", "op", "reporter"):
                    name = next(iter(speakers), name)
                    if not speakers:
                        return 0, 0, text
                number = speakers.setdefault(name, len(speakers) + 1)
                return number, number, text
    if _METOO.match(text):
        number = speakers.setdefault(f"me too {len(speakers)}", len(speakers) + 1)
        return number, number, text
    return current, current, text


_NOT_NAMES = frozenset(
    "system describe other environment code bug expected steps additional versions your issue source custom relevant current"
    " standalone os python gpu cuda cudnn tensorflow pytorch log logs error errors output question problem solution update edit"
    " note notes setup hardware software details summary description title result results thanks info information background"
    " what version driver command reproduce reproduction context traceback screenshots desktop note: warning configuration".split()
)


def _when(text: str, prefix: str) -> tuple[float | None, str]:
    if not text:
        return None, ""
    first = text[0]
    level = ""
    if first in "IWEF" or ": " in text[20:40]:
        match = _LEVEL.search(text, 0, 60)
        level = (match[1] or match[2] or match[3]) if match else ""
    if first in "IWEF":
        if match := _ABSL.match(text):
            return float(match[2]), match[1]
        if match := _GLOG.match(text):
            return _seconds(0, *match.groups()[1:]), match[1]
    if (first.isdigit() or first in "[(") and (match := _STAMP.match(text)):
        return _seconds(*match.groups()), level
    if prefix and (match := _STAMP.search(prefix)):
        return _seconds(*match.groups()), level
    return None, level


def _seconds(year: int | str, month: str, day: str, hour: str, minute: str, second: str) -> float:
    """An increasing scale; months count 31 days, which keeps the order."""
    days = (int(year) * 12 + int(month)) * 31 + int(day)
    return ((days * 24 + int(hour)) * 60 + int(minute)) * 60 + float(second.replace(",", "."))
