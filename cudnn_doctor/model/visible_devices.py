"""Which GPUs CUDA_VISIBLE_DEVICES leaves, by CUDA's own reading of it.

The documentation (CUDA programming guide, environment variables) says that the list ends at its first invalid entry.
How entries are read was measured with driver 580.159.04 on an H200 (2026-11-30): as C's strtol with base 0 reads them,
so "0x0", "+0", " 0" and "00" are 0, and what follows the digits is dropped without a word ("0;1", "0abc" and "0.5" are
0). "GPU-" must be in capitals, the digits of the UUID need not be; any unique beginning of it does. An empty entry is
invalid; the same device twice makes cuInit fail with 101; nothing left makes it fail with 100. With two GPUs a list
that begins with a number ends at a UUID, and the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Visible(NamedTuple):
    """What CUDA makes of the value."""

    devices: tuple[str, ...]  # entries that count, as indexes ("0") or names of slices ("MIG-...")
    ended_at: str | None = None  # the first invalid entry; None when all are valid
    why: str = ""  # what is wrong with that entry
    twice: str = ""  # an entry that names a device for the second time: CUDA then shows none
    dropped: str = ""  # an entry of which CUDA reads only the number in front


class _Entry(NamedTuple):
    device: str  # "" for an invalid entry
    why: str = ""
    rest: str = ""  # what follows the number and is not read


def visible_devices(value: str, uuids: Sequence[str], slices: Sequence[str] = ()) -> Visible:
    """Reads the value for a machine whose GPUs have these UUIDs, "" where one is not known, in the order of their
    indexes, and these MIG slices."""
    devices: list[str] = []
    dropped = ""
    entries = value.split(",")
    by_name = _is_name(entries[0])
    for text in entries:
        entry = _read(text, uuids, slices)
        if entry.device and _is_name(text) != by_name:
            entry = _Entry("", "numbers and UUIDs in one list do not mix")
        dropped = dropped or (text.strip() if entry.rest else "")
        if not entry.device:
            return Visible(tuple(devices), ended_at=text, why=entry.why, dropped=dropped)
        if entry.device in devices:
            return Visible((), twice=text.strip(), dropped=dropped)
        devices.append(entry.device)
    return Visible(tuple(devices), dropped=dropped)


def _is_name(text: str) -> bool:
    return text.startswith(("GPU-", "MIG-"))


def _read(text: str, uuids: Sequence[str], slices: Sequence[str]) -> _Entry:
    if text.startswith("MIG-"):
        named = text.strip()
        # "MIG-GPU-.../0/0" is the older form; it does not spell the UUID of the slice.
        fits = any(s.startswith(named) for s in slices) or (slices and "/" in named)
        return _Entry(named) if fits else _Entry("", "there is no such MIG slice")
    if text.startswith("GPU-"):
        named = text.strip().lower()
        found = [i for i, uuid in enumerate(uuids) if uuid.lower().startswith(named)]
        if len(found) == 1 and named != "gpu-":
            return _Entry(str(found[0]))
        return _Entry("", "that beginning fits several UUIDs" if len(found) > 1 else "no GPU has that UUID")
    number = re.match(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)", text)
    if number is None:
        if not text.strip():
            return _Entry("", "it is empty")
        hint = ": GPU- must be in capitals" if text.strip().lower().startswith("gpu-") else ""
        return _Entry("", f"it is neither a number nor a UUID{hint}")
    digits = number[2].lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    index = int(digits, base) if len(digits) < 100 else len(uuids)  # Python refuses to read 4300
    if number[1] == "-" and index:
        return _Entry("", "a negative number ends the list")
    if index >= len(uuids):
        return _Entry("", "there is 1 GPU" if len(uuids) == 1 else f"there are {len(uuids)} GPUs")
    return _Entry(str(index), rest=text[number.end() :].strip())
