"""How a state is written: one module with a body, `run(session)`, and its `SCENARIO`: metadata and expectations.

```
SCENARIO = Scenario(
    id="no-context", summary="No context is current on the calling thread", phrase="no current context on the thread",
    shows="...", cause="device-context-mixup", danger="harmless",
    points=(point("no context current", v8=0, v9=0),),
)

def run(s: Session) -> None:
    ...
    s.cudnn("cudnnSetStream", handle, stream, label="no context current")
```

A point is one answer to compare, found by its label. Standard library only: children import these modules.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Danger = Literal["harmless", "kills-process", "faults-context", "fills-memory", "needs-two-gpus"]

# cuDNN versions under which every state was run. A value of a point stands for all of its major unless it says else.
MEASURED = ("8.9.7", "9.1.0", "9.14.0", "9.19.0")
SOURCE = "measured on an NVIDIA H200, driver 580.159.04, one fresh process a state"

Outcome = int | str  # a status, or how the process ended: "SIGSEGV", "hang", ...


class Between(NamedTuple):
    """A noted number that may lie anywhere from `low` to `high`."""

    low: float
    high: float


class OneOf(NamedTuple):
    """Any of several answers: the state is undefined behaviour, or a race."""

    of: tuple[Outcome, ...]


class NoneOf(NamedTuple):
    """Whatever it answers, or if the process ends before: not one of these."""

    of: tuple[Outcome, ...]


Expected = Outcome | Between | OneOf | NoneOf | None
STREAM_MISMATCH = {8: 7, 9: 2007}  # what cudnnSetStream says when handle and stream do not live together, by major
NO_MISMATCH = NoneOf((7, 2007))


class Point(NamedTuple):
    """One answer of a state and what it was in each measured version; None where the state never gets there."""

    label: str
    values: dict[str, Expected]


def point(label: str, *, v8: Expected = None, v9: Expected = None, but: dict[str, Expected] | None = None) -> Point:
    """The same for all measured versions of a major, `but` for those named."""
    values = {v: v8 if v.startswith("8.") else v9 for v in MEASURED}
    return Point(label, {**values, **(but or {})})


class Scenario(NamedTuple):
    """A state and all that belongs to it."""

    id: str
    summary: str  # one line
    phrase: str  # for "status 7 can come from ...": a noun phrase
    shows: str  # what one learns from it
    cause: str  # id of causes.yaml
    danger: Danger
    points: tuple[Point, ...]
    alone: bool = False  # a child of its own although it harms nothing: it needs another environment or process
    late: bool = False  # after the others that share its child: it changes what they would measure
    set_env: tuple[tuple[str, str], ...] = ()
    stack_limit: int | None = None  # bytes
    majors: tuple[int, ...] = (8, 9)  # cuDNN majors that have the state
    second_copy: bool = False  # needs another cuDNN copy of the same major
    source: str = SOURCE

    @property
    def shares_a_child(self) -> bool:
        """States that leave the process as it was; those that fill memory come last in it."""
        return self.danger in ("harmless", "fills-memory") and not self.alone


def expectation(of: Point, version: str) -> tuple[Expected, str]:
    """What is expected from `version` and where that comes from; ("", None) answers are `unknown`.

    Exact and same-minor versions were measured. A version between two measured ones of its major that agree is
    expected to agree with them. Anything else is unknown.
    """
    key = numbers(version)
    for measured, value in of.values.items():
        if numbers(measured)[:2] == key[:2]:
            return value, f"measured with {measured} elsewhere"
    same = [(numbers(m), m, v) for m, v in of.values.items() if numbers(m)[:1] == key[:1]]
    below = max((e for e in same if e[0] < key), default=None, key=lambda e: e[0])
    above = min((e for e in same if e[0] > key), default=None, key=lambda e: e[0])
    if below and above and below[2] == above[2] and below[2] is not None:
        return below[2], f"measured with {below[1]} and {above[1]}, which agree"
    return None, ""


def numbers(version: str) -> tuple[int, ...]:
    """(9, 19, 0) of "9.19.0"."""
    return tuple(int(p) for p in version.split(".")[:3] if p.isdigit())


def play(wire: Any, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """Entry of a child's task: opens the session, unless the module does so itself, and makes `args["state"]`."""
    from importlib import import_module

    from cudnn_doctor.live.session import session

    module = import_module(f"cudnn_doctor.scenarios.{args['state']}")
    if hasattr(module, "run_bare"):
        module.run_bare(wire, args)
    else:
        module.run(session(wire, args, shared))
