"""What the machine itself shows, as observations beside those of the text."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.diagnose.as_snapshot import PLACE
from cudnn_doctor.diagnose.given import GivenFinding
from cudnn_doctor.diagnose.judged import LOADED, OBSERVED
from cudnn_doctor.diagnose.ledger import Ledger
from cudnn_doctor.logs.patterns import Knowledge
from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.observations import TokenSet
from cudnn_doctor.rules import all_rules, rules_of
from cudnn_doctor.rules.base import Case

_FULL = 0.93  # of a GPU's memory in use: too little is left for a handle and its workspace


def findings(snapshot: Snapshot, view: Snapshot, knowledge: Knowledge) -> tuple[GivenFinding, ...]:
    """The problems that the rules of `check` find: what fits with what in the `view` of text and machine together, all
    else on the machine itself. Without those that `judged` makes observations of."""
    compatibility = {rule.code for rule in rules_of("compat")}
    both, alone = (Case(s, load_matrix=lambda: knowledge.matrix) for s in (view, snapshot))
    stated = any(copy.path == PLACE for copy in view.cudnn)
    rules = (rule for rule in all_rules() if rule.code not in OBSERVED and not (stated and rule.code in LOADED))
    found = (f for rule in rules for f in rule.apply(both if rule.code in compatibility else alone))
    return tuple(
        GivenFinding(code=f.code, status=f.status, severity=f.severity, title=f.title, causes=f.causes)
        for f in found
        if f.status == "problem"
    )


def observe_machine(snapshot: Snapshot, ledger: Ledger, found: TokenSet) -> None:
    """Adds what a log would have said of the machine, where it does not."""
    for name, fact in _observed(snapshot):
        found.add(name, ledger.line(fact))
    if not any(name.startswith("os:") for name in found.found) and isinstance(snapshot.host.os, Known):
        found.add(f"os:{_system(snapshot)}", ledger.line(f"system: {snapshot.host.os.value}"))


def _system(snapshot: Snapshot) -> str:
    if value_or(snapshot.host.wsl, False):
        return "wsl"
    return "windows" if value_or(snapshot.host.os, "").startswith("Windows") else "linux"


def _observed(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """(observation, the fact in words)."""
    for gpu in value_or(snapshot.gpus, ()):
        used, total = value_or(gpu.memory_used, 0), value_or(gpu.memory_total, 0)
        if used > _FULL * total > 0:
            yield "little-memory-free", f"GPU {gpu.index}: {used >> 20} MiB of {total >> 20} MiB in use"
        if value_or(gpu.display_active, False):
            yield "display", f"GPU {gpu.index}: a display is active on it"
        busy = [p for p in value_or(gpu.processes, ()) if p.kind == "compute"]
        if busy:
            names = ", ".join(value_or(p.name, f"process {p.pid}") for p in busy)
            yield "other-process", f"GPU {gpu.index}: in use by {names}"
    for xid in value_or(snapshot.xids, ()):
        yield f"xid:{xid.code}", f"NVRM: Xid (PCI:{xid.pci}): {xid.code}, {xid.text}"
    container = value_or(snapshot.host.container, "none")
    if container != "none":
        yield "container", f"container: {container}"
