"""Turns what a text shows into the observations that ranking.yaml speaks of, each with the lines it rests on.

Ids of signatures and statements are observations themselves. Derived here and in `observe_versions`, `observe_memory`:
status:..., kind:..., os:..., framework:..., xid:... What the compatibility rules say of the stated facts is added by
`diagnose.judged`.
"""

from __future__ import annotations

from collections.abc import Mapping

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.observe_memory import memory
from cudnn_doctor.logs.observe_versions import WARNINGS, versions
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event
from cudnn_doctor.logs.stated import Extract, in_windows, in_wsl
from cudnn_doctor.logs.values import major
from cudnn_doctor.model.observations import TokenSet
from cudnn_doctor.model.versions import numbers

# Status names as texts cut, shorten and misspell them.
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


def observe(document: Document, events: list[Event], extract: Extract, statuses: Mapping[str, str]) -> TokenSet:
    """All observations of one text. `statuses`: see `knowledge.compiled`."""
    tokens = TokenSet()
    for event in events:
        _own(event, statuses, tokens)
    _order(document, events, tokens)
    _loader(document, events, extract, tokens)
    _pauses(document, tokens)
    versions(document, events, extract, tokens)
    memory(document, events, tokens)
    _frameworks(extract, tokens)
    _system(document, extract, tokens)
    _served_by_torch(document, events, tokens)
    return tokens


def _own(event: Event, statuses: Mapping[str, str], tokens: TokenSet) -> None:
    """What one event says by itself."""
    tokens.add(event.id, event.line)
    if failing(event) or event.kind == "noise":
        tokens.add("kind:warning" if event.id in WARNINGS else f"kind:{event.kind}", event.line)
    if status := status_of(event, statuses):
        tokens.add(f"status:{status}", event.line)
    if "xid" in event.groups:
        tokens.add(f"xid:{event.groups['xid']}", event.line)
    if event.groups.get("call") == "cudnncreate" or event.id == "create-handle":
        tokens.add("create-call", event.line)


def status_of(event: Event, statuses: Mapping[str, str]) -> str:
    """The cuDNN status that an event names, in one spelling for all majors; "" when it names none. A number that is not
    in the table has the name of its category, which cuDNN 9 puts into the thousands."""
    text = event.groups.get("status", "")
    for name, pattern in _STATUS_WORDS:
        if text and rx(rf"(?:cudnn[_ ]?status[_ ]?)?(?:{pattern})").match(text):
            return name
    code = event.groups.get("code", "")
    if event.kind != "cudnn" or not code.isdigit():
        return ""
    return statuses.get(code) or statuses.get(f"{int(code) // 1000}...", "")


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
                if major(stated.value) not in ("", number[1]):
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


def _frameworks(extract: Extract, tokens: TokenSet) -> None:
    framework = extract.facts.get("framework")
    if framework is None:
        return
    for name in extract.mentioned:
        if name in ("tensorflow", "jax", "pytorch", "ctranslate2") or name == framework.value:
            tokens.add(f"framework:{name}", framework.line)
        if name == "faster-whisper":
            tokens.add("framework:ctranslate2", framework.line)
    if extract.mentioned[:1] == ["pytorch"]:
        tokens.add("framework:pytorch-alone", framework.line)


def _system(document: Document, extract: Extract, tokens: TokenSet) -> None:
    stated = extract.facts.get("os")
    said, line = (stated.value, stated.line) if stated else ("", -1)
    if in_wsl(document, said):
        tokens.add("os:wsl", line)
    elif in_windows(document, said):
        tokens.add("os:windows", line)
    elif said and "mac" not in said and "os x" not in said:
        tokens.add("os:linux", line)


def _served_by_torch(document: Document, events: list[Event], tokens: TokenSet) -> None:
    """`torch-cc-older`, `torch-cc-newer`: PyTorch lists what it is built for, and code for this GPU is not of it. In
    between it only warns: code for 8.0 runs on 8.7."""
    for event in events:
        if event.id != "torch-cc-list":
            continue
        own = numbers(event.groups["cc"])
        after = document.flat[document.starts[event.line] :][:2500]
        listed = [numbers(m) for m in rx(r"- (\d{1,2}\.\d) which supports").findall(after)]
        if shown := rx(r"was built for: (\d[\d., ]+\d)").search(after):
            listed += [numbers(n) for n in rx(r"\d+\.\d").findall(shown[1])]
        if span := rx(r"supported by this version of pytorch is +\((\d{1,2}\.\d)\) ?- ?\((\d{1,2}\.\d)\)").search(
            after
        ):
            listed += [numbers(span[1]), numbers(span[2])]
        least, most = (min(listed), max(listed)) if listed else ((7, 5), (9, 0))
        if own < least or own[0] > most[0]:
            tokens.add("torch-cc-older" if own < least else "torch-cc-newer", event.line)
