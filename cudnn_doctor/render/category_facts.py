"""What is said of each category of a report: driver, GPU, cuDNN, compatibility, environment and live results.

As in `summary`: facts only, cleaned by each form in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.facts import Gpu, Resolution, Snapshot
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.report import Report
from cudnn_doctor.render.clean import short_path, size, time
from cudnn_doctor.rules.switches import CAN_BREAK, CHANGES


def driver_facts(report: Report) -> Iterable[str]:
    """ "580.159.04 (open kernel module), serves CUDA up to 13.0"."""
    d = report.snapshot.driver
    if isinstance(d.version, Known):
        module = value_or(d.kernel_module, "")
        kind = value_or(d.kernel_module_kind, "")
        differs = f"kernel module {module}" if module and module != d.version.value else ""
        about = differs or (f"{kind} kernel module" if kind else "")
        text = f"{d.version.value} ({about})" if about else d.version.value
        asked = d.init.value.driver_cuda if isinstance(d.init, Known) else d.init
        cuda = value_or(d.cuda, value_or(asked, ""))
        yield f"{text}, serves CUDA up to {cuda}" if cuda else text
        return
    if isinstance(d.pci, Known):
        n = len(d.pci.value)
        yield (
            "no NVIDIA device"
            if not n
            else f"{n} NVIDIA device{'s' if n > 1 else ''} on the PCI bus, no driver answers"
        )
    if isinstance(d.nvml, Known) and d.nvml.value.code:
        yield f"NVML: {d.nvml.value.name}"
    elif isinstance(d.kernel_module, Known):
        yield f"kernel module {d.kernel_module.value}"


def gpu_facts(report: Report) -> Iterable[str]:
    """ "GPU 0 NVIDIA H200 (9.0), 139.8 GiB free of 140.4 GiB"; more than four alike are one line."""
    gpus = value_or(report.snapshot.gpus, ())

    def kind(g: Gpu) -> tuple[str, str]:
        return value_or(g.name, "unnamed"), value_or(g.compute_capability, "?")

    for (name, capability), group in groupby(gpus, key=kind):
        same = list(group)
        batches = [same] if len(same) > 4 else [[g] for g in same]
        for batch in batches:
            yield f"{_numbers(batch)} {name} ({capability}){_memory(batch)}"
    if not gpus:
        gone = report.snapshot.gpus
        yield f"none seen ({gone.detail or gone.reason})" if isinstance(gone, Absent) else "none"


def _numbers(gpus: Sequence[Gpu]) -> str:
    first, last = gpus[0].index, gpus[-1].index
    return f"GPU {first}" if first == last else f"GPU {first} to {last}:"


def _memory(gpus: Sequence[Gpu]) -> str:
    free = [g.memory_free.value for g in gpus if isinstance(g.memory_free, Known)]
    total = [g.memory_total.value for g in gpus if isinstance(g.memory_total, Known)]
    if not free or not total:
        return ""
    least = "at least " if len(gpus) > 1 else ""
    return f", {least}{size(min(free))} free of {size(min(total))}"


def cudnn_facts(report: Report) -> Iterable[str]:
    """Who loads which copy and by which step, then the copies that lose. Where several majors are wanted, a plain
    dlopen says which it means."""
    copies = {c.real_path: c for c in report.snapshot.cudnn}
    users = loads(report.snapshot)
    several = len({r.wanted for r in users}) > 1

    def named(real_path: str) -> str:
        copy = copies.get(real_path)
        where = short_path(real_path.rpartition("/")[0])
        return f"{value_or(copy.version, 'unknown version') if copy else 'a copy'} in {where}"

    def user(r: Resolution) -> str:
        return f"{r.consumer} of {r.wanted}" if several and r.consumer == "plain dlopen" else r.consumer

    winners: dict[str, list[Resolution]] = {}
    for r in users:
        if isinstance(r.real_path, Known):
            winners.setdefault(r.real_path.value, []).append(r)
    for real_path, by in winners.items():
        yield f"{named(real_path)} is loaded by {', '.join(f'{user(r)} ({short_step(r.step)})' for r in by)}"
    for real_path in copies:
        if real_path not in winners:
            lost = any(real_path in r.shadowed for r in users)
            yield f"{named(real_path)} is {'shadowed' if lost else 'not loaded by anything found here'}"
    if not copies:
        yield "no copy found"


def loads(snapshot: Snapshot) -> tuple[Resolution, ...]:
    """Who loads libcudnn itself: frameworks and a plain dlopen. What a copy opens further is left out."""
    return tuple(r for r in snapshot.resolutions if r.wanted.startswith("libcudnn.so") and r.consumer[:1] != "/")


def short_step(step: str) -> str:
    """ "DT_RUNPATH of .../libtorch_cuda.so"."""
    return re.sub(r"(?<!\S)/\S*/([^/\s]+)", r".../\1", step)


def compatibility_facts(report: Report) -> Iterable[str]:
    """ "torch 2.11.0, built with CUDA 13.0 and cuDNN 9.19.0"."""
    for f in report.snapshot.frameworks:
        built = [
            f"{what} {fact.value}"
            for what, fact in (("CUDA", f.built_cuda), ("cuDNN", f.built_cudnn))
            if isinstance(fact, Known)
        ]
        kind = "" if value_or(f.cuda_build, True) else " (a build without CUDA)"
        yield f"{f.name} {f.version}{kind}" + (f", built with {' and '.join(built)}" if built else "")
    if not report.snapshot.frameworks:
        yield "no framework found in the environment"


def environment_facts(report: Report) -> Iterable[str]:
    """ "kernel 6.18.0, glibc 2.39, container docker", and which variables are set."""
    host = report.snapshot.host
    container = value_or(host.container, "none")
    parts = [f"kernel {host.kernel.value}"] if isinstance(host.kernel, Known) else []
    parts += [host.libc.value] if isinstance(host.libc, Known) else []
    parts += [f"container {container}"] if container != "none" else []
    parts += ["WSL"] if value_or(host.wsl, False) else []
    parts += ["MPS"] if value_or(host.mps, False) else []
    yield ", ".join(parts) or host.machine
    told = [v for v in host.environment if v in TOLD]
    if told:
        yield f"set: {', '.join(told)}"


def live_facts(report: Report) -> Iterable[str]:
    """ "device 0, cuDNN 9.19.0: works, 285 ms (context 121 ms, cudnnCreate 3.5 ms, ...)"."""
    live = [r for r in report.scenarios if r.scenario == "live-check"]
    yield from dict.fromkeys(f"{live_subject(r)}: {live_outcome(r)}" for r in live)
    if not live:
        yield "not run"


# What a person looks for first among the variables, and the calls whose cost is told.
TOLD = (
    *("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LD_PRELOAD", "TF_FORCE_GPU_ALLOW_GROWTH", "XLA_FLAGS", "PYTHONPATH"),
    *CAN_BREAK,
    *CHANGES,
)
TIMED = {
    "cuDevicePrimaryCtxRetain": "context",
    "cudnnCreate": "cudnnCreate",
    "cudnnSetStream": "cudnnSetStream",
    "cudnnConvolutionForward": "convolution",
}


def conclusions(report: Report) -> list[tuple[str, list[str]]]:
    """What the provoked states say of this machine: sentences, each with the lines of the list that follows it."""
    told: list[tuple[str, list[str]]] = []
    for known in (report.reproduction or {}).get("conclusions", ()):
        for line in known["text"].split("\n"):
            if line.startswith("- ") and told:
                told[-1][1].append(line.removeprefix("- "))
            else:
                told.append((line, []))
    return told


def live_subject(result: ScenarioResult) -> str:
    """ "device 0, cuDNN 9.19.0": the number is CUDA's, as for `--device`; NVML's GPU 0 may be another."""
    device = "no device" if result.device is None else f"device {result.device}"
    return f"{device}, cuDNN {result.cudnn_version or short_path(result.cudnn)}"


def live_outcome(result: ScenarioResult) -> str:
    """How a child ended: time where it went well, else the first failing call or the death of the child."""
    if result.skipped:
        return f"not run: {result.skipped}"
    if result.fate.kind != "completed":
        return fate_text(result)
    for step in result.steps:
        if step.status:
            return f"{step.call} gave {step.status} {step.name}"
    took = {step.call: step.ms for step in result.steps if step.ms is not None}
    parts = ", ".join(f"{name} {time(took[call])}" for call, name in TIMED.items() if call in took)
    return f"works, {time(result.ms)}{f' ({parts})' if parts else ''}"


def fate_text(result: ScenarioResult) -> str:
    """The death of a child in words."""
    fate = result.fate
    during = f" in {fate.last_step}" if fate.last_step else ""
    if fate.kind == "signal":
        return f"ended by {fate.signal}{during}"
    if fate.kind == "timeout":
        return f"no answer within the time limit{during}"
    if fate.kind == "exit":
        return f"ended with exit code {fate.exit_code}{during}"
    if fate.kind == "not-started":
        return f"not started{': ' + fate.error if fate.error else ''}"
    return fate.error or "completed"


FACTS: dict[str, Callable[[Report], Iterable[str]]] = {
    "Driver": driver_facts,
    "GPU": gpu_facts,
    "cuDNN": cudnn_facts,
    "Compatibility": compatibility_facts,
    "Environment": environment_facts,
    "Live": live_facts,
}
