"""A real cuDNN for the tests: the JIT wheel (68 MB), from the package index into a cache outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

REQUIREMENT = "nvidia-cudnn-jit-cu12==9.27.0.42"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64")


def _cache() -> Path:
    base = os.environ.get("CUDNN_DOCTOR_TEST_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cudnn-doctor-tests"


@cache
def _unpack() -> tuple[Path | None, str]:
    target = _cache() / REQUIREMENT.replace("==", "-")
    library = target / "nvidia" / "cudnn_jit" / "lib" / "libcudnn.so.9"
    if library.exists():
        return library, ""
    target.mkdir(parents=True, exist_ok=True)
    platforms = [word for p in PLATFORMS for word in ("--platform", p)]
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(
        [*pip, *platforms, "--python-version", "3.12", "-d", str(target), REQUIREMENT],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    wheels = list(target.glob("*.whl"))
    if done.returncode or not wheels:
        return None, f"{REQUIREMENT} cannot be had from the package index: {done.stderr.strip()[-300:]}"
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(target)
    wheels[0].unlink()
    return library, ""


def real_cudnn() -> Path:
    """Path of the real libcudnn.so.9, 9.27.0; skips the test, with the reason, where it cannot be had."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip(f"{REQUIREMENT} is a wheel for Linux on x86_64")
    library, why = _unpack()
    if library is None:
        pytest.skip(why)
    return library
