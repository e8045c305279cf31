"""The machine that a text shows through its keyhole: each fact with the line that states it."""

from __future__ import annotations

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event
from cudnn_doctor.logs.stated import Extract, in_windows, in_wsl
from cudnn_doctor.logs.values import WISHED, Stated
from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.stated import NOT_STATED, StatedMachine
from cudnn_doctor.model.versions import numbers

_CUDNN_FOR = (
    r"cudnn.{0,60}?(?:for|built for|of) cuda[- ]?(\d{1,2}(?:\.\d)?)|cudnn-(\d{1,2}\.\d)-(?:linux|windows|osx)"
    r"|libcudnn\d[^\n]{0,30}\+cuda(\d{1,2}\.\d)|cudnn-[\w.-]*_cuda(\d{1,2})"
)
_CUDNN_FOR_SIGNS = ("for cuda", "of cuda", "cudnn-", "+cuda")
_JIT = r"nvidia-cudnn-jit-cu\d\d"
_OPENED_MAJORS = ("7", "8", "9", "10")  # the loader of TensorFlow named the libraries of these by CUDA's version


def where(document: Document, index: int) -> str:
    """The place of a line, for people: "train.log line 12", or its offset where the lines were not counted."""
    line = document.lines[index]
    place = f"line {line.number}" if line.number else f"byte {line.at}"
    return f"{document.sources[line.source]} {place}"


def stated_machine(document: Document, extract: Extract, events: list[Event]) -> StatedMachine:
    """What is stated, as facts. `NOT_STATED` for the rest."""

    def fact(stated: Stated | None) -> Known[str] | Absent:
        return NOT_STATED if stated is None else known(stated.value, where(document, stated.line))

    facts = extract.facts
    said = facts["os"].value if "os" in facts else ""
    return StatedMachine(
        os=fact(facts.get("os")),
        wsl=known(True, "the text") if in_wsl(document, said) else NOT_STATED,
        windows=known(True, "the text") if in_windows(document, said) else NOT_STATED,
        driver=fact(facts.get("driver")),
        gpu=fact(facts.get("gpu")),
        compute_capability=fact(_capability(events)),
        framework=fact(facts.get("framework")),
        framework_version=fact(facts.get("framework_version")),
        installer=known("pip", "the text") if rx(r"\bpip3?\b").search(document.text) else NOT_STATED,
        cuda=fact(facts.get("cuda")),
        cuda_opened=fact(_opened(events)),
        cudnn_loaded=fact(facts.get("cudnn_loaded")),
        cudnn_built=fact(facts.get("cudnn_built")),
        cudnn_for_cuda=fact(_made_for(document, facts.get("cuda"))),
        cudnn_kind=known("jit", "the text") if rx(_JIT).search(document.text) else NOT_STATED,
    )


def _capability(events: list[Event]) -> Stated | None:
    """The compute capability that a line names."""
    for event in events:
        if event.id == "torch-arch":
            sm = event.groups["sm"].removeprefix("sm_")
            return Stated(f"{sm[:-1]}.{sm[-1]}", event.line)
        if event.id == "capability":
            cc = event.groups.get("cc", "")
            if "major" in event.groups:
                cc = f"{event.groups['major']}.{event.groups['minor']}"
            elif cc.isdigit():  # 860 of darknet, 86
                cc = cc[:2] if len(cc) == 3 and cc[0] != "1" else cc
                cc = f"{cc[:-1]}.{cc[-1]}"
            if 2 <= int(cc.split(".")[0]) <= 13:
                return Stated(cc, event.line)
    return None


def _opened(events: list[Event]) -> Stated | None:
    """The oldest CUDA whose libraries the log shows opened."""
    found: list[Stated] = []
    for event in events:
        opened = event.groups.get("opened", "")
        if len(opened) == 3 and "." not in opened:  # cudart64_101.dll
            opened = f"{opened[:-1]}.{opened[-1]}"
        if "." not in opened:
            opened = f"{opened}.2"  # libcublas.so.10 is of CUDA 10.1 or 10.2
        if opened.split(".")[0] in _OPENED_MAJORS:
            found.append(Stated(opened, event.line))
    return min(found, key=lambda s: numbers(s.value), default=None)


def _made_for(document: Document, cuda: Stated | None) -> Stated | None:
    """The CUDA that people say the cuDNN is for: of several the one that is not the CUDA in use."""
    if not any(sign in document.text for sign in _CUDNN_FOR_SIGNS):
        return None
    found: list[Stated] = []
    for match in rx(_CUDNN_FOR).finditer(document.said):
        line = document.line_at(match.start())
        wished = rx(WISHED).search(document.said, max(0, match.start() - 48), match.start())  # "instance, download"
        if not wished and not document.lines[line].log:
            found.append(Stated(next(g for g in match.groups() if g), line))
    return next((s for s in found if cuda is None or not _same(s.value, cuda.value)), found[0] if found else None)


def _same(one: str, other: str) -> bool:
    length = min(one.count("."), other.count(".")) + 1
    return numbers(one)[:length] == numbers(other)[:length]
