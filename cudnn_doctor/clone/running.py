"""Runs a program k times with the copy's environment and notes how each run ends and which cuDNN it maps.

The files are told by the recorder (an audit library, cudnn_doctor/recorder) where it is there, and by /proc/PID/maps of
the program and its children, looked at every 20 ms. Each run is a session of its own and is killed whole at its end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cudnn_doctor.model.events import LibraryLoaded
from cudnn_doctor.model.package_trial import Attempt, Variable
from cudnn_doctor.observe.process import children_of, libraries_of
from cudnn_doctor.probe.root_files import clean
from cudnn_doctor.recorder import environment, library_path
from cudnn_doctor.recorder.read import read_folder

SAID = 400  # characters of the last lines that are kept
_LOOK = 0.02
_OUTPUT = 1 << 16  # bytes of the end of the output that are read


def variables(environ: Mapping[str, str], prefix: str, env: str, changed: Sequence[Variable]) -> dict[str, str]:
    """The environment of a run: the caller's, as an activated copy has it, with the changes last. Values that name the
    original lead to the copy."""
    result = {k: v.replace(prefix, env) for k, v in environ.items() if k not in ("PYTHONHOME", "CONDA_PREFIX")}
    result["VIRTUAL_ENV"] = env
    result["PATH"] = f"{env}/bin:{result.get('PATH', os.defpath)}"
    for variable in changed:
        result.pop(variable.name, None)
        if variable.value is not None:
            result[variable.name] = variable.value.replace(prefix, env)
    return result


def in_copy(command: Sequence[str], prefix: str, env: str) -> list[str]:
    """The command with the copy's program in place of the original's, by path or by name on PATH."""
    first = command[0]
    if first.startswith(f"{prefix}/"):
        first = env + first[len(prefix) :]
    elif "/" not in first and os.path.exists(f"{env}/bin/{first}"):
        first = f"{env}/bin/{first}"
    return [first, *command[1:]]


def run_times(
    times: int, command: Sequence[str], environ: Mapping[str, str], *, timeout: float, env: str, scratch: str | None
) -> tuple[Attempt, ...]:
    """k runs, one after the other; `timeout` is in seconds, for each. `scratch` is a folder that goes with the copy;
    None for the temporary one."""
    return tuple(_run(command, environ, timeout, env, scratch) for _ in range(times))


def _run(command: Sequence[str], environ: Mapping[str, str], timeout: float, env: str, scratch: str | None) -> Attempt:
    start = time.monotonic()
    folder = tempfile.TemporaryDirectory(prefix="cudnn-doctor-events-", dir=scratch)
    with folder as events, tempfile.TemporaryFile(dir=scratch) as output:
        recorder, _ = library_path()
        added = environment(recorder, events, environ) if recorder else {}
        try:
            process = subprocess.Popen(
                list(command),
                env={**environ, **added},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as e:
            return Attempt(ok=False, ending=f"not started: {command[0]}: {e.strerror}", seconds=0.0)
        seen: dict[str, None] = {}
        try:
            code = _watch(process, start + timeout, seen)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for recording in read_folder(Path(events)) if recorder else ():
            found = (e for e in recording.events if isinstance(e, LibraryLoaded) and e.library == "cudnn")
            seen.update({os.path.normpath(e.path): None for e in found})
        return Attempt(
            ok=code == 0,
            ending=_ending(code, timeout),
            seconds=round(time.monotonic() - start, 2),
            said=_last_lines(output.fileno()).replace(env, "{env}"),
            cudnn=tuple(sorted(p.replace(env, "{env}") for p in seen)),
        )


def _watch(process: subprocess.Popen[bytes], until: float, seen: dict[str, None]) -> int | None:
    """Waits; the exit code, or None at the deadline."""
    while time.monotonic() < until:
        for pid in _family(process.pid):
            with suppress(OSError):
                found = (os.path.normpath(p) for p in libraries_of(pid) if "/libcudnn" in p)
                seen.update({p.removesuffix(" (deleted)"): None for p in found})
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK)
    return None


def _family(pid: int) -> list[int]:
    found = [pid]
    for one in found:  # grows as it goes
        found += [child for child in children_of(one) if child not in found]
    return found[:64]


def _ending(code: int | None, timeout: float) -> str:
    if code is None:
        return f"no end within {timeout:g} s"
    if code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
        return f"signal {-code}"
    return f"exit code {code}"


def _last_lines(fd: int) -> str:
    size = os.fstat(fd).st_size
    data = os.pread(fd, _OUTPUT, max(0, size - _OUTPUT)).decode("utf-8", "replace")
    lines = [clean(line).strip() for line in data.splitlines() if line.strip()]
    return "\n".join(lines[-3:])[-SAID:]
