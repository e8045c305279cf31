"""Hostile input: an answer or a clear error in bounded time and memory, never a traceback.

Each input goes through a process of its own, whose peak memory the kernel reports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ERROR = b"RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR"
MIB = 1 << 20


def repeated(unit: bytes, size: int = 4 * MIB) -> bytes:
    return unit * (size // len(unit))


INPUTS: dict[str, Callable[[], bytes]] = {
    "one line of 200 MB": lambda: b"x" * (100 * MIB) + ERROR + b"y" * (100 * MIB),
    "a million empty lines": lambda: b"\n" * MIB + ERROR,
    "a million short lines": lambda: repeated(b"ab c\n") + ERROR,
    "carriage returns": lambda: repeated(b"12%\r") + ERROR,
    "NUL bytes": lambda: b"\0" * (4 * MIB) + b"\n" + ERROR,
    "escapes": lambda: repeated(b"\x1b[31m\x1b]0;a\x07") + ERROR,
    "unfinished escapes": lambda: repeated(b"\x1b]0;") + b"\n" + ERROR,
    "unfinished tags": lambda: repeated(b"<p <p <b ") + b"\n" + ERROR,
    "tags": lambda: repeated(b"<td>a</td><td>") + b"\n" + ERROR,
    "entities": lambda: repeated(b"&amp;amp;#60;") + b"\n" + ERROR,
    "quotes of quotes": lambda: repeated(b"> ") + b"\n" + ERROR,
    "prefixes of prefixes": lambda: repeated(b"[1,0]<stderr>:[rank0]: (pid=1) 3: ") + ERROR,
    "stars": lambda: repeated(b"**") + b"\n" + ERROR,
    "bars": lambda: repeated(b"| ") + b"\n" + ERROR,
    "dots": lambda: repeated(b".") + b"\n" + ERROR,
    "digits": lambda: repeated(b"1.1") + b"\n" + ERROR,
    "spaces": lambda: b" " * (4 * MIB) + b"\n" + ERROR,
    "brackets": lambda: repeated(b"(((([[[[{{{{") + b"\n" + ERROR,
    "nested repetition": lambda: repeated(b"(a+)+$ (x*)*y ") + b"\n" + ERROR,
    "backticks": lambda: repeated(b"`") + b"\n" + ERROR,
    "every anchor at once": lambda: repeated(ERROR + b" CUDA_ERROR_OUT_OF_MEMORY Xid (PCI:0000:01:00): 31 "),
    "an error on every line": lambda: repeated(ERROR + b"\n", 32 * MIB),
    "another error on every line": lambda: b"\n".join(b"CUDA_ERROR_X%d: out of memory" % n for n in range(400_000)),
    "an assertion for every thread": lambda: b"\n".join(
        b"x.cu:1: Assertion `i < %d` failed." % n for n in range(400_000)
    ),
    "bad bytes": lambda: bytes(range(256)) * (8 * MIB // 256) + ERROR,
    "wide text cut in half": lambda: ("\ufeff" + "显存 " * 100_000 + ERROR.decode()).encode("utf-16-le")[:-1],
    "spaces beyond ASCII": lambda: ("tensorflow" + "\u2000" * 100_000 + "x\n").encode() + ERROR,
    "right to left": lambda: "\u202e".encode() * MIB + b"\n" + ERROR,
    "combining": lambda: ("e" + "\u0301" * MIB + "\n").encode() + ERROR,
    "JSON that looks like ours": lambda: b'{"schema": "cudnn-doctor/report/1", "findings": ' + b"[" * MIB,
    "our schema with other types": lambda: json.dumps(
        {"schema": "cudnn-doctor/report/1", "findings": [{"causes": 7}, 3], "snapshot": [1]}
    ).encode(),
}


# The peak memory is the kernel's of this very program: what a parent reads includes what itself held before.
CHILD = """
import sys
from cudnn_doctor.__main__ import main
try:
    main()
finally:
    status = open("/proc/self/status").read()
    print("peak", status[status.index("VmHWM"):].split()[1], file=sys.stderr)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize("name", INPUTS)
def test_bounded_answer(tmp_path: Path, name: str) -> None:
    file = tmp_path / "input.log"
    file.write_bytes(INPUTS[name]())
    start = time.monotonic()
    words = [sys.executable, "-c", CHILD, "explain", "--format", "json", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    took = time.monotonic() - start
    *complaint, peak = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2), complaint
    assert took < 30, took
    assert int(peak.split()[1]) < 100 * 1024, peak  # KiB
    if done.returncode == 2:
        assert len(complaint) <= 2
        assert not done.stdout
        return
    document = json.loads(done.stdout)
    assert document["schema"] == "cudnn-doctor/explanation/1"
    assert document["causes"] or "JSON" in name or "schema" in name
    assert len(done.stdout) < 100_000


def test_each_form_of_the_answer_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "input.log"
    file.write_bytes(repeated(ERROR + b" [bold]\x1b[31m", 8 * MIB))
    for form in ("text", "markdown"):
        words = [sys.executable, "-m", "cudnn_doctor", "explain", "--format", form, str(file)]
        done = subprocess.run(words, capture_output=True, timeout=60, check=True)
        assert b"\x1b" not in done.stdout
        assert len(done.stdout) < 20_000
