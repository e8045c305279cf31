"""The frameworks' own word: a small work by each, in the examined Python, in children with a deadline.

It executes the environment's code, so it is done only where it is asked for. The child runs framework_task.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cudnn_doctor.live import account
from cudnn_doctor.model.facts import FrameworkWord, FrameworkWork

TASK = str(Path(__file__).with_name("framework_task.py"))
NAMES = ("torch", "tensorflow", "jax", "cupy")
_KINDS = ("", "-fp16", "-bf16")
_SAID = 1 << 16  # bytes of the end of what a child prints


class _Child(NamedTuple):
    name: str
    process: subprocess.Popen[bytes]
    results: Any  # files, read when the child has ended
    output: Any


def task_of(framework: str, works: Sequence[str]) -> tuple[str, ...] | None:
    """The words after `python` that run these works in every number format; None for a framework without such a test.
    Its results go to stdout, in words."""
    if framework not in NAMES:
        return None
    return (TASK, "1", framework, ",".join(work + kind for work in works for kind in _KINDS))


def ask(python: str, names: Sequence[str], environ: Mapping[str, str], deadline: float) -> tuple[FrameworkWord, ...]:
    """A convolution by each of these frameworks, all at once, as `python` of the environment would run it.

    `deadline` is in seconds for all together; what has not ended then is killed with its process group.
    """
    until = time.monotonic() + deadline
    with contextlib.ExitStack() as files:
        children = [_start(python, name, environ, files) for name in dict.fromkeys(names) if name in NAMES]
        try:
            return tuple(c if isinstance(c, FrameworkWord) else _outcome(c, until) for c in children)
        finally:
            for child in children:
                if isinstance(child, _Child):
                    _kill(child.process)


def _start(python: str, name: str, environ: Mapping[str, str], files: contextlib.ExitStack) -> _Child | FrameworkWord:
    results = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  closed by `files`
    output = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  closed by `files`
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": environ.get("TF_CPP_MIN_LOG_LEVEL", "1")}
    try:
        owner = account.current()
        process = subprocess.Popen(
            account.command_as(owner, (python, "-X", "faulthandler", TASK, str(results.fileno()), name, "convolution")),
            env={**account.environment_for(owner, environ), **quiet},
            cwd="/" if owner else None,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(results.fileno(),),
            start_new_session=True,
        )
    except OSError as e:
        return FrameworkWord(name=name, ending=f"not started: {python}: {e.strerror}")
    return _Child(name, process, results, output)


def _outcome(child: _Child, until: float) -> FrameworkWord:
    try:
        code: int | None = child.process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        code = None
    _kill(child.process)
    lines = _lines(_tail(child.results.fileno()))
    steps = {str(line["done"]): line for line in lines if "done" in line}
    last = next((str(line["next"]) for line in reversed(lines) if "next" in line), "start")
    began = steps.get("import", {})
    ended = any("mapped" in line for line in lines)
    return FrameworkWord(
        name=child.name,
        version=str(began.get("version", "")),
        cudnn=str(began.get("cudnn", "")),
        gpu=bool(began.get("gpu")),
        skipped=str(began.get("skipped", "")),
        error=str(began.get("error", "")),
        works=tuple(_work(name, line) for name, line in steps.items() if name != "import"),
        mapped=tuple(str(p) for line in lines for p in line.get("mapped", ())),
        ending="ok" if ended else _ending(code, last),
        said="" if ended else _text(_tail(child.output.fileno())),
    )


def _work(name: str, line: Mapping[str, Any]) -> FrameworkWork:
    return FrameworkWork(
        name=name,
        right=bool(line.get("right")),
        skipped=str(line.get("skipped", "")),
        error=str(line.get("error", "")),
        deviation=line.get("deviation"),
        seconds=line.get("seconds"),
    )


def _ending(code: int | None, step: str) -> str:
    if code is None:
        return f"no end before the deadline in {step}"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name} in {step}"
    return f"ended with exit code {code} in {step}"


def _lines(data: bytes) -> list[dict[str, Any]]:
    """The results; a line that was cut off by a crash is left out."""
    found = []
    for line in data.splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                found.append(value)
    return found


def _tail(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    return os.pread(fd, _SAID, max(0, size - _SAID))


def _text(data: bytes) -> str:
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return "\n".join(lines[-3:])[-400:]


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)
