"""The Python stacks of a live process, by py-spy where it is installed (extra `stacks`). It reads the process's memory
without stopping it (`--nonblocking`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

_SECONDS = 10.0
_LIMIT = 1 << 15  # characters


def python_stacks(pid: int) -> tuple[str, str]:
    """The stacks, or why there are none."""
    tool = shutil.which("py-spy") or shutil.which("py-spy", path=os.path.dirname(sys.executable))
    if tool is None:
        return "", "py-spy is not installed: pip install 'cudnn-doctor[stacks]'"
    try:
        done = subprocess.run(
            [tool, "dump", "--nonblocking", "--pid", str(pid)],
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", f"py-spy did not answer within {_SECONDS:.0f} s"
    except OSError as error:
        return "", f"py-spy could not be started: {error.strerror}"
    if done.returncode:
        return "", _reason(done.stderr)
    return done.stdout[:_LIMIT], ""


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if any("ermission" in line for line in lines):
        return "not readable as this user (py-spy: permission denied)"
    return f"py-spy: {lines[0].removeprefix('Error: ') if lines else 'no answer'}"
