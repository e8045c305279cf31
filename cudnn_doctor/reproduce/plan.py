"""Which states run in which child, and which do not run at all and why. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module

from cudnn_doctor.live.one_device import only
from cudnn_doctor.live.parent import Job, Task
from cudnn_doctor.model.base import Base, Fact, Known
from cudnn_doctor.model.live import ScenarioResult, Termination
from cudnn_doctor.model.reproduction import Copy, Device, Request
from cudnn_doctor.scenarios import scenarios
from cudnn_doctor.scenarios.base import Scenario

CHILD_SECONDS = 15.0
UNSEEN_MEMORY = 2 << 30  # bytes in use from which on someone must be there; an idle H200 shows 0.6 GiB
QUEUES = (
    "CUDA_DEVICE_MAX_CONNECTIONS"  # hardware queues; a context with one is made in 0.1 s, with the usual eight in 0.2
)
CHILD_MEMORY = 1 << 30  # bytes of device memory that a child may take: a context and a handle of cuDNN 8


class Phase(Base, frozen=True, kw_only=True):
    """Jobs that may run at the same time, `width` of them at most."""

    jobs: tuple[Job, ...]
    width: int
    shared: bool = False  # its first jobs are the shared children of a copy


class Plan(Base, frozen=True, kw_only=True):
    """All of the work, and results for what is left out."""

    phases: tuple[Phase, ...]
    skipped: tuple[ScenarioResult, ...]


class UnknownStateError(ValueError):
    """The user named a state that there is not."""


def make_plan(
    request: Request, copies: Sequence[Copy], devices: Sequence[Device], mps: Fact[bool], environ: Mapping[str, str]
) -> Plan:
    """First, copy by copy, a shared child on each device with all that need no child of their own: nothing else of
    ours is on the device then, so that what they measure and fill is its memory. Then all others at once.

    Raises:
        UnknownStateError: a state is asked for that there is not.
    """
    wanted = wanted_states(request)
    skipped: list[ScenarioResult] = []
    phases: list[Phase] = []
    singles: list[Job] = []
    for copy in copies:
        shared: list[Job] = []
        for device in devices:
            chosen: list[tuple[str, Scenario]] = []
            for module, state in wanted:
                why = _refusal(state, request, copy, device, devices, mps)
                if why:
                    skipped.append(_skipped(state, copy, device, why))
                else:
                    chosen.append((module, state))
            together = [c for c in chosen if c[1].shares_a_child]
            if together:
                shared.append(child_job(together, request.repeat, copy, device, devices, environ))
            for single in (c for c in chosen if not c[1].shares_a_child):
                jobs = [child_job([single], 1, copy, device, devices, environ) for _ in range(request.repeat)]
                (shared if single[1].danger == "harmless" else singles).extend(jobs)
        phases.append(Phase(jobs=tuple(shared), width=len(shared), shared=True))
    phases.append(Phase(jobs=tuple(singles), width=_width(devices)))
    return Plan(phases=tuple(p for p in phases if p.jobs), skipped=tuple(skipped))


def wanted_states(request: Request) -> list[tuple[str, Scenario]]:
    """Module and metadata of the states that are asked for, in their order.

    Raises:
        UnknownStateError: there is no such state.
    """
    known = scenarios()
    for name in request.states:
        if name not in known:
            raise UnknownStateError(
                f"there is no state {name!r}; `cudnn-doctor reproduce --list` shows all {len(known)} of them."
            )
    return [known[i] for i in known if not request.states or i in request.states]


def _refusal(
    state: Scenario, request: Request, copy: Copy, device: Device, devices: Sequence[Device], mps: Fact[bool]
) -> str:
    """Why a state is not run; "" when it is. Faults under MPS would kill every client of the server, full memory
    every other user of the GPU."""
    if copy.major not in state.majors:
        return f"cuDNN {copy.major} does not have it"
    if state.second_copy and not copy.other:
        return f"needs a second cuDNN {copy.major} of another version on this machine"
    if state.id == "cublas-missing" and copy.cublas_in_cache:
        return f"the loader finds {copy.cublas_in_cache} whatever the environment says"
    if state.danger == "needs-two-gpus" and len(devices) < 2:
        return "needs two GPUs"
    if state.danger == "faults-context":
        return _fault_refusal(request, mps)
    if state.danger == "fills-memory":
        return _memory_refusal(request, device, mps)
    return ""


def _fault_refusal(request: Request, mps: Fact[bool]) -> str:
    if not request.faults:
        return "not asked for: --faults (leaves an Xid line in the kernel log)"
    if not isinstance(mps, Known):
        return f"refused: whether MPS runs could not be read ({mps.detail or mps.reason})"
    return f"refused: MPS runs, and a fault would end all its clients ({mps.source})" if mps.value else ""


def _memory_refusal(request: Request, device: Device, mps: Fact[bool]) -> str:
    if not request.memory:
        return "not asked for: --memory (fills the GPU's memory for a second)"
    if isinstance(mps, Known) and mps.value:
        return f"refused: MPS runs, others share this GPU ({mps.source})"
    if request.yes:
        return ""
    if not isinstance(device.users, Known):
        why = device.users.detail or device.users.reason
        return f"refused: who uses the GPU could not be read ({why}); --yes runs it all the same"
    if device.users.value:
        pids = ", ".join(str(p.pid) for p in device.users.value[:5])
        others = len(device.users.value)
        return f"refused: {others} other process(es) use the GPU (PID {pids}); --yes runs it all the same"
    if isinstance(device.memory_used, Known) and device.memory_used.value > UNSEEN_MEMORY:
        used = device.memory_used.value >> 20
        return f"refused: {used} MiB of the GPU are in use though no process is visible; --yes runs it all the same"
    return ""


def child_job(
    states: Sequence[tuple[str, Scenario]],
    repeat: int,
    copy: Copy,
    device: Device,
    devices: Sequence[Device],
    environ: Mapping[str, str],
) -> Job:
    """One child that makes the states in turn, `repeat` times over."""
    env = {"CUDA_CACHE_DISABLE": "1"}  # or the driver would write what it compiles below the user's home
    if QUEUES not in environ:
        env[QUEUES] = "1"
    preload = copy.preload if copy.major < 9 else ()  # cuDNN 9 opens cuBLAS for some engines, 8 in cudnnCreate
    tasks = []
    for turn in range(repeat):
        for name, state in states:
            module = import_module(f"cudnn_doctor.scenarios.{name}")
            hide: tuple[str, ...] = getattr(module, "HIDE", ())
            args = {"state": name, "device": device.ordinal, "cudnn": copy.path, "preload": preload, "hide": hide}
            if state.danger == "needs-two-gpus":
                args["other_device"] = next(d.ordinal for d in devices if d.ordinal != device.ordinal)
            elif len(devices) > 1:
                env["CUDA_VISIBLE_DEVICES"], args["device"] = only(device.ordinal, environ), 0
            if hide:
                env["LD_LIBRARY_PATH"] = without(environ.get("LD_LIBRARY_PATH", ""), hide)
                args["preload"] = tuple(p for p in preload if not os.path.basename(p).startswith(hide))
            if state.second_copy:
                args["preload"] = (*preload, os.path.join(copy.other, module.FIRST[copy.major]))
            env.update(state.set_env)
            tasks.append(
                Task(id=f"{state.id}#{turn}" if turn else state.id, body="cudnn_doctor.scenarios.base:play", args=args)
            )
    return Job(
        tasks=tuple(tasks),
        device=device.ordinal,
        set_env=env,
        deadline=CHILD_SECONDS * repeat,
        limits={} if states[0][1].stack_limit is None else {"STACK": states[0][1].stack_limit},
    )


def without(path: str, names: tuple[str, ...]) -> str:
    """A library path less the folders that hold one of the libraries in `names` (prefixes of file names)."""

    def holds(folder: str) -> bool:
        try:
            return any(n.startswith(names) for n in os.listdir(folder))
        except OSError:
            return False

    return ":".join(f for f in path.split(":") if f and not holds(f))


def _width(devices: Sequence[Device]) -> int:
    """Children at a time: the driver makes contexts one after the other anyway, and each takes memory."""
    rooms = [d.memory_free.value // CHILD_MEMORY if isinstance(d.memory_free, Known) else 4 for d in devices]
    return max(1, min(16, min(rooms, default=1) * len(devices)))


def _skipped(state: Scenario, copy: Copy, device: Device, why: str) -> ScenarioResult:
    return ScenarioResult(
        scenario=state.id,
        device=device.ordinal,
        cudnn=copy.path,
        cudnn_version=copy.version,
        fate=Termination(kind="not-started"),
        steps=(),
        ms=0.0,
        skipped=why,
    )
