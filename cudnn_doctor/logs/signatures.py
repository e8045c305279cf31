"""Finds the wordings of signatures.yaml and statements.yaml in a document.

A pattern is compiled only when one of its literals occurs, and runs only in a window around each occurrence: the cost
is linear in the input and a hostile line cannot make an expression run away.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import msgspec

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.regex import rx

BACK, AHEAD = 200, 420  # characters around a literal in which its pattern must match
MAX_PER_ANCHOR = 30  # occurrences looked at, of which the last third from the end of the document
_NEGATABLE = frozenset({"cudnn", "fault", "cuda", "memory", "loader", "arch", "driver", "process", "says"})
_LASTING = frozenset({"cudnn", "version"})  # kinds whose groups decide
GLUE_LIMIT = 8_000  # lines; larger documents are logs, which nobody wraps by hand
SENTENCE = "[^.\\n]"  # so written in the YAML: a character of the same sentence, see Document.said
_SPACE = r"(\\.|\[(?:\\.|[^\]\\])*\])| (\??)"


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of signatures.yaml or statements.yaml."""

    id: str
    kind: str
    anchors: list[str]
    form: str  # the text that the pattern runs over, an attribute of Document: flat, said or text
    pattern: str
    framework: str = ""
    call: str = ""
    suspected: bool = False  # "posts say it is out of memory" is none
    also: list[str] = []  # one of these must occur as well
    success: bool = False  # it says that something works; "does not work as well" is the contrary

    @property
    def negatable(self) -> bool:
        """Whether the words before may deny it: "no out of memory" is none."""
        return self.kind in _NEGATABLE


class Event(msgspec.Struct, frozen=True):
    """One match: which signature, on which line (index into the document), what its groups caught."""

    id: str
    kind: str
    line: int
    groups: dict[str, str]
    framework: str = ""
    call: str = ""


def form(pattern: str) -> str:
    """The text that a pattern is for. Those that need no lines run where line breaks are spaces, and are compiled in
    two thirds of the time."""
    if SENTENCE in pattern:
        return "said"
    bare = re.sub(r"\[(?:\\.|[^\]\\])*\]", "", pattern)
    lines = "\\n" in pattern or "[^" in pattern or re.search(r"(?<!\\)[.^$]", re.sub(r"\(\?[!=<]", "", bare))
    return "text" if lines else "flat"


def _compiled(signature: Signature) -> re.Pattern[str]:
    if signature.form == "text":
        return _spaced(signature.pattern, r"[ \n]")
    return rx(signature.pattern.replace(SENTENCE, "."))


def _spaced(pattern: str, between: str) -> re.Pattern[str]:
    """The pattern with its spaces standing for something else."""

    def spaced(match: re.Match[str]) -> str:
        other: str | None = match[1]  # an escape or a character class
        if other is None:
            return between if between.endswith("?") else between + match[2]  # a second "?" would make it lazy
        return other.replace(" ", " \\n") if other[0] == "[" else other

    return rx(rx(_SPACE).sub(spaced, pattern), re.MULTILINE)


def find(document: Document, signatures: list[Signature]) -> list[Event]:
    """All matches, in the document's order."""
    events: list[Event] = []
    flat = document.flat
    glue = len(document.lines) <= GLUE_LIMIT and bool(document.wrapped)
    broken = frozenset(document.wrapped) if glue else frozenset()
    for signature in signatures:
        places = [at for anchor in signature.anchors for at in occurrences(flat, anchor)]
        found = len(events)
        if signature.also and not any(word in flat for word in signature.also):
            continue
        if places:
            events.extend(_matches(document, signature, places))
        if glue and len(events) == found and signature.kind != "says":
            events.extend(_glued(document, signature))
        elif glue and signature.kind in _LASTING and any(e.line in broken for e in events[found:]):
            # What is optional, or a word's end, may lie behind the break: the match that says more counts.
            for whole in _glued(document, signature):
                events[found:] = [whole if _says_less(e, whole) else e for e in events[found:]]
    events.sort(key=lambda e: e.line)
    return events


def _says_less(event: Event, whole: Event) -> bool:
    """Whether another match on the same line caught more."""
    return event.line == whole.line and sum(map(len, event.groups.values())) < sum(map(len, whole.groups.values()))


def occurrences(text: str, literal: str) -> list[int]:
    """Offsets of a literal: the first ones, and some of the last of very many."""
    places: list[int] = []
    at = text.find(literal)
    while at >= 0 and len(places) < MAX_PER_ANCHOR * 2 // 3:
        places.append(at)
        at = text.find(literal, at + 1)
    if at >= 0:
        last: list[int] = []
        end = len(text)
        while len(last) < MAX_PER_ANCHOR // 3 and (end := text.rfind(literal, at, end)) >= 0:
            last.append(end)
        places += reversed(last)
    return places


def _matches(document: Document, signature: Signature, places: list[int]) -> Iterator[Event]:
    pattern, text = _compiled(signature), getattr(document, signature.form)
    places = sorted(set(places))
    for low, high in _windows(places):
        for match in pattern.finditer(text, low, min(len(text), high)):
            after = bisect_left(places, match.start())
            if after == len(places) or places[after] >= match.end():
                continue
            # The outcome is the reporter's, whoever gave the advice before it.
            line = document.line_at(match.end() - 1 if signature.success else match.start())
            undone = signature.success and (
                _undone(document.flat[max(0, match.start() - 16) : match.end()]) or _no_help(document, signature, match)
            )
            if not undone and _counts(document, signature, line, document.text, match.start()):
                yield _event(signature, line, match)


def _windows(places: list[int]) -> Iterator[tuple[int, int]]:
    """The stretches around the literals, joined where they meet."""
    low, high = 0, 0
    for at in places:
        if at - BACK > high:
            if high:
                yield low, high
            low = max(0, at - BACK)
        high = at + AHEAD
    yield low, high


