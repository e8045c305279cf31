"""The recorder built with ASan and UBSan, called as ld.so would; and a program that has ASan itself, recorded."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cudnn_doctor.recorder.read import read_folder
from tests.recorder.program import kinds, program, record, run, sanitized

WHAT: dict[str, dict[str, str]] = {
    "foreign": {},
    "reset": {},
    "release": {},
    "stream-destroyed": {"STUB_STATUS": "cudnnConvolutionForward:5000"},
    "handle-destroyed": {},
    "allocate": {},
    "fork": {},
    "closed": {},
    "threads": {},
    "many": {},
}


def sanitizers_work() -> bool:
    source = "int main(void) { return 0; }"
    command = ["cc", "-fsanitize=address,undefined", "-x", "c", "-o", os.devnull, "-"]
    return subprocess.run(command, input=source, text=True, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not sanitizers_work(), reason="this compiler has no ASan and UBSan")


@pytest.mark.parametrize("what", WHAT)
def test_no_sanitizer_has_anything_to_say(tmp_path: Path, what: str) -> None:
    environ = {"LD_AUDIT": "", "ASAN_OPTIONS": "detect_leaks=0"}  # what leaks is the stub's
    done = run(tmp_path, sanitized(), what, **environ, **WHAT[what])
    assert (done.returncode, done.stderr) == (0, "")
    (recording,) = read_folder(tmp_path)
    if what not in ("threads", "many", "fork"):
        (tmp_path / "audit").mkdir()
        assert kinds(recording) == kinds(record(tmp_path / "audit", what, "dlsym", code=0, **WHAT[what]))


def test_a_program_with_asan_of_its_own(tmp_path: Path) -> None:
    """Its allocator, its errno and its interceptors are its own: the recorder has none of them."""
    done = run(tmp_path, program("dlsym", "-fsanitize=address"), "reset", ASAN_OPTIONS="detect_leaks=0")
    assert (done.returncode, done.stderr) == (0, "")
    (recording,) = read_folder(tmp_path)
    assert kinds(recording)[-2:] == ["context-ended", "stream-set"]
    assert recording.process.program == str(program("dlsym", "-fsanitize=address"))
