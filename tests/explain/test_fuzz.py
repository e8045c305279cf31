"""Random and damaged input: always an answer of the documented form, or an InputError.

FUZZ_SECONDS=600 python -m pytest -s tests/explain/test_fuzz.py runs for that long; the suite gives it a few seconds.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import tempfile
import time
import unicodedata
from pathlib import Path

import msgspec
import pytest

from cudnn_doctor.diagnose import InputError, explain
from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.logs.sources import open_sources
from cudnn_doctor.model.explanation import Explanation
from cudnn_doctor.render.explain import render

SECONDS = float(os.environ.get("FUZZ_SECONDS", "6"))
HERE = Path(__file__).parent
SEEDS = [
    *(p.read_bytes() for p in sorted((HERE / "tickets").glob("*.txt"))),
    *(p.read_bytes()[:20_000] for p in sorted((HERE / "logs").iterdir())),
]
ENTRIES = (*knowledge("signatures"), *knowledge("statements"))
PIECES = (
    *("\n", "\r", "\r\n", "\0", "\x1b[31m", "\x1b]0;", "> ", "```", "<td>", "&amp;", "{", "sm_", "(8, ", "1.", ".1"),
    *(
        "| a | b |\n|---|---|\n",
        "**ann** commented\n",
        "[10:11] <bob> ",
        '"cudnn-doctor/report/1"',
        "CUDA 0",
        "cudnn 0.0.0",
    ),
    *("9" * 30, "9" * 5000, "显存", "\u202e", "\u2000" * 30, "\u0130", "\u00df", "\ufb01", "\ue000"),
)
WORDS = [
    *(text.encode() for entry in ENTRIES for text in (*entry["examples"], *entry["anchor"])),
    *(piece.encode() for piece in PIECES),
    *(b"\xff\xfe", b"\xe2\x80", b"\x1f\x8b\x08", b"PK\x03\x04", b"BZh9"),
]
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def mutated(rng: random.Random) -> bytes:
    """A seed with a few things cut, doubled, swapped or put in, now and then compressed or in another encoding."""
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randrange(8)):
        _mutate(rng, data)
    whole = bytes(data)
    if rng.random() < 0.05:
        whole = gzip.compress(whole)[: rng.randrange(20, 4000)]
    if rng.random() < 0.05:
        encoding = rng.choice(("utf-16", "utf-16-be", "utf-32"))
        whole = whole.decode("utf-8", "replace").encode(encoding)[rng.randrange(2) :]
    return whole


def _mutate(rng: random.Random, data: bytearray) -> None:
    at, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    match rng.randrange(9):
        case 0:
            del data[at : min(end, at + rng.randrange(400))]
        case 1:
            data[at:at] = rng.choice(WORDS)
        case 2:
            data[at:at] = data[at : min(end, at + 300)] * rng.randrange(1, 6)
        case 3 if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
        case 4:
            other = rng.choice(SEEDS)
            start = rng.randrange(len(other) + 1)
            data[at:at] = other[start : start + rng.randrange(2000)]
        case 5:
            blank = rng.choice((b"  ", b"\n", b"\t", b"\xc2\xa0", b""))
            data[:] = data.replace(b" ", blank, rng.randrange(50))
        case 6:
            lines = data.split(b"\n")
            data[:] = b"\n".join(rng.sample(lines, len(lines)))
        case 7:
            change = rng.choice((bytes.upper, bytes.lower, bytes.swapcase, bytes.title))
            data[:] = change(bytes(data))
        case _:
            data[at:end] = rng.randbytes(rng.randrange(60))


def check(file: Path) -> None:
    start = time.monotonic()
    try:
        document = explain([file])
    except InputError as e:
        if "\n" in str(e) or len(str(e)) < 10:
            raise ValueError(str(e)) from e
        return
    assert time.monotonic() - start < 20
    told = msgspec.json.decode(msgspec.json.encode(document))
    msgspec.convert(told, Explanation)
    streams = open_sources([str(file)], time.monotonic() + 20, [])
    lines = max(b"".join(stream.pieces).count(b"\n") + 1 for stream in streams)
    for cause in told["causes"]:
        assert all(0 <= e["line"] <= lines for e in cause["evidence"])
    if told["verdict"] == "undetermined":
        assert told["questions"]
    for form in ("text", "markdown"):
        shown = render(document, form)
        assert not {unicodedata.category(c) for c in shown.replace("\n", "")} & HIDDEN
    json.loads(render(document, "json"))


def test_damaged_tickets(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)  # noqa: S311 - nothing secret
    file = tmp_path / "fuzz.txt"
    deadline, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < deadline:
        data = mutated(rng)
        file.write_bytes(data)
        try:
            check(file)
        except Exception as e:
            kept = Path(tempfile.gettempdir()) / f"fuzz-{seed}-{count}.txt"
            kept.write_bytes(data)
            pytest.fail(f"{type(e).__name__}: {e}; input kept as {kept}")
        count += 1
    assert count > SECONDS
    print(f"{count} inputs in {SECONDS:.0f} s, seed {seed}")  # noqa: T201
