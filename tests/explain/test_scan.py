"""Large sources: head, tail and the lines around errors, in bounded memory, with right line numbers."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_doctor.logs.scan import (
    AROUND,
    EDGE,
    LINE,
    LITERAL_HITS,
    LITERALS,
    MAX_ASSERTS,
    SAME_HITS,
    WHOLE,
    Kept,
    alternatives,
    keep,
    numbers,
)
from tests.explain.plain import answer

PIECE = 1 << 18
FILL = b"Epoch 3: step %d loss 0.3 CPU and Conv2D\n"


def filler(size: int, start: int = 0) -> bytes:
    lines, total, n = [], 0, start
    while total < size:
        lines.append(FILL % n)
        total += len(lines[-1])
        n += 1
    return b"".join(lines)


def pieces(data: bytes, size: int = PIECE) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def check_numbers(kept: Kept, data: bytes) -> None:
    """Every kept piece is where its number and its place say."""
    lines = data.split(b"\n")
    for raw in kept.lines:
        assert data[raw.at : raw.at + len(raw.data)] == raw.data
        if raw.number:
            assert raw.data in lines[raw.number - 1]


def test_small_source_is_kept_whole() -> None:
    data = b"a\n\nb"
    kept = keep(pieces(data, 2))
    assert [(r.number, r.data, r.at) for r in kept.lines] == [(1, b"a", 0), (2, b"", 2), (3, b"b", 3)]
    assert (kept.total_bytes, kept.whole) == (4, True)


@pytest.mark.parametrize("literal", [*LITERALS, "Assertion `"])
def test_error_in_the_middle_is_kept_with_its_surroundings(literal: str) -> None:
    error = b"before\n2024-01-01 worker: " + literal.encode() + b"something\nafter\n"
    data = filler(2 * WHOLE) + error + filler(2 * WHOLE)
    kept = keep(pieces(data))
    check_numbers(kept, data)
    found = next(r for r in kept.lines if literal.encode() in r.data)
    assert found.number == data[: data.index(error)].count(b"\n") + 2
    around = {r.number for r in kept.lines}
    assert {found.number - 10, found.number - 1, found.number + 1, found.number + 10} <= around
    assert not kept.whole


def test_head_and_tail_are_kept() -> None:
    data = filler(3 * WHOLE)
    kept = keep(pieces(data))
    check_numbers(kept, data)
    held = sum(len(r.data) + 1 for r in kept.lines)
    assert kept.lines[0].data == FILL.strip() % 0
    assert kept.lines[-1].data == b""  # after the last line break
    assert 2 * EDGE <= held <= 3 * EDGE + PIECE
    assert kept.total_bytes == len(data)


def test_repeated_error_is_kept_a_few_times_and_a_new_one_still_seen() -> None:
    flood = b"CUDA_ERROR_OUT_OF_MEMORY: out of memory, the same each time %d\n"
    data = filler(WHOLE) + b"".join(flood % (n % 3) for n in range(60_000)) + filler(WHOLE)
    data += b"CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access\n" + filler(2 * WHOLE)
    kept = keep(pieces(data))
    check_numbers(kept, data)
    assert any(b"ILLEGAL_ADDRESS" in r.data for r in kept.lines)
    spans = sum(b"OUT_OF_MEMORY" in r.data for r in kept.lines)
    assert spans <= SAME_HITS * (2 * AROUND // len(flood) + 2)


def test_words_without_end_of_one_literal_are_kept_within_bounds() -> None:
    flood = b"".join(b"Check failed: value %d is wrong, whatever that means\n" % n for n in range(60_000))
    data = filler(WHOLE) + flood + filler(WHOLE) + b"CUDNN_STATUS_MAPPING_ERROR\n" + filler(2 * WHOLE)
    kept = keep(pieces(data))
    check_numbers(kept, data)
    assert any(b"CUDNN_STATUS_MAPPING_ERROR" in r.data for r in kept.lines)
    assert sum(b"Check failed" in r.data for r in kept.lines) <= LITERAL_HITS * 2 * AROUND // 50 + LITERAL_HITS


def test_assertions_of_every_thread_are_kept_a_few_times() -> None:
    flood = b"".join(b"x.cu:1: f: thread: [%d,0,0] Assertion `i < n` failed.\n" % n for n in range(2 * MAX_ASSERTS))
    data = filler(2 * WHOLE) + flood + filler(2 * WHOLE)
    kept = keep(pieces(data))
    check_numbers(kept, data)
    assert 1 <= sum(b"Assertion `" in r.data for r in kept.lines) <= 150


@pytest.mark.parametrize("marks", [1, 200])
def test_assertion_among_backticks(marks: int) -> None:
    """A block with many backticks is searched in another way than one with few."""
    noise = b"see `this` and `that`\n" * marks
    data = filler(2 * WHOLE) + noise + b"Assertion `i < n` failed.\n" + filler(2 * WHOLE)
    kept = keep(pieces(data))
    assert any(r.data == b"Assertion `i < n` failed." for r in kept.lines)


def test_lines_of_large_sources_are_counted_when_asked(tmp_path: Path) -> None:
    data = filler(3 * WHOLE) + b"RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR\n" + filler(2 * WHOLE)
    counted, uncounted = keep(pieces(data)), keep(pieces(data), count=False)
    assert [(r.at, r.data) for r in counted.lines] == [(r.at, r.data) for r in uncounted.lines]
    late = [r for r in uncounted.lines if not r.number]
    assert late
    found = numbers(pieces(data), [r.at for r in late])
    assert [found[r.at] for r in late] == [r.number for r in counted.lines[-len(late) :]]
    file = tmp_path / "large.log"
    file.write_bytes(data)
    told = answer([file])
    line = data[: data.index(b"RuntimeError")].count(b"\n") + 1
    assert {e["line"] for c in told["causes"] for e in c["evidence"]} == {line}
    assert told["notes"] == [
        f"{file}: 5 MiB; its head, its tail and the lines around errors were read closely",
    ]


def test_numbers_of_a_file_that_shrank() -> None:
    assert numbers([b"a\nb\n"], [0, 2, 99]) == {0: 1, 2: 2, 99: 3}


@settings(max_examples=25, deadline=None, database=None)
@given(
    st.lists(st.tuples(st.integers(0, 90_000), st.sampled_from(LITERALS)), max_size=8),
    st.integers(4_000, 300_000),
    st.booleans(),
)
def test_any_cut_into_pieces_gives_the_same_lines(hits: list[tuple[int, str]], size: int, breaks: bool) -> None:
    data = bytearray((b"x" * 70 + (b"\n" if breaks else b" ")) * 24_000)
    for place, literal in hits:
        data[place * 18 : place * 18 + len(literal)] = literal.encode()
    whole = bytes(data)
    kept = keep(pieces(whole, size))
    check_numbers(kept, whole)
    if breaks:
        reference = {r.at for r in keep(pieces(whole, PIECE)).lines if b"C" in r.data}
        assert reference <= {r.at for r in kept.lines}


def test_line_without_end_is_cut() -> None:
    data = b"a" * (3 * LINE) + b" CUDNN_STATUS_MAPPING_ERROR " + b"b" * (3 * LINE)
    kept = keep(pieces(data))
    assert {r.number for r in kept.lines} == {1}
    assert [len(r.data) for r in kept.lines] == [LINE, 1200, LINE]
    assert b"CUDNN_STATUS_MAPPING_ERROR" in kept.lines[1].data


def test_memory_stays_flat() -> None:
    block = filler(1 << 20) + b"CUDNN_STATUS_EXECUTION_FAILED at %d\n"

    def endless(count: int) -> Iterator[bytes]:
        for n in range(count):
            yield from pieces(block.replace(b"%d", b"%d" % n))

    peaks = []
    for count in (8, 64):
        tracemalloc.start()
        kept = keep(endless(count))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert kept.total_bytes > count << 20
    assert peaks[1] < peaks[0] * 1.3
    assert peaks[1] < 12 << 20


def test_measure_of_speed_is_what_is_looked_for() -> None:
    wanted = re.compile(alternatives())
    assert all(wanted.fullmatch(literal) for literal in LITERALS)
    assert {literal[0] for literal in LITERALS} == {"C"}  # one pass jumps from C to C
