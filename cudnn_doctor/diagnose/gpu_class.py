"""Kinds of GPUs by name and compute capability, as observations: consumer or data centre, recent or dropped."""

from __future__ import annotations

from cudnn_doctor.diagnose.ledger import Ledger
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.facts import Gpu, Snapshot
from cudnn_doctor.model.observations import TokenSet
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.model.versions import numbers

_OTHER_VENDOR = r"amd|radeon|\brx ?\d|instinct|apple|intel"
_CONSUMER = r"geforce|\b[rg]tx|\bgt ?\d|\bmx\d|titan|^\d{4}"
_WORKSTATION = r"rtx a\d|quadro"
_DATACENTER = r"\b(?:tesla|[vptkm]\d{2,3}(?!\d)\w?|a\d{2,3}(?!\d)\w?|h\d{2,3}|b\d{3}|gh200|gb\d{3}|l4\w?|l20)\b"


def classify(snapshot: Snapshot, ledger: Ledger, found: TokenSet) -> None:
    """Adds the kinds of the first GPU that has a name or a capability."""
    for gpu in value_or(snapshot.gpus, ()):
        fact = gpu.name if isinstance(gpu.name, Known) else gpu.compute_capability
        if isinstance(fact, Absent):
            continue
        lines = ledger.lines([Evidence(pointer=f"/snapshot/GPU {gpu.index}", value=fact.value, source=fact.source)])
        for kind in _kinds(gpu):
            found.add(f"gpu:{kind}", *lines)
        return


def _kinds(gpu: Gpu) -> list[str]:
    name, cc = value_or(gpu.name, "").lower(), value_or(gpu.compute_capability, "")
    if rx(_OTHER_VENDOR).search(name):
        return []
    consumer = rx(_CONSUMER).search(name) is not None and not rx(_WORKSTATION).search(name)
    kinds = ["named", *(["consumer"] if consumer else ["datacenter"] if rx(_DATACENTER).search(name) else [])]
    if not cc:
        return kinds
    number = numbers(cc)
    spans = {
        "turing-or-later-consumer": consumer and number >= (7, 5),
        "recent": number >= (8, 0),
        "old": number < (5, 0),
        "since-maxwell": number >= (5, 0),
        "fading": (5, 0) <= number < (7, 5),
        "before-cudnn": number < (3, 0),
        "capability-3": number[0] == 3,
    }
    return kinds + [kind for kind, inside in spans.items() if inside]
