"""The whole of `inspect`: reads the processes, asks NVML for their memory, judges."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cudnn_doctor.model.base import Absent, Fact, Known, known
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.inspection import GpuUse, InspectedProcess, Inspection
from cudnn_doctor.observe import inspect as outside
from cudnn_doctor.observe.stacks import python_stacks
from cudnn_doctor.postmortem.living import judge_processes
from cudnn_doctor.probe.root_files import on_linux

# A consumer of `check` by a library that only it has.
_CONSUMERS = (("libtorch", "torch"), ("libtensorflow", "tensorflow"), ("xla_cuda_plugin", "jax"), ("libjax", "jax"))


def inspect(pids: Sequence[int], *, every: bool, stacks: bool) -> Inspection:
    """Looks at each process.

    Raises:
        UsageError: this is no Linux.
    """
    if not on_linux():
        raise UsageError("inspect reads /proc, which only Linux has.")
    memory = _memory()
    found: list[InspectedProcess] = []
    notes: list[str] = []
    for pid in outside.gpu_processes(memory) if every else dict.fromkeys(pids):
        try:
            process = outside.inspect_process(pid, memory)
        except outside.GoneError as error:
            notes.append(f"{error}.")
            continue
        if not every:
            process = msgspec.structs.replace(process, would_load=_would_load(process))
        if stacks:
            process = msgspec.structs.replace(process, stacks=_stacks(pid))
        found.append(process)
    if every and not found and not notes:
        notes.append("no process that this user may see holds a GPU")
    if isinstance(memory, Absent) and memory.reason != "not-found":
        notes.append(f"GPU memory of processes: {memory.detail or memory.reason}")
    return judge_processes(found, notes)


def _memory() -> outside.Memory:
    """Memory by process as NVML tells it, asked in a child."""
    from cudnn_doctor.probe.nvml_session import NvmlSession

    with NvmlSession(timeout_s=5.0) as nvml:
        gpus = nvml.gpus
    if isinstance(gpus, Absent):
        return gpus
    by_pid: dict[int, tuple[GpuUse, ...]] = {}
    for gpu in gpus.value:
        for user in gpu.processes.value if isinstance(gpu.processes, Known) else ():
            by_pid[user.pid] = (*by_pid.get(user.pid, ()), GpuUse(gpu=gpu.index, memory=user.memory))
    return known(by_pid, "NVML")


def _stacks(pid: int) -> Fact[str]:
    stacks, unknown = python_stacks(pid)
    return known(stacks, "py-spy") if stacks else Absent(reason="not-found", detail=unknown)


def _would_load(process: InspectedProcess) -> Fact[str]:
    """The libcudnn that `check` finds for the process's own interpreter, environment and framework."""
    libraries = process.libraries.value if isinstance(process.libraries, Known) else ()
    core = next((lib for lib in libraries if lib.name == "libcudnn"), None)
    if core is None:
        return Absent(reason="not-examined", detail="it has no cuDNN loaded")
    if "mnt" in process.namespaces:
        return Absent(reason="not-examined", detail="it lives in another mount namespace: run check inside of it")
    try:
        environ = outside.environment_of(process.pid)
        python = outside.interpreter_of(process.pid, environ)
    except OSError as error:
        return Absent(reason="no-permission", detail=error.strerror or "")
    if not python:
        return Absent(reason="not-examined", detail="it is no Python program")
    return _resolved(python, environ, [lib.name for lib in libraries], core.path)


def _resolved(python: str, environ: dict[str, str], names: Sequence[str], path: str) -> Fact[str]:
    from cudnn_doctor import examine
    from cudnn_doctor.model.options import Options

    try:
        facts = examine.gather(Options(env=python, live=False), environ)
    except ValueError as error:
        return Absent(reason="error", detail=str(error))
    consumer = next((c for word, c in _CONSUMERS if any(n.startswith(word) for n in names)), "plain dlopen")
    wanted = path.rpartition("/")[2]
    for resolution in facts.snapshot.resolutions:
        if resolution.consumer == consumer and wanted.startswith(resolution.wanted):
            if isinstance(resolution.path, Known):
                return known(resolution.path.value, f"{consumer}: {resolution.step}")
            return resolution.path
    return Absent(reason="not-found", detail=f"check finds no {wanted} for {consumer}")
