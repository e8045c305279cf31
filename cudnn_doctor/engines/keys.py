"""What child and parent agree on: how plans and steps are called, how a lost context ends the child."""

from __future__ import annotations

from collections.abc import Sequence

SEPARATOR = ": "  # between a plan's key and the name of a step
POISONED = 97  # exit code of a child whose context a kernel's fault has taken


def plan_key(engine: int, knobs: Sequence[tuple[int, int]]) -> str:
    """ "e17 k2=1 k5=0": the engine's global index, the knobs that are set and their values."""
    return " ".join([f"e{engine}", *(f"k{k}={v}" for k, v in knobs)])


def engine_of(key: str) -> int:
    """The engine of a plan's key."""
    return int(key.split(" ", 1)[0][1:])


def step_name(key: str, name: str) -> str:
    """A step of a plan, or of the problem where `key` is empty."""
    return f"{key}{SEPARATOR}{name}" if key else name


def split_step(step: str) -> tuple[str, str]:
    """Key and name of a step."""
    key, _, name = step.rpartition(SEPARATOR)
    return key, name