def _counts(document: Document, signature: Signature, line: int, text: str, at: int) -> bool:
    """Whether a match says what it seems to say: no script, no negation, no hearsay."""
    place = document.lines[line]
    if place.code or (signature.negatable and negated(text, at)):
        return False
    return place.log or not signature.suspected or not hearsay(text, at) or _tried(text, at)


def _glued(document: Document, signature: Signature) -> Iterator[Event]:
    """Matches that only appear when a line break inside a word is taken out."""
    text, starts = document.glued
    breaks = [starts[i + 1] for i in document.wrapped]
    pattern: re.Pattern[str] | None = None
    for anchor in signature.anchors:
        for at in occurrences(text, anchor.replace("\n", ""))[:8]:
            after = bisect_right(breaks, at - BACK)
            if after == len(breaks) or breaks[after] > at + AHEAD:  # no break near
                continue
            pattern = pattern or _spaced(signature.pattern, " ?")
            for match in pattern.finditer(text, max(0, at - BACK), min(len(text), at + AHEAD)):
                line = bisect_right(starts, match.start()) - 1
                crossed = set(range(line, bisect_right(starts, match.end() - 1) - 1))
                broken = bool(crossed) and crossed <= set(document.wrapped)
                if broken and _counts(document, signature, line, text, match.start()):
                    yield _event(signature, line, match)
                    return


def _event(signature: Signature, line: int, match: re.Match[str]) -> Event:
    groups = {k.rstrip("0123456789"): v for k, v in match.groupdict().items() if v is not None}
    return Event(signature.id, signature.kind, line, groups, signature.framework, signature.call)


_NO_WORDS = ("no", "n't", "n’t", "isn", "aren", "without", "never", "kein", "nicht", "sem", "sin", "sans", "没有",
             "不是", "无", "なし", "ではな", "없")  # fmt: skip
_NEGATION = (
    r"(?:\bno|\bnot|\bnot an?|\bnever|\bwithout(?: any)?|\bisn.t|\baren.t|\bkein\w*|\bnicht|\bsem|\bsin|\bsans"
    r"|没有|不是|无|なし|ではな|없)[ \n](?:\w+[ \n]){0,2}$"
)


# People write what they read or suspect: "posts say that the memory is full", "could it be the watchdog?" But
# "as others do, I reduced it" tells what was done.
_HEARSAY = (
    r"\b(?:posts?|threads?|people|someone|others|google|stack ?overflow|answers?|internet|forums?|read|suggest\w*|says?"
    r"|said|supposedly|maybe|perhaps|suspect|could (?:it|this|that)|might|whether|guess|think|asked if|looks like|idea"
    r"|theory|wonder\w*|generally|usually"
    r"|(?:know|understand|sure|tell|see) (?:if|whether))\b(?:(?!, (?:i|we) )[^.\n]|\.(?=\d)|\n(?=[^\W\d_])){0,130}$"
)


_MESSAGE = r"\b\w*(?:error|exception|warning)(?: \d+)?: "


def hearsay(text: str, at: int) -> bool:
    """Whether the sentence before reports what others say or what one suspects. What follows an exception's name is a
    program's message, whatever words it has."""
    before = text[max(0, at - 160) : at]
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return rx(_HEARSAY).search(before) is not None and rx(_MESSAGE).search(line) is None


def _tried(text: str, at: int) -> bool:
    """Whether the sentence tells one's own experience: "his suggestion solved the issue for me"."""
    return rx(r"[^.?\n]{0,120}\b(?:solv|fix|work|help)\w*(?: [\w']+){0,4} for me\b").match(text, at) is not None


_UNDONE = (
    r"(?:n.t|\bnot|\bnever|\bno longer|\bnicht|não|\bno|\bne|\bpas) (?:\w+ ){0,2}(?:work|help|run|fix|solv|go\b|läuf"
    r"|funktion|geht|ajud|funciona|roda|marche)"
    r"|(?:without|no) (?:any )?success|to no avail|ohne erfolg|没用|不行|不管用|无效|没有(?:用|解决|效果)|ダメ|効果な"
)


def _undone(text: str) -> bool:
    return rx(_UNDONE).search(text) is not None


_NO_HELP = (
    r"(?:did|does|do|has|had|have)(?: not|n.t) (?:\w+ ){0,2}(?:help|do(?:ne)? anything|chang|fix|solv|cur|matter)"
    r"|(?:did|does|had|has|made) (?:nothing|no (?:effect|difference|change))|nothing changed|changed nothing|no effect"
    r"|without (?:any )?(?:effect|success)|to no avail|hilft nicht|half nicht|ohne (?:wirkung|erfolg)"
    r"|不管用|没(?:有)?(?:用|效果)|不起作用|не помог|no (?:sirvi|ayud)|não (?:ajud|resolv)|non (?:aiut|serv)"
    r"|n.a rien chang|効果(?:が)?な"
)
_LATER = 4000  # characters after a cure within which it may be taken back


def _no_help(document: Document, signature: Signature, match: re.Match[str]) -> bool:
    """Whether a later sentence names the same cure and says that it did not help."""
    rest = document.flat[match.end() : match.end() + _LATER]
    for anchor in signature.anchors:
        if anchor not in match[0]:
            continue
        for at in occurrences(rest, anchor):
            start = match.end() + at
            if rx(_NO_HELP).search(document.said[start : start + 160].split("\n")[0]):
                return True
    return False


def negated(text: str, at: int) -> bool:
    """Whether the words before say that it is not there: "no", "without any", "not an" ..."""
    before = text[max(0, at - 40) : at]
    return any(word in before for word in _NO_WORDS) and rx(_NEGATION).search(before) is not None
