"""States made on live handles: one file a state, with its metadata, its expectations and its body."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module

from cudnn_doctor.scenarios.base import Danger, Scenario

ORDER: tuple[Danger, ...] = ("harmless", "kills-process", "needs-two-gpus", "fills-memory", "faults-context")


@cache
def scenarios() -> dict[str, tuple[str, Scenario]]:
    """Every state: id to (module name, scenario); the harmless first, those that fault the context last."""
    found = []
    for file in os.listdir(__path__[0]):  # pkgutil would do, and cost 25 ms
        name, ending = os.path.splitext(file)
        if ending == ".py" and not name.startswith("_"):
            state = getattr(import_module(f"{__name__}.{name}"), "SCENARIO", None)
            if isinstance(state, Scenario):
                found.append((name, state))
    found.sort(key=lambda f: (ORDER.index(f[1].danger), f[1].late, f[1].id))
    return {state.id: (name, state) for name, state in found}
