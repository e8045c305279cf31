"""The facts of a machine as lines of text, read like those of a ticket.

From a snapshot given beside the text (`--snapshot`, `--here`), or from a report or snapshot file of our own among the
sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cudnn_doctor.model.errors import InputError

if TYPE_CHECKING:
    from cudnn_doctor.model.facts import Snapshot


def from_document(name: str, text: bytes, notes: list[str]) -> list[str]:
    """Lines from a report or snapshot file of cudnn-doctor.

    Raises:
        InputError: it says that it is ours and is not.
    """
    import json

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise InputError(f"{name} looks like a cudnn-doctor document and is no valid JSON: {e}") from None
    if not isinstance(data, dict):
        raise InputError(f"{name} looks like a cudnn-doctor document and is none")
    notes.append(f"{name}: a cudnn-doctor document; its facts and problems join the text's")
    found = [
        f"cudnn-doctor found {f.get('code', '')}: {f.get('title', '')} [cause {cause}]"
        for f in _dicts(data.get("findings"))
        if f.get("status") == "problem"
        for cause in f.get("causes") or ()
    ]
    snapshot = data.get("snapshot")
    return found + (list(_lines(snapshot)) if isinstance(snapshot, dict) else [])


def from_snapshot(snapshot: Snapshot) -> list[str]:
    """Lines from a snapshot."""
    import msgspec

    return list(_lines(msgspec.to_builtins(snapshot)))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list | tuple) else []


def _known(fact: Any) -> Any:
    """The value of a fact, None where it is absent."""
    return fact.get("value") if isinstance(fact, dict) and fact.get("kind") == "known" else None


def _lines(snapshot: dict[str, Any]) -> Iterator[str]:
    host, driver = snapshot.get("host") or {}, snapshot.get("driver") or {}
    if system := _known(host.get("os")):
        yield f"os: {system}"
    if _known(host.get("wsl")):
        yield "os: wsl"
    if release := _known(driver.get("version")):
        yield f"driver version: {release}"
    nvml = _known(driver.get("nvml")) or {}
    if nvml.get("name") == "NVML_ERROR_LIB_RM_VERSION_MISMATCH":
        yield "Failed to initialize NVML: Driver/library version mismatch"
    init = _known(driver.get("init")) or {}
    if init.get("code"):
        yield f"cuInit answered {init.get('name', init['code'])}"
    for gpu in _dicts(_known(snapshot.get("gpus"))):
        if name := _known(gpu.get("name")):
            yield f"GPU {gpu.get('index', 0)}: {name}"
        used, total = _known(gpu.get("memory_used")), _known(gpu.get("memory_total"))
        if isinstance(used, int) and isinstance(total, int) and total > 0:
            yield f"memory {used >> 20}MiB / {total >> 20}MiB"
        if _known(gpu.get("ecc_uncorrected")):
            yield "uncorrectable ECC error counted since the last reset"
    for framework in _dicts(snapshot.get("frameworks")):
        yield f"{framework.get('distribution')} {framework.get('version')}"
    for copy in _dicts(snapshot.get("cudnn")):
        if version := _known(copy.get("version")):
            yield f"cuDNN {version}"
    for xid in _dicts(_known(snapshot.get("xids"))):
        yield f"NVRM: Xid (PCI:{xid.get('pci', '')}): {xid.get('code', '')}, {xid.get('text', '')}"
