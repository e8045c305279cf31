"""No expression runs away, whatever stands around the words that it looks for.

The case that did: UTF-16 read at an odd byte is full of spaces beyond ASCII, which two alternatives of one repeated
group both matched. The texts run in a child that is ended when it takes minutes: a hang fails, no time is judged.
"""

from __future__ import annotations

import json
import subprocess
import sys

FILLERS = [*"\u2000\u3000\u00a0\u00e9\u6f22\t .-0vVa\"'()[]*><|=:/\\,;#@`~_+"]
WORDS = (
    *("tensorflow", "tensorflow-gpu", "pytorch", "torch", "jax", "onnxruntime", "mxnet", "windows"),
    *("cuda", "cudnn", "driver", "nvidia-smi", "gpu", "geforce rtx 3090", "cudnn_status_mapping_error"),
    *("check failed: status == cudnn_status_success (7 vs. 0)", "loaded runtime cudnn library", "out of memory"),
    *("could not load dynamic library", "xid (pci:0000:01:00)"),
)

CHILD = """
import json, sys, tempfile, os
from cudnn_doctor import diagnose as explain
words, fillers = json.load(sys.stdin)
for filler in fillers:
    text = "\\n".join(f"{w}{filler * 300}x {filler * 300}{w} {(w + filler) * 40} 1.2" for w in words)
    path = os.path.join(tempfile.gettempdir(), f"runaway-{os.getpid()}.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        explain.explain([path])
    finally:
        os.remove(path)
    print(repr(filler), flush=True)
"""


def test_long_runs_of_any_character_around_any_word() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps([WORDS, FILLERS]),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == len(FILLERS)
