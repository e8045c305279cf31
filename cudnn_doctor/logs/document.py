"""The input as clean, numbered lines with what is known of each: when, by whom, log or prose."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from cudnn_doctor.logs.authors import Speakers
from cudnn_doctor.logs.clean import clean, decode
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.scan import Raw

# 2018-05-29 10:47:31.840117: E ... of TensorFlow, 2025-10-30T02:25:39,118 of others
_STAMP = r"[\[(]?(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d(?:[.,]\d{1,9})?)"
_GLOG = r"([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d{1,9})?) "
_ABSL = r"([IWEF])0000 00:00:(\d{9,10}\.\d+)"
_LEVEL = r": ([IWEF]) (?:\S+[/.]|\./)|^([IWEF]) (?:tensorflow|external|\./)\S*:\d+\]|^([IWEF])\d{4} \d\d:"
# How a program's lines begin. Plain beginnings are told apart from those that need an expression: compiling one takes
# longer than testing all the lines of a ticket.
_BEGINNINGS = (
    "Traceback (most re", 'File "', "During handling of", "terminate called", "what():", "frame #", "[bt] ", "[[{{",
    "core dumped", "(core dumped", "Aborted", "Segmentation fault", "Killed", "Node: ", "Process finished", "$ ",
    ">>> ", "pciBusID", "totalMemory", "+-----", "| NVIDIA-SMI", "| GPU ", "| Fan ", "Epoch ", "Num GPUs",
    "NVRM:", "nvrtc: ",
    "Unable to load any", "Invalid handle", "Could not load library", "[E:", "[W:", "[I:",
)  # fmt: skip
_LOG_DIGIT = r"\d{4}-\d\d-\d\d[\sT]\d\d:\d\d|\d{4}\s\d\d:\d\d:\d\d\.\d+:\s[IWEF]\s|\d{1,3}%\|"
_LOG_LEVEL = r"[IWEF](?:\d{4}\s\d\d:\d\d:\d\d|\s\S+\.(?:cc|cpp|h|cu):\d+\])"
_LOG_ERROR = r"(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Interrupt)(?:\[\d+\])?:\s"
_LOG_OTHER = (
    r"\[\d\d:\d\d:\d\d\]\s\S+\.(?:cc|cu|cpp|h|hpp):\d+|#\d+\s+0x|PS\s\w:\\|C:\\[^>]{0,80}>|\w[\w.-]*@[\w.-]+:|name:\s.{1,60}\smajor:"
    r"|\|\s+\d+\s"
)
# A script or a search pattern that holds an error's name is not the error.
_CODE_WORDS = ("grep", "rg ", "awk ", "sed ", "findstr", "journalctl", "re.search", "re.compile", "re.match",
               "|Failed to", "re.findall", "assertRaises")  # fmt: skip
_CODE_STARTS = ("if", "elif", "while", "case", "except", "assert", "raise", "catch")
_CODE = (
    r"\b(?:e?grep|rg|awk|sed|findstr|journalctl)\b[^|]{0,40}['\"|\\]|\bre\.(?:search|compile|match|findall)\("
    r"|^(?:if|elif|while|case|except|assert|raise|catch)\b.{0,120}[:{;]\s*$"
    r"|(?:\bin\b|=~|\bcontains\b|\bmatch\b).{0,40}[\"'].{0,80}[\"'].{0,20}(?:then|:|\{|\]\])\s*$|\|[A-Z_]{6,}[^|]{0,40}\|"
    r"|\|Failed to|assertRaises"
)


def is_log(text: str) -> bool:
    """Whether a program printed the line, as far as its form tells."""
    if not text:
        return False
    first = text[0]
    if text.startswith(_BEGINNINGS):
        return True
    if first.isdigit():
        return rx(_LOG_DIGIT).match(text) is not None
    if first in "IWEF" and rx(_LOG_LEVEL).match(text):
        return True
    if ("Error" in text or "Exception" in text or "Warning" in text or "Interrupt" in text) and rx(_LOG_ERROR).match(
        text
    ):
        return True
    rare = first in "[#|" or "@" in text or ":\\" in text or " major:" in text
    return rare and rx(_LOG_OTHER).match(text) is not None


def is_code(text: str) -> bool:
    """Whether the line is a script that only names an error."""
    if len(text) <= 12:
        return False
    quoted = ('"' in text or "'" in text) and text.rstrip().endswith(("then", ":", "{", "]]"))
    likely = (
        (text.startswith(_CODE_STARTS) and text.rstrip()[-1] in ":{;")
        or text.count("|") > 1
        or any(word in text for word in _CODE_WORDS)
        or (quoted and any(word in text for word in (" in ", "=~", "contains", "match")))
    )
    return likely and rx(_CODE).search(text) is not None


# A short line with a colon, or a line break before a letter.
_FIELD_OR_BREAK = r"^([^\n:]{1,40}: ?[^\n:]{1,24}\n)|\n(?=[^\W\d_])"
WRAPPED = 50  # characters of a line that may have been broken inside a word; terminals wrap at 80, mail at 72


_NARROW, _WIDE, _FEW = 60, 132, 3  # columns of terminals; full lines that tell one


class Line:
    """One clean line and what is known of it."""

    __slots__ = ("at", "code", "cut", "level", "linux", "log", "number", "source", "speaker", "text", "time")

    def __init__(self, raw: Raw, text: str, source: int, speaker: int, *, time: float | None, level: str) -> None:
        self.number = raw.number  # 0 where lines were not counted: `at` tells the place
        self.at = raw.at  # bytes of the source before it
        self.text = text
        self.source = source
        self.speaker = speaker  # 0 before anybody is named
        self.time = time  # seconds on a scale of its own; comparable within the document
        self.level = level  # I, W, E, F or ""
        self.cut: str | None = None  # what stood between it and the next line where a terminal broke it: "" or a space
        self.linux = False  # its stamp was that of Linux' kernel or service manager
        self.log = is_log(text)  # printed by software, as far as its form tells
        self.code = not self.log and is_code(text)  # a script or pattern that only names an error


class Document:
    """All lines, and the texts that patterns run over."""

    def __init__(self, lines: list[Line], sources: tuple[str, ...]) -> None:
        self.lines = lines
        self.sources = sources
        self.lowered = [line.text.lower() for line in lines]

    def prose(self) -> Document:
        """The same lines with a program's own output blanked: what is left was written by people."""
        said = Document(self.lines, self.sources)
        said.lowered = [
            "" if line.log or line.code else low for line, low in zip(self.lines, self.lowered, strict=True)
        ]
        return said

    def with_facts(self, source: str, facts: list[str]) -> Document:
        """The same lines, and behind them facts that no line states (number 0) as those of one more source."""
        at = len(self.sources)
        more = [Line(Raw(0, b"", -1), fact, at, 0, time=None, level="") for fact in facts]
        return Document([*self.lines, *more], (*self.sources, source))

    @cached_property
    def text(self) -> str:
        """Lower case, one line per line."""
        return "\n".join(self.lowered)

    @cached_property
    def flat(self) -> str:
        """`text` with spaces for line breaks: same offsets."""
        return self.text.replace("\n", " ")

    @cached_property
    def said(self) -> str:
        """`text` in which a line break ends every sentence and nothing else: same offsets. A dot inside a version ends
        none, nor does a line break before a letter (text wrapped by hand); one after a field ("OS: Linux") does."""
        sentences = rx(r"\.(?!\w)").sub("\n", self.text)
        return rx(_FIELD_OR_BREAK, re.MULTILINE).sub(lambda m: m[0] if m[1] else " ", sentences)

    @cached_property
    def starts(self) -> list[int]:
        """The offset in `text` at which each line begins."""
        starts, at = [], 0
        for line in self.lowered:
            starts.append(at)
            at += len(line) + 1
        return starts

    def line_at(self, offset: int) -> int:
        """Index of the line that holds this offset of `text`."""
        return bisect_right(self.starts, offset) - 1

    @cached_property
    def wrapped(self) -> list[int]:
        """Indices of lines that may have been broken, inside a word even, before the next one."""
        lines = self.lines
        return [
            i
            for i in range(len(lines) - 1)
            if len(lines[i].text) >= WRAPPED and lines[i + 1].text and not lines[i + 1].log
        ]

    @cached_property
    def glued(self) -> tuple[str, list[int]]:
        """Lines joined without anything between, for wraps inside words, and the offset at which each begins."""
        starts, at = [], 0
        for line in self.lowered:
            starts.append(at)
            at += len(line)
        return "".join(self.lowered), starts


