"""The reader with files that no recorder left: cut, damaged, foreign."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cudnn_doctor.model import events
from cudnn_doctor.recorder.read import SLOT, decode, read_folder
from tests.recorder.program import record


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("events")
    record(folder, "reset")
    (file,) = folder.iterdir()
    return file.read_bytes()


def test_a_cut_file_gives_what_is_there(raw: bytes) -> None:
    whole = decode(raw, "x")
    cut = decode(raw[: 5 * SLOT + 100], "x")  # header and four slots that are kept
    assert cut.damage == f"{5 * SLOT + 100} bytes of {1 << 20}"
    seqs = [e.seq for e in cut.events]
    assert 0 < len(seqs) <= 4
    assert [type(e) for e in cut.events] == [type(e) for e in whole.events if e.seq in seqs]
    assert cut.process == whole.process


def test_a_record_that_was_being_written_is_counted(raw: bytes) -> None:
    slot = max(at for at in range(SLOT, len(raw), SLOT) if any(raw[at : at + 8]))
    half = raw[:slot] + b"\xff" * 8 + raw[slot + 8 :]
    damaged = decode(half, "x")
    assert (damaged.incomplete, damaged.dropped) == (1, 1)
    assert len(damaged.events) == len(decode(raw, "x").events) - 1


@pytest.mark.parametrize("size", [0, 1, 79, 80, 500, 1023, 1024, 1025])
def test_no_length_is_too_short(raw: bytes, size: int) -> None:
    assert decode(raw[:size], "x").events == ()
    assert decode(raw[:size], "x").damage


def test_something_else(raw: bytes) -> None:
    assert decode(b"\x7fELF" * 1000, "x").damage.startswith("no recording")
    assert decode(raw[:8] + b"\x09" + raw[9:], "x").damage == "format 9, this version reads 1"


def test_random_damage_raises_nothing(raw: bytes) -> None:
    used = [at for at in range(0, len(raw), SLOT) if any(raw[at : at + SLOT])]
    for seed in range(300):
        dice = random.Random(seed)  # noqa: S311 - no secret
        damaged = bytearray(raw)
        for _ in range(40):
            damaged[dice.choice(used) + dice.randrange(SLOT)] = dice.randrange(256)
        for event in decode(bytes(damaged), "x").events:
            assert isinstance(event, events.Event)


def test_a_folder_with_strange_things_in_it(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "1-0.events").write_bytes(raw)
    (tmp_path / "2-0.events").write_bytes(b"")
    (tmp_path / "3-0.events").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    found = read_folder(tmp_path)
    assert [bool(r.events) for r in found] == [False, True]
