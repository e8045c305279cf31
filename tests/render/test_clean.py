"""Text made harmless and measured."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_doctor.render.clean import (
    cells,
    disarmed,
    encodable,
    one_line,
    pad,
    short_path,
    size,
    time,
    visible,
    wrap,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("over\rwritten", "over\\x0dwritten"),
        ("\x9b31m \x07 \x7f", "\\x9b31m \\x07 \\x7f"),
        ("cod\u202egnp.exe \u200b\u2066", "cod\\u202egnp.exe \\u200b\\u2066"),
        ("a\u2028b\ufeff\ufffe", "a\\u2028b\\ufeff\\ufffe"),
        ("\udc80\U000e0041", "\\udc80\\U000e0041"),
        ("Größe 漢字 ✓", "Größe 漢字 ✓"),
    ],
)
def test_visible(text: str, expected: str) -> None:
    assert visible(text) == expected


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    left = {unicodedata.category(c) for c in visible(text).replace("\n", "").replace("\t", "")}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::error::x", ": :error::x"),
        ("a\n  ::add-mask::x", "a\n  : :add-mask::x"),
        ("x ##[error]y ##vso[task.x] ##teamcity[y", "x # #[error]y # #vso[task.x] # #teamcity[y"),
        ("std::vector ## heading [1]", "std::vector ## heading [1]"),
    ],
)
def test_ci_commands_are_text(text: str, expected: str) -> None:
    assert disarmed(text) == expected


def test_cells() -> None:
    assert cells("abc") == 3
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1
    assert pad("漢", 4) == "漢  "


def test_wrap_breaks_at_spaces_only() -> None:
    assert list(wrap("aa bb cc", 5)) == ["aa bb", "cc"]
    assert list(wrap("/a/very/long/path b", 5)) == ["/a/very/long/path", "b"]
    assert list(wrap("漢漢 漢", 5)) == ["漢漢", "漢"]
    assert list(wrap("one\n\ntwo", 20)) == ["one", "", "two"]
    assert list(wrap("", 20)) == [""]
    assert list(wrap("run `pip install x`, then", 8)) == ["run", "`pip install x`,", "then"]


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "✓ é – …"),
        ("cp1252", "\\u2713 é - ..."),
        ("ascii", "\\u2713 \\xe9 - ..."),
        ("no-such", "\\u2713 \\xe9 - ..."),
    ],
)
def test_encodable(encoding: str, expected: str) -> None:
    assert encodable("✓ é – …", encoding) == expected


def test_short_path() -> None:
    assert short_path("/usr/lib") == "/usr/lib"
    assert short_path("/opt/venv/lib/python3.12/site-packages/nvidia/cudnn/lib") == ".../nvidia/cudnn/lib"


@pytest.mark.parametrize(
    ("n", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (512 << 20, "512 MiB"), (150138912768, "139.8 GiB"), (2 << 40, "2048.0 GiB")],
)
def test_size(n: int, expected: str) -> None:
    assert size(n) == expected


@pytest.mark.parametrize(("ms", "expected"), [(0.04, "0.0 ms"), (3.62, "3.6 ms"), (420.4, "420 ms"), (2100, "2.1 s")])
def test_time(ms: float, expected: str) -> None:
    assert time(ms) == expected
