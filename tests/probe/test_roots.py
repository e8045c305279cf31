"""What an exception stands for, and text that JSON can carry."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.probe.root_files import absent, at, clean, entries, guard, linux_fact, read
from tests.probe.machine import put


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOENT, "not-found"),
        (errno.ENOTDIR, "not-found"),
        (errno.EACCES, "no-permission"),
        (errno.EPERM, "no-permission"),
        (errno.EIO, "error"),
    ],
)
def test_reasons_of_the_system(code: int, reason: str) -> None:
    assert absent(OSError(code, "words", "/file")).reason == reason
    assert absent(OSError(code, "words", "/file")).detail == "/file: words"
    assert absent(OSError(code, "words")).detail == "words"


def test_reasons_of_our_own() -> None:
    assert absent(ValueError("bad")) == Absent(reason="error", detail="ValueError: bad")
    assert absent(OSError("no number")) == Absent(reason="error", detail="no number")


def test_guard_lets_nothing_out() -> None:
    def broken() -> Absent:
        raise ZeroDivisionError("x")

    assert guard(broken) == linux_fact(broken) == Absent(reason="error", detail="ZeroDivisionError: x")
    assert guard(lambda: known(1, "here")) == known(1, "here")


def test_errors_name_the_machines_path_without_the_root(tmp_path: Path) -> None:
    for reader in (read, entries):
        with pytest.raises(FileNotFoundError) as caught:
            reader(tmp_path, "/etc/nothing")
        assert caught.value.filename == "/etc/nothing"


def test_read_is_bounded_and_clean(tmp_path: Path) -> None:
    put(tmp_path, {"/file": b"ab\xffcd"})
    assert read(tmp_path, "/file") == "ab\ufffdcd"
    assert read(tmp_path, "/file", limit=2) == "ab"
    assert at(tmp_path, "/file") == str(tmp_path / "file")


def test_clean() -> None:
    assert clean("caf\u00e9/\udcff") == "caf\u00e9/\ufffd"
