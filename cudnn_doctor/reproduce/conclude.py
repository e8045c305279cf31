"""From the table to plain words: what can give 7 (2007) on this box and what cannot. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cudnn_doctor.model.live import ScenarioResult, Step
from cudnn_doctor.model.reproduction import Conclusion, Copy, Device
from cudnn_doctor.reproduce.compare import death, ran, unmade
from cudnn_doctor.scenarios import scenarios
from cudnn_doctor.scenarios.base import STREAM_MISMATCH

CONTROL = "valid-stream"


def conclusions(
    results: Sequence[ScenarioResult], copies: Sequence[Copy], devices: Sequence[Device]
) -> tuple[Conclusion, ...]:
    """One for each copy on each device."""
    return tuple(
        _conclusion([r for r in results if r.cudnn == c.path and r.device == d.ordinal], c, d, several=len(devices) > 1)
        for c in copies
        for d in devices
    )


def _conclusion(results: Sequence[ScenarioResult], copy: Copy, device: Device, *, several: bool) -> Conclusion:
    status = STREAM_MISMATCH[8 if copy.major < 9 else 9]
    version = next((r.cudnn_version for r in results if r.cudnn_version), copy.version)
    kinds: dict[str, list[str]] = {"can": [], "ends": [], "other": [], "cannot": []}
    not_tried, failed = [], []
    for name in scenarios():
        mine = [r for r in results if r.scenario == name]
        begun = [r for r in mine if ran(r)]
        if not begun:
            not_tried += [f"{name}: {r.skipped or r.fate.error}" for r in mine[:1]]
        elif all(unmade(r) and not _set_streams(r) for r in begun):
            failed.append(f"{name}: {unmade(begun[0])}")
        elif name != CONTROL:
            kinds[_kind(begun, status)].append(name)
    control = [r for r in results if r.scenario == CONTROL and not r.skipped]
    found = Conclusion(
        device=device.ordinal,
        device_name=device.name or _device_name(results),
        cudnn=copy.path,
        cudnn_version=version,
        status=status,
        control=all(_works(r) for r in control),
        can=tuple(kinds["can"]),
        ends=tuple(kinds["ends"]),
        other=tuple(kinds["other"]),
        cannot=tuple(kinds["cannot"]),
        unmade=tuple(failed),
        not_tried=tuple(not_tried),
        text="",
    )
    how = {r.scenario: f"{s.status} from {s.call}" for r in results if (s := _failure(r))}
    number = f"device {device.ordinal}"
    where = f"{found.device_name} ({number})" if found.device_name and several else found.device_name or number
    return msgspec.structs.replace(found, text=_text(found, where, how))


def _device_name(results: Sequence[ScenarioResult]) -> str:
    """What a child heard of the driver; the first, since a later one may be of another device."""
    return next((str(s.value) for r in results for s in r.steps if s.call == "device name"), "")


def _set_streams(result: ScenarioResult) -> list[int]:
    """Statuses of cudnnSetStream in the state itself; a "before" leads up to it."""
    return [
        s.status for s in result.steps if s.call == "cudnnSetStream" and s.status is not None and s.label != "before"
    ]


def _kind(begun: Sequence[ScenarioResult], status: int) -> str:
    if any(status in _set_streams(r) for r in begun):
        return "can"
    if any(death(r) != "ok" for r in begun):
        return "ends"
    return "other" if any(_failure(r) for r in begun) else "cannot"


def _failure(result: ScenarioResult) -> Step | None:
    """The first call of cuDNN, or loading it, that failed."""
    return next((s for s in result.steps if s.status and s.call.startswith(("cudnn", "dlopen"))), None)


def _works(result: ScenarioResult) -> bool:
    statuses = _set_streams(result)
    return result.fate.kind == "completed" and bool(statuses) and not any(statuses)


def _text(c: Conclusion, where: str, how: Mapping[str, str]) -> str:
    """Sentences and lists, a line each; a line of a list begins with "- "."""
    place = f"On {where} with cuDNN {c.cudnn_version or '(version unknown)'}"
    if not c.control:
        return (
            f"{place} even a valid stream does not work (state {CONTROL}): nothing else here means anything before "
            "that is mended. `cudnn-doctor check` says what is wrong."
        )
    lines = [f"{place}, status {c.status} from cudnnSetStream came from no state that was made."]
    if c.can:
        lines = _listed(f"{place}, status {c.status} from cudnnSetStream can come from", c.can)
    lines += _listed("These end the process instead of answering", c.ends)
    lines += _listed("These fail otherwise", c.other, how)
    lines += _listed(f"Status {c.status} cannot come from", c.cannot)
    for what, states in (("Could not be made here", c.unmade), ("Not tried", c.not_tried)):
        if states:
            lines.append(f"{what}: {', '.join(t.split(':', 1)[0] for t in states)}.")
    return "\n".join(lines)


def _listed(lead: str, names: Sequence[str], how: Mapping[str, str] | None = None) -> list[str]:
    phrases = [scenarios()[n][1].phrase + (f" ({how[n]})" if how else "") for n in names]
    return [f"{lead}:", *(f"- {phrase}" for phrase in phrases)] if names else []