def build(sources: Iterable[tuple[str, Iterable[Raw]]]) -> Document:
    """A document of the kept lines of one or more sources."""
    lines: list[Line] = []
    names: list[str] = []
    for index, (name, raws) in enumerate(sources):
        names.append(name)
        _add(lines, raws, index)
    return Document(lines, tuple(names))


def _add(lines: list[Line], raws: Iterable[Raw], source: int) -> None:
    speakers = Speakers()
    clock: float | None = None
    texts = [(raw, decode(raw.data)) for raw in raws]
    width = _width([text for _, text in texts])
    for number, (raw, physical) in enumerate(texts):
        for text, prefix in clean(physical):
            speaker, said = speakers.of(text, _depth(prefix) if ">" in prefix else 0)
            time, level = _when(said, prefix)
            clock = time if time is not None else clock
            line = Line(raw, said, source, speaker, time=clock, level=level)
            line.linux = "systemd" in prefix or "kernel: " in prefix
            lines.append(line)
        if width and _full(physical, width) and number + 1 < len(texts):
            lines[-1].cut = " " if " " in (physical.rstrip("\r")[-1], texts[number + 1][1][:1]) else ""


def _width(texts: list[str]) -> int:
    """The width at which a terminal broke the lines, inside words too, or 0: no line is longer and several are that
    long. Of text that was broken between words, more lines are a little shorter."""
    lengths = [len(text.rstrip("\r")) for text in texts if text[:1] not in ("|", "+")]
    longest = max(lengths, default=0)
    full = lengths.count(longest)
    if not _NARROW <= longest <= _WIDE or full < _FEW:
        return 0
    return longest if sum(longest - 8 <= n < longest for n in lengths) <= full // 2 else 0


