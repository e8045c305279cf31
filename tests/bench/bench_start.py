"""How long the commands take from their start to their end, each beside its yardstick, all in one run.

Runs alternate, so that a busy machine slows all alike; one run of each comes first and does not count. The doctor is
the one that this Python has installed; only an installed wheel says what users will see, and bytecode may be written
whatever PYTHONDONTWRITEBYTECODE says, or every run would compile.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

CHECK_BASE = (sys.executable, "-I", "-c", "import argparse,json,ctypes,subprocess")
EXPLAIN_BASE = (sys.executable, "-c", "import argparse, json, re")
TICKET = """My training stops after a few steps, two GPUs, both idle. TensorFlow from pip in a fresh venv:

2024-03-11 09:14:02.104412: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized
2024-03-11 09:14:03.275857: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1929] Created device /device:GPU:0 with \
22146 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 4090, pci bus id: 0000:01:00.0, compute capability: 8.9
2024-03-11 09:14:05.331876: I external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:454] Loaded cuDNN version 8907
2024-03-11 09:14:06.104113: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:1198] could not synchronize \
on CUDA context: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered
2024-03-11 09:14:06.660104: F tensorflow/stream_executor/cuda/cuda_dnn.cc:211] Check failed: status == \
CUDNN_STATUS_SUCCESS (7 vs. 0)Failed to set cuDNN stream.
Aborted (core dumped)
"""


class Row(NamedTuple):
    """A command and what it is measured by: `goal` bounds command / yardstick, from below where `faster` is set."""

    name: str
    command: Sequence[str]
    beside: str = ""
    goal: float = 0.0
    faster: bool = False


def doctor() -> tuple[str, ...]:
    """The command of this environment, else the one on PATH."""
    places = (os.path.dirname(sys.executable), os.environ.get("PATH", ""))
    script = shutil.which("cudnn-doctor", path=os.pathsep.join(places))
    return (script,) if script else (sys.executable, "-m", "cudnn_doctor")


def rows(report: dict[str, Any], ticket: str, floor: str) -> list[Row]:
    """What can be measured on the machine that gave this report."""
    check, explain = (*doctor(), "check", "--format", "json"), (*doctor(), "explain", ticket)
    found = [Row("imports of check", CHECK_BASE), Row("imports of explain", EXPLAIN_BASE)]
    live = next((s for s in report["scenarios"] if s["fate"]["kind"] == "completed"), None)
    if live is None:
        found.append(Row("check, no GPU", check, "imports of check", 3.0))
    found.append(Row("explain", explain, "imports of explain", 2.5))
    if live and floor:
        found.append(Row("floor", (floor, live["cudnn"], "conv")))
        found.append(Row("check, live", check, "floor", 1.5))
    elif live:
        found.append(Row("check, live", check))
    if live and find_spec("torch"):
        found.append(Row("collect_env", (sys.executable, "-m", "torch.utils.collect_env"), "check, live", 10.0, True))
    return found


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def run(command: Sequence[str]) -> tuple[float, subprocess.CompletedProcess[bytes]]:
    """Seconds of the whole process.

    Raises:
        SystemExit: it ended with another code than 0, 1 or 2, which the doctor's verdicts have.
    """
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, env=environment(), cwd=tempfile.gettempdir(), check=False)
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return seconds, done


def main(floor: str = "", runs: int = 15) -> int:
    """Prints the table; 1 when a goal is missed. `floor` is tests/bench/floor.c compiled."""
    report = json.loads(run((*doctor(), "check", "--format", "json"))[1].stdout)
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        ticket = Path(folder, "ticket.log")
        ticket.write_text(TICKET, encoding="utf-8")
        measured = rows(report, str(ticket), floor)
        for n in range(runs + 1):
            for row in measured:
                if row.faster and n > 3:  # takes seconds
                    continue
                seconds, _ = run(row.command)
                times.setdefault(row.name, []).extend([seconds] if n else [])
    missed = 0
    for row in measured:
        line = f"{row.name:20}{_ms(statistics.median(times[row.name]))}{_ms(min(times[row.name]))}"
        if row.beside:
            ratios = [f(times[row.name]) / f(times[row.beside]) for f in (statistics.median, min)]
            met = (ratios[1] >= row.goal) if row.faster else (ratios[1] <= row.goal)
            missed += not met
            bound = "at least" if row.faster else "at most"
            line += f"   {ratios[0]:.2f} / {ratios[1]:.2f} times {row.beside} (goal {bound} {row.goal})"
            line += "" if met else "  MISSED"
        sys.stdout.write(f"{line}\n")
    return int(missed > 0)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:9.1f} ms"
