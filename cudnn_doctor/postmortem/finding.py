"""What a rule of the post-mortem finds: a cause, how much speaks for it, and the events that show it."""

from __future__ import annotations

from cudnn_doctor.model.base import Base
from cudnn_doctor.model.explanation import Evidence, Role

# Points on explain's scale: 5 is found, 7 with a decisive sign is confirmed.
PROVED = 30  # the kernel, the driver or the recorder says so itself, and it ends the process
SEEN = 20  # a sequence of events whose meaning was measured (reproduce), ending in the failure
LIKELY = 9
POSSIBLE = 3


class Finding(Base, frozen=True, kw_only=True):
    """One cause with its evidence, the deciding event first."""

    cause: str  # id of knowledge/causes.yaml
    points: int
    evidence: tuple[Evidence, ...]
    role: Role | None = None  # None: the cause's own


def event(text: str, because: str = "", *, source: str = "run") -> Evidence:
    """An event of the run as evidence; `source` says who saw it."""
    return Evidence(line=0, text=text, because=because, file=source)