def _full(text: str, width: int) -> bool:
    return len(text.rstrip("\r")) == width and text[:1] not in ("|", "+")


def _depth(prefix: str) -> int:
    """How many marks of quotation stand before or after a launcher's prefix."""
    inner = prefix.lstrip("> ")
    marks = prefix[: len(prefix) - len(inner)] + inner[len(inner.rstrip("> ")) :]
    return marks.count(">")


def _when(text: str, prefix: str) -> tuple[float | None, str]:
    if not text:
        return None, ""
    first = text[0]
    level = ""
    if first in "IWEF" or any(sign in text[20:44] for sign in (": E ", ": I ", ": W ", ": F ")):
        match = rx(_LEVEL).search(text, 0, 60)
        level = (match[1] or match[2] or match[3]) if match else ""
    if first in "IWEF" and text[1:2].isdigit():
        if match := rx(_ABSL).match(text):
            return float(match[2]), match[1]
        if match := rx(_GLOG).match(text):
            return _seconds(0, *match.groups()[1:]), match[1]
    if (first.isdigit() or first in "[(") and (match := rx(_STAMP).match(text)):
        return _seconds(*match.groups()), level
    if prefix and (match := rx(_STAMP).search(prefix)):
        return _seconds(*match.groups()), level
    return None, level


def _seconds(year: int | str, month: str, day: str, hour: str, minute: str, second: str) -> float:
    """An increasing scale; months count 31 days, which keeps the order."""
    days = (int(year) * 12 + int(month)) * 31 + int(day)
    return ((days * 24 + int(hour)) * 60 + int(minute)) * 60 + float(second.replace(",", "."))
