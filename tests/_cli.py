"""The command line as a user has it: real processes, and recordings to give them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import cudnn_doctor
from cudnn_doctor.commands.app import app
from cudnn_doctor.model.base import Absent, decode, encode, known
from cudnn_doctor.model.facts import ProbeFailure, Xid
from cudnn_doctor.model.live import Termination
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Report, SnapshotFile, Tool
from cudnn_doctor.rules import sample
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.judge import judge
from cudnn_doctor.rules.sample import EX

HAS_GPU = os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")
without_gpu = pytest.mark.skipif(HAS_GPU, reason="this machine has an NVIDIA GPU")
# What the machine that runs the tests may bring and a test does not mean.
OURS = ("LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_VISIBLE_DEVICES", "COLUMNS", "NO_COLOR",
        "PYTHONIOENCODING", "GITHUB_STEP_SUMMARY", "STUB_DO", "STUB_STATUS")  # fmt: skip
# The package below the tests is the one that is tried, from whatever folder.
ROOT = str(Path(cudnn_doctor.__file__).parents[1])
# As `-m cudnn_doctor`, on a machine that looks as if it had this many GPUs.
WITH_GPUS = """
import runpy, sys
from cudnn_doctor.live import choose
real = choose.devices_to_check
def devices(environ, wanted=(), root=None):
    missing = [d for d in wanted if d >= {count}]
    if missing:
        raise ValueError(f"--device {{missing[0]}}: a program started here sees {count} device(s), numbered from 0.")
    return tuple(d for d in range({count}) if not wanted or d in wanted)
choose.devices_to_check = devices
runpy.run_module("cudnn_doctor", run_name="__main__")
"""


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment without what would change an answer; None takes a variable out."""
    merged: dict[str, str | None] = {**os.environ, **dict.fromkeys(OURS), "PYTHONPATH": ROOT, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def command(*words: str | Path, gpus: int = 0) -> list[str]:
    start = ["-c", WITH_GPUS.format(count=gpus)] if gpus else ["-m", "cudnn_doctor"]
    return [sys.executable, *start, *map(str, words)]


def run(
    *words: str | Path, env: Mapping[str, str | None] | None = None, gpus: int = 0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs `cudnn-doctor WORDS` in a process of its own. Output is decoded as UTF-8 unless `options` says otherwise."""
    options = {"encoding": "utf-8", "errors": "surrogateescape", "timeout": 60, **options}
    if not {"stdout", "stderr"} & set(options):
        options["capture_output"] = True
    return subprocess.run(command(*words, gpus=gpus), env=environment(**(env or {})), check=False, **options)


def call(*words: str | Path, **env: str | None) -> subprocess.CompletedProcess[str]:
    """The command in this process, with nothing of the surroundings that would change its answer."""
    changes = {**dict.fromkeys(OURS), "COLUMNS": "100", **env}
    done = CliRunner().invoke(app, list(map(str, words)), env=changes)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def complaint(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """The one line on stderr of a run that ended with an error, and nothing else."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(("Usage: ", "Try "))]
    assert len(lines) == 1, done.stderr
    return lines[0].removeprefix("cudnn-doctor: ").removeprefix("Error: ")


# ---------------------------------------------------------------- recordings

NOTHING = Absent(reason="not-found", detail="nothing of it here")
FAILED = ProbeFailure(probe="kernel log", error="ZeroDivisionError: division by zero")
BARE: Mapping[str, Any] = {
    "driver.pci": known((), EX),
    "driver.nvml": NOTHING,
    "driver.version": NOTHING,
    "driver.cuda": NOTHING,
    "driver.kernel_module": NOTHING,
    "driver.kernel_module_kind": NOTHING,
    "driver.device_nodes": known((), EX),
    "driver.uvm": known(False, EX),
    "driver.libcuda": (),
    "driver.init": NOTHING,
    "gpus": NOTHING,
    "cudnn": (),
    "resolutions": (),
    "packages": known((), EX),
    "frameworks": (),
}


def no_gpu() -> Case:
    """A machine without NVIDIA hardware, driver, cuDNN and frameworks."""
    return sample.sample(BARE, live=())


def cases() -> dict[str, Case]:
    """Machines by name, each with another verdict or reason."""
    old = sample.another_copy("9.1.0", "/opt/old/lib64")
    died = sample.live(
        fate=Termination(
            kind="signal", signal="SIGABRT", last_step="cudnnCreate",
            stderr="Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: cannot open shared object "
            "file: No such file or directory",
        ),
        steps=sample.live_steps()[:1],
    )  # fmt: skip
    return {
        "healthy": sample.sample(),
        "no-gpu": no_gpu(),
        "no-live-result": sample.sample(live=()),
        "two-copies": sample.sample({"cudnn": (sample.snapshot().cudnn[0], old)}),
        "mixed": sample.sample({"cudnn.0.sublibraries.2.version": known("9.1.0", EX)}),
        "abort": died,
        "skew": sample.sample({"driver.kernel_module": known("570.86.15", EX)}),
        "xid": sample.sample(
            {"xids": known((Xid(time="t", pci="0000:00:04", code=79, text="GPU has fallen off the bus."),), EX)}
        ),
        "failed-probe": sample.sample({"failures": (FAILED,), "xids": Absent(reason="error", detail="x")}),
    }


def recording(case: Case) -> bytes:
    """The file that `cudnn-doctor snapshot` would write of this machine."""
    return encode(SnapshotFile(tool=Tool(version="0.1.0"), snapshot=case.snapshot, scenarios=case.scenarios))


def save(folder: Path, case: Case, name: str = "box.json") -> Path:
    path = folder / name
    path.write_bytes(recording(case))
    return path


class _Head(msgspec.Struct):
    schema: str = ""


@cache
def recorded_cases() -> dict[str, Examination]:
    """What can be replayed here: the machines above and every real recording in the repository."""
    kinds: dict[str, type[Report] | type[SnapshotFile]] = {
        "cudnn-doctor/report/1": Report,
        "cudnn-doctor/snapshot/1": SnapshotFile,
    }
    found = {
        name: Examination(snapshot=c.snapshot, scenarios=c.scenarios, replayed=name) for name, c in cases().items()
    }
    for folder in (Path(__file__).parent / "recordings", Path(cudnn_doctor.__file__).parent / "examples"):
        for path in sorted(folder.rglob("*.json")):
            if path.parent.name == "states":  # many of one machine: tests/test_states.py
                continue
            data = path.read_bytes()
            kind = kinds.get(decode(data, _Head).schema)
            if kind:
                document = decode(data, kind)
                found[path.stem] = Examination(
                    snapshot=document.snapshot, scenarios=document.scenarios, replayed=str(path.name)
                )
    return found


TODAY = date(2026, 12, 1)


def judged(facts: Examination, **options: Any) -> Report:
    """The report on these facts, with options of `check`."""
    return judge(facts, Options(**options), TODAY)
