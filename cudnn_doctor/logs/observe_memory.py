"""Memory that a text shows: what is free, and sizes of which one works and a larger one does not."""

from __future__ import annotations

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event
from cudnn_doctor.model.observations import TokenSet

_LITTLE = 300 << 20  # bytes of free memory that are too few for a handle and its workspace
_ENOUGH = 1 << 30  # bytes with which any handle can be made
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_FAILS = r"error|fail|crash|oom|abort|stop|not work|报错|出错|失败|エラー|오류|ошибк|fehler|erro\b|erreur"
_WORKS = r"works|worked|fine|trains|\bok\b|runs|passes|正常|可以|没问题|動|정상|работает|läuft|funciona|roda|marche"


def memory(document: Document, events: list[Event], tokens: TokenSet) -> None:
    """Free memory that the text shows, and sizes of which one works and a larger one does not."""
    for event in events:
        free, total = _bytes(event.groups.get("free", "")), _bytes(event.groups.get("total", ""))
        if event.id == "memory-usage" and free < _LITTLE:
            tokens.add("little-memory-free", event.line)
        if event.id == "memory-usage" and free >= _ENOUGH:
            tokens.add("memory-is-free", event.line)
        if event.id == "free-at-start" and 0 < free < max(_LITTLE, total // 10):
            tokens.add("little-memory-at-start", event.line)
        if event.id == "smi-memory" and int(event.groups["used"]) > 0.93 * int(event.groups["total"]):
            tokens.add("little-memory-free", event.line)
    sizes: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for index, line in enumerate(document.lines):
        text = document.lowered[index]
        if line.log or not ("batch" in text or "threads" in text or "workers" in text):
            continue
        for match in rx(r"(?:batch(?:[ _-]?size)?|threads|workers)\D{0,8}(\d{1,5})([^,;.]{0,60})").finditer(text):
            for outcome, pattern in ((False, _FAILS), (True, _WORKS)):
                if rx(pattern).search(match[2]):
                    sizes[outcome].append((int(match[1]), index))
                    break
    if sizes[True] and sizes[False] and min(sizes[True])[0] < max(sizes[False])[0]:
        lines = (min(sizes[True])[1], max(sizes[False])[1])
        tokens.add("size-threshold", *lines)
        tokens.add("smaller-works", *lines)


def _bytes(text: str) -> int:
    match = text and rx(r"(\d+(?:\.\d+)?) ?([kmg]?)i?b?").fullmatch(text)
    return int(float(match[1]) * _UNITS.get(match[2], 1)) if match else 0
