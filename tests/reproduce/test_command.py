"""The command on this machine, whatever it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cudnn_doctor", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_list_needs_no_gpu() -> None:
    done = doctor("reproduce", "--list")
    assert done.returncode == 0
    assert "other-context-current" in done.stdout


def test_a_state_that_there_is_not_is_told_first() -> None:
    done = doctor("reproduce", "--scenario", "nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no state 'nope'" in done.stderr


@pytest.mark.skipif(
    any(Path("/dev").glob("nvidia[0-9]*")) or os.path.exists("/dev/dxg"), reason="this machine has a GPU"
)
def test_without_a_gpu_there_is_no_verdict() -> None:
    done = doctor("reproduce")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "cudnn-doctor: no NVIDIA GPU that a program started here could use; `cudnn-doctor check` says why.\n"
    )


def test_explain_takes_a_code() -> None:
    done = doctor("explain", "2007")
    assert done.returncode == 0
    assert done.stdout.startswith("cuDNN 9: 2007 CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH\n")
