"""Versions that a text compares: the cuDNN loaded against the one compiled with, and those said to be installed."""

from __future__ import annotations

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event
from cudnn_doctor.logs.stated import Extract
from cudnn_doctor.logs.values import dotted
from cudnn_doctor.model.observations import TokenSet
from cudnn_doctor.model.versions import numbers

# Programs that only warn of two versions and go on: harmless by itself, a reason where a cuDNN call fails.
WARNINGS = frozenset({"trt-linked", "mxnet-linked", "paddle-warns", "opencv-warns"})
_THERE = (
    r"install|brought|have|has\b|list|pip|conda|there|put|copied|unpack|download|安装|装了|入れ|インストール|установ"
    r"|instal|설치"
)
_NOT_THERE = r"compiled|built with|loaded|requires?|needs?|runtime"


def versions(document: Document, events: list[Event], extract: Extract, tokens: TokenSet) -> None:
    """The loaded cuDNN against the one compiled with, and against those that the text says to be installed."""
    built_values: set[str] = set()
    for event in events:
        if event.kind != "version" or "run" not in event.groups:
            continue
        run = numbers(dotted(event.groups["run"]))
        if event.id in WARNINGS:
            if run < numbers(dotted(event.groups["built"])):
                tokens.add("warned-older", event.line)
            continue
        if "built" not in event.groups:  # the line was cut
            tokens.add("version-line-cut", event.line)
            _other_copies(event, extract, run, run, tokens)
            continue
        built_values.add(event.groups["built"])
        built = numbers(dotted(event.groups["built"]))
        if run[0] != built[0]:
            tokens.add("loaded-older-major" if run[0] < built[0] else "loaded-newer-major", event.line)
        elif run[:2] != built[:2]:
            tokens.add("loaded-older-minor" if run[:2] < built[:2] else "loaded-newer-minor", event.line)
        elif run[:3] != built[:3]:
            tokens.add("loaded-older-minor" if run[:3] < built[:3] else "loaded-newer-patch", event.line)
        text = document.text[document.starts[event.line] :][:400]
        if "compatibility version" in text or "compiled against" in text:
            tokens.add("old-version-message", event.line)
        for index, line in enumerate(document.lines):
            if not line.log and index != event.line and _says_installed(line.text, dotted(event.groups["built"])):
                tokens.add("built-is-installed", index)
        _other_copies(event, extract, run, built, tokens)
    if len(built_values) > 1:
        tokens.add("two-builds-named", *(e.line for e in events if "built" in e.groups))


def _other_copies(
    event: Event, extract: Extract, run: tuple[int, ...], least: tuple[int, ...], tokens: TokenSet
) -> None:
    """`states-other-cudnn`: a suitable version is stated that is not the loaded one."""
    for stated in extract.others.get("cudnn_loaded", ()):
        said = numbers(dotted(stated.value))
        if stated.line != event.line and len(said) > 1 and said[:2] != run[:2] and said >= least[:2]:
            tokens.add("states-other-cudnn", stated.line)


def _says_installed(text: str, version: str) -> bool:
    """Whether a line of prose says that this very version is there."""
    if version not in text or rx(_NOT_THERE, 2).search(text):
        return False
    exact = rx(rf"(?<![\d.]){version.replace('.', '[.]')}(?!\d)").search(text)
    return exact is not None and rx(_THERE, 2).search(text) is not None
