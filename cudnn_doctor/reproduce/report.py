"""The document of `reproduce`, and what NVML says of the devices that it uses. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cudnn_doctor import __version__
from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.facts import Gpu, GpuProcess, Snapshot
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.report import Tool
from cudnn_doctor.model.reproduction import Copy, Device, Reproduction
from cudnn_doctor.model.verdict import exit_code, verdict_of
from cudnn_doctor.reproduce.compare import ran, rows
from cudnn_doctor.reproduce.conclude import conclusions
from cudnn_doctor.rules.states import findings
from cudnn_doctor.scenarios import scenarios


def report(results: Sequence[ScenarioResult], copies: Sequence[Copy], devices: Sequence[Device]) -> Reproduction:
    """The document over results, live or replayed."""
    table = rows(results)
    harmless = frozenset(k for k, (_, s) in scenarios().items() if s.danger == "harmless")
    found = findings(results, table, harmless)
    verdict, reason = verdict_of(found)
    if verdict != "problem" and not any(map(ran, results)):
        verdict, reason = "no-verdict", "no state was run"
    return Reproduction(
        tool=Tool(version=__version__),
        verdict=verdict,
        exit_code=exit_code(verdict, found),
        reason=reason,
        rows=table,
        conclusions=conclusions(results, copies, devices),
        findings=found,
        scenarios=tuple(results),
    )


def devices_of(snapshot: Snapshot, ordinals: Sequence[int], environ: Mapping[str, str]) -> tuple[Device, ...]:
    """The devices by CUDA ordinal with what NVML says of them.

    CUDA and NVML number differently unless CUDA_DEVICE_ORDER is PCI_BUS_ID or all cards are alike. Where it is not
    sure which card an ordinal is, everyone on any card counts as its user.
    """
    gpus = value_or(snapshot.gpus, ())
    if not gpus:
        why = (
            snapshot.gpus if isinstance(snapshot.gpus, Absent) else Absent(reason="not-found", detail="NVML lists none")
        )
        return tuple(Device(ordinal=o, users=why, memory_free=why, memory_used=why) for o in ordinals)
    return tuple(_device(o, _gpus_of(o, gpus, environ)) for o in ordinals)


def _gpus_of(ordinal: int, gpus: Sequence[Gpu], environ: Mapping[str, str]) -> Sequence[Gpu]:
    """The card, or all that it may be."""
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    entry = str(ordinal)
    if listed is not None:
        shown = [e.strip() for e in listed.split(",")]
        if ordinal >= len(shown):
            return gpus
        entry = shown[ordinal]
        if entry.upper().startswith("GPU-"):
            by_uuid = [g for g in gpus if value_or(g.uuid, "").upper().startswith(entry.upper())]
            return by_uuid if len(by_uuid) == 1 else gpus
    alike = len({value_or(g.name, "") for g in gpus}) == 1
    ordered = environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or alike
    return [gpus[int(entry)]] if ordered and entry.isdigit() and int(entry) < len(gpus) else gpus


def _device(ordinal: int, candidates: Sequence[Gpu]) -> Device:
    users: list[GpuProcess] = []
    for gpu in candidates:
        if isinstance(gpu.processes, Absent):
            unread = gpu.processes
            return Device(ordinal=ordinal, name=value_or(gpu.name, ""), users=unread, memory_free=gpu.memory_free)
        users += gpu.processes.value
    first = candidates[0]
    names = {value_or(g.name, "") for g in candidates}
    free = min((g.memory_free.value for g in candidates if isinstance(g.memory_free, Known)), default=None)
    used = max((g.memory_used.value for g in candidates if isinstance(g.memory_used, Known)), default=None)
    unread = Absent(reason="error", detail="NVML gives no memory figures")
    return Device(
        ordinal=ordinal,
        name=names.pop() if len(names) == 1 else "",
        users=Known(value=tuple(users), source=first.processes.source if isinstance(first.processes, Known) else ""),
        memory_free=Known(value=free, source="NVML") if free is not None else unread,
        memory_used=Known(value=used, source="NVML") if used is not None else unread,
    )
