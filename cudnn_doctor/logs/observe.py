"""Turns events and facts into the tokens that ranking.yaml speaks of, each with the lines it rests on.

Ids of signatures and statements are tokens themselves. Derived here and in `compare`: status:..., kind:..., os:...,
framework:..., gpu:..., xid:..., and the comparisons of stated facts with what part 1's compatibility rules say of them.
"""

from __future__ import annotations

from cudnn_doctor.logs import compare
from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event
from cudnn_doctor.logs.stated import Extract
from cudnn_doctor.model.observations import Tokens, TokenSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STATUS_8 = {1: "not-initialized", 2: "alloc-failed", 3: "bad-param", 4: "internal-error", 5: "invalid-value",
             6: "arch-mismatch", 7: "mapping-error", 8: "execution-failed", 9: "not-supported", 10: "license-error",
             11: "runtime-prerequisite-missing", 14: "version-mismatch"}  # fmt: skip
_STATUS_9 = {1001: "not-initialized", 1002: "version-mismatch", 1008: "version-mismatch", 2007: "stream-mismatch",
             4003: "alloc-failed", 4004: "alloc-failed", 3007: "arch-mismatch"}  # fmt: skip
_CATEGORY_9 = {1: "not-initialized", 2: "bad-param", 3: "not-supported", 4: "internal-error", 5: "execution-failed"}
_STATUS_WORDS = (
    ("not-initialized", "not[_ ]?init"), ("alloc-failed", "alloc"), ("stream-mismatch", "bad_param_stream"),
    ("bad-param", "bad[_ ]?param"), ("internal-error", "int?ernal"), ("arch-mismatch", "arch|architecture"),
    ("mapping-error", "map+ing"), ("execution-failed", "exec"), ("not-supported", "not[_ ]?supp"),
    ("version-mismatch", "version|sublibrary"), ("invalid-value", "invalid"),
)  # fmt: skip
_FAILING = frozenset({"cudnn", "fault", "cuda", "memory", "version", "loader", "arch", "driver", "process", "symptom"})
_STREAM = frozenset({"set-stream", "set-stream-check", "set-stream-old"})
_SECOND = 1.0  # a CUDA fault printed this much after the cuDNN line still came first
_SILENCE = 60.0  # seconds between two lines that make a long pause
_WORTH_A_PAUSE = 4  # lines between which the pause lies


def failing(event: Event) -> bool:
    """Whether the event is a sign that something went wrong."""
    return event.kind in _FAILING


def derive(document: Document, events: list[Event], extract: Extract, tables: dict[str, Any]) -> Tokens:
    """All tokens of one case."""
    tokens = TokenSet()
    for event in events:
        _own(event, tokens)
    _order(document, events, tokens)
    _loader(document, events, extract, tokens)
    _pauses(document, tokens)
    compare.versions(document, events, extract, tokens)
    compare.memory(document, events, tokens)
    compare.machine(document, events, extract, tables, tokens)
    return tokens.found


def _own(event: Event, tokens: TokenSet) -> None:
    """What one event says by itself."""
    tokens.add(event.id, event.line)
    if failing(event) or event.kind == "noise":
        tokens.add("kind:warning" if event.id in compare.WARNINGS else f"kind:{event.kind}", event.line)
    if status := status_of(event):
        tokens.add(f"status:{status}", event.line)
    if "cause" in event.groups:
        tokens.add(f"found:{event.groups['cause']}", event.line)
    if "xid" in event.groups:
        tokens.add(f"xid:{event.groups['xid']}", event.line)
    if event.groups.get("call") == "cudnncreate" or event.id == "create-handle":
        tokens.add("create-call", event.line)


def status_of(event: Event) -> str:
    """The cuDNN status that an event names, in one spelling for all majors; "" when it names none."""
    text = event.groups.get("status", "")
    for name, pattern in _STATUS_WORDS:
        if text and rx(rf"(?:cudnn[_ ]?status[_ ]?)?(?:{pattern})").match(text):
            return name
    code = event.groups.get("code", "")
    if event.kind != "cudnn" or not code.isdigit():
        return ""
    number = int(code)
    if number < 100:
        return _STATUS_8.get(number, "")
    return _STATUS_9.get(number) or _CATEGORY_9.get(number // 1000, "")


def _order(document: Document, events: list[Event], tokens: TokenSet) -> None:
    """What came first: by time where both have a stamp, else by place.

    `fault-first`: a CUDA fault before the first cuDNN failure. `cudnn-failed-before`: another cuDNN call failed before
    the stream could not be set.
    """
    cudnn = [e for e in events if e.kind == "cudnn"]
    streams = [e for e in cudnn if e.id in _STREAM]
    for event in events:
        if event.kind == "fault" and cudnn and _before(document, event, _first(document, cudnn)):
            tokens.add("fault-first", event.line)
        if event.id in ("dnn-status", "enqueue", "rnn") and streams and _before(document, event, streams[0]):
            tokens.add("cudnn-failed-before", event.line)


def _first(document: Document, events: list[Event]) -> Event:
    def when(event: Event) -> tuple[float, int]:
        time = document.lines[event.line].time
        return (time if time is not None else float("inf")), event.line

    return min(events, key=when)


def _before(document: Document, event: Event, other: Event) -> bool:
    here, there = document.lines[event.line].time, document.lines[other.line].time
    if here is None or there is None:
        return event.line <= other.line
    return here <= there + _SECOND


def _loader(document: Document, events: list[Event], extract: Extract, tokens: TokenSet) -> None:
    """Which file is really missing, and whether a cuDNN of another major version is there."""
    for event in events:
        missing, want = event.groups.get("missing", ""), event.groups.get("want", "")
        if event.id == "helper-own":
            tokens.add("helper-named", event.line)
        if event.id in ("cudnn8-part", "cnn-infer-warning") and missing and "cudnn" not in missing:
            tokens.add("helper-named", event.line)
        if event.id == "cudnn8-part" and event.groups.get("win") == "126":
            tokens.add("cudnn8-part-windows", event.line)
        if event.id == "cudnn8-part" and "symbol" in event.groups:
            tokens.add("part-symbol", event.line)
        if event.id == "dlopen-cudnn":
            after = document.lowered[event.line].partition("dlerror:")[2].strip()
            named = after.split(":")[0].strip()
            if named and "cannot open" in after and "cudnn" not in named:
                tokens.add("dlopen-dependency", event.line)
                tokens.add("helper-named", event.line)
        wanted = event.groups.get("list", "") or want
        number = rx(r"(?:64_|\.so\.)(\d+)").search(wanted)
        if event.kind == "loader" and number and "cudnn" in wanted:
            for stated in extract.others.get("cudnn_loaded", ()):
                if compare.major(stated.value) not in ("", number[1]):
                    tokens.add("installed-other-major", event.line, stated.line)
    if "cudnn" in document.text:
        tokens.add("cudnn-named", next(i for i, line in enumerate(document.lowered) if "cudnn" in line))


def _pauses(document: Document, tokens: TokenSet) -> None:
    """`long-gap`: a pause of minutes between two stamped lines with next to nothing between them."""
    before: tuple[float, int] | None = None
    for index, line in enumerate(document.lines):
        if line.time is None or not line.level:
            continue
        near = before is not None and line.level in "IW" and index - before[1] <= _WORTH_A_PAUSE
        if before and near and _SILENCE <= line.time - before[0] <= 3600:
            tokens.add("long-gap", before[1], index)
            return
        before = (line.time, index)
