"""CD201 to CD205: may a program use this GPU, and is there room on it."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Absent, Fact, Known, known, value_or
from cudnn_doctor.model.facts import Gpu, GpuProcess, Xid
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.facts import (
    gpus,
    in_container,
    not_linux,
    pci_address,
    plural,
    size,
    unanswered,
    variable,
)
from cudnn_doctor.rules.remedies import again, fix, quoted
from cudnn_doctor.rules.sample import ABSENT, EX, sample

GIB = 1 << 30
CONTEXT = 512 << 20  # bytes; one handle of cuDNN 8.9 takes 265 MiB (measured on an H200), its context comes on top
TIGHT = 0.1  # of the card: below it most training and inference jobs do not fit


def _process(pid: int, name: str, memory: int) -> GpuProcess:
    return GpuProcess(pid=pid, name=known(name, EX), memory=known(memory, EX), kind="compute")


def _yes(fact: Fact[bool]) -> str:
    return "yes" if value_or(fact, False) else "no"


def _holders(gpu: Gpu) -> str:
    """ "pid 4711 (python3) 130.2 GiB, pid 4712 1.0 GiB, processes that this user or container cannot see 2.1 GiB"."""
    processes = value_or(gpu.processes, ())
    largest = sorted(processes, key=lambda p: -value_or(p.memory, 0))
    parts = [
        f"pid {p.pid}"
        + (f" ({p.name.value})" if isinstance(p.name, Known) and p.name.value else "")
        + (f" {size(p.memory.value)}" if isinstance(p.memory, Known) else "")
        for p in largest[:4]
    ]
    if len(largest) > 4:
        parts.append(f"{len(largest) - 4} more")
    hidden = value_or(gpu.memory_used, 0) - sum(value_or(p.memory, 0) for p in processes)
    if hidden > GIB:
        parts.append(f"processes that this user or container cannot see {size(hidden)}")
    return ", ".join(parts)


@rule(
    "CD201",
    title="Free memory of each GPU",
    severity="warning",
    owner="environment",
    causes=("vram-other-process", "vram-preallocated"),
    explain="""cuDNN needs memory for its handle and workspaces beside what the framework holds. On a full card
cudnnCreate fails with INTERNAL_ERROR (4 or 4000) and making a stream with CUDA error 2; cudnnSetStream itself was
never seen to fail for it. Mostly another process, a notebook kernel that still runs or a second rank holds the
memory: TensorFlow and JAX reserve nearly the whole card when they start. Below half a GiB not even a CUDA context
fits; that is an error. Below a tenth of the card it is a warning.""",
    source="nvmlDeviceGetMemoryInfo; cudnnCreate at no free memory was measured on an H200",
    examples=lambda: (
        ("ok", sample()),
        (
            "problem",
            sample(
                {
                    "gpus.0.memory_free": known(200 << 20, EX),
                    "gpus.0.memory_used": known(150545104896, EX),
                    "gpus.0.processes": known((_process(4711, "python3", 140 * GIB),), EX),
                }
            ),
        ),
        (
            "problem",
            sample({"gpus.0.memory_free": known(6 * GIB, EX), "gpus.0.memory_used": known(134 * GIB, EX)}),
        ),
        ("unknown", sample({"gpus.0.memory_free": ABSENT})),
    ),
)
def memory(case: Case) -> Iterator[Outcome]:
    for pointer, name, gpu in gpus(case):
        free, total = gpu.memory_free, gpu.memory_total
        if isinstance(free, Absent) or isinstance(total, Absent):
            yield unanswered(name, "Free memory", free if isinstance(free, Absent) else total)  # type: ignore[arg-type]
            continue
        text = f"{size(free.value)} of {size(total.value)} free"
        evidence = [shown(free, f"{pointer}/memory_free", text)]
        if free.value >= CONTEXT and free.value >= TIGHT * total.value:
            yield passed(name, text, evidence=evidence)
            continue
        holders = _holders(gpu)
        if holders:
            evidence.append(shown(gpu.processes, f"{pointer}/processes", holders))
        yield problem(
            name,
            f"Only {text}",
            detail=f"Who holds the memory: {holders}." if holders else "No process is listed that holds it.",
            evidence=evidence,
            fixes=[
                fix(
                    "Look at the processes and end those that are left over (old notebook kernels, stopped runs).",
                    f"nvidia-smi -i {gpu.index} --query-compute-apps=pid,process_name,used_memory --format=csv",
                    verify=again("CD201"),
                ),
                fix(
                    "If it is a TensorFlow or JAX program that reserved the whole card, start that one with",
                    "export TF_FORCE_GPU_ALLOW_GROWTH=true XLA_PYTHON_CLIENT_PREALLOCATE=false",
                    verify=f"nvidia-smi -i {gpu.index}",
                ),
            ],
            severity="error" if free.value < CONTEXT else None,
        )


@rule(
    "CD202",
    title="Compute mode",
    severity="error",
    owner="node",
    causes=("environment-restriction",),
    explain="""The node's owner can forbid CUDA on a GPU ("prohibited") or allow one process at a time
("exclusive-process"): the second one gets CUDA_ERROR_DEVICE_UNAVAILABLE (46) or "all CUDA-capable devices are busy or
unavailable", and cuDNN NOT_INITIALIZED. With MPS, exclusive-process is the recommended mode.""",
    source="nvidia-smi(1), --compute-mode; https://docs.nvidia.com/deploy/mps/",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.compute_mode": known("prohibited", EX)})),
        ("problem", sample({"gpus.0.compute_mode": known("exclusive-process", EX)})),
        (
            "problem",
            sample(
                {
                    "gpus.0.compute_mode": known("exclusive-process", EX),
                    "gpus.0.processes": known((_process(4711, "python3", GIB),), EX),
                }
            ),
        ),
        ("ok", sample({"gpus.0.compute_mode": known("exclusive-process", EX), "host.mps": known(True, EX)})),
    ),
)
def compute_mode(case: Case) -> Iterator[Outcome]:
    for pointer, name, gpu in gpus(case):
        if isinstance(gpu.compute_mode, Absent):
            yield unanswered(name, "Compute mode", gpu.compute_mode)
            continue
        mode = gpu.compute_mode.value
        evidence = [shown(gpu.compute_mode, f"{pointer}/compute_mode")]
        if mode == "default" or (mode == "exclusive-process" and value_or(case.snapshot.host.mps, False)):
            yield passed(name, f"Compute mode is {mode}", evidence=evidence)
            continue
        holder = next((p for p in value_or(gpu.processes, ()) if p.kind == "compute"), None)
        if holder:
            evidence.append(shown(gpu.processes, f"{pointer}/processes", f"pid {holder.pid} runs"))
        prohibited = mode == "prohibited"
        yield problem(
            name,
            "Compute mode is prohibited: no CUDA program may use it"
            if prohibited
            else f"Compute mode is {mode}, and pid {holder.pid} is already on it"
            if holder
            else f"Compute mode is {mode}: one program at a time",
            detail="" if prohibited else "A second process gets CUDA error 46 (device unavailable); so do two ranks.",
            evidence=evidence,
            fixes=[
                fix(
                    "Allow several programs again.",
                    f"sudo nvidia-smi -i {gpu.index} --compute-mode=DEFAULT",
                    verify=again("CD202"),
                )
            ],
            severity="error" if prohibited or holder else "note",
        )


@rule(
    "CD203",
    title="MIG",
    severity="error",
    owner="node",
    causes=("environment-restriction",),
    explain="""A GPU in MIG mode is used through slices. While none has been made, CUDA sees no device on it. When
there are some, a program sees exactly one: the one that CUDA_VISIBLE_DEVICES names, else the first; memory and speed
are those of the slice, and several programs without that variable all crowd into the first one.""",
    source="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.mig": known(True, EX)})),
        ("problem", sample({"gpus.0.mig": known(True, EX), "gpus.0.mig_devices": known(("MIG-1", "MIG-2"), EX)})),
        (
            "ok",
            sample(
                {
                    "gpus.0.mig": known(True, EX),
                    "gpus.0.mig_devices": known(("MIG-1", "MIG-2"), EX),
                    "host.environment.CUDA_VISIBLE_DEVICES": "MIG-2",
                }
            ),
        ),
    ),
)
def mig(case: Case) -> Iterator[Outcome]:
    chosen = case.snapshot.host.environment.get("CUDA_VISIBLE_DEVICES", "")
    for pointer, name, gpu in gpus(case):
        if isinstance(gpu.mig, Absent):
            yield unanswered(name, "MIG mode", gpu.mig)
            continue
        evidence = [shown(gpu.mig, f"{pointer}/mig", "on" if gpu.mig.value else "off")]
        if not gpu.mig.value:
            yield passed(name, "MIG is off", evidence=evidence)
            continue
        if isinstance(gpu.mig_devices, Absent):
            yield unanswered(name, "Slices of MIG", gpu.mig_devices)
            continue
        slices = gpu.mig_devices.value
        evidence += [
            shown(gpu.mig_devices, f"{pointer}/mig_devices", ", ".join(slices) or "none"),
            variable(case, "CUDA_VISIBLE_DEVICES"),
        ]
        if not slices:
            yield problem(
                name,
                "MIG is on, but no slice has been made: CUDA sees no device here",
                evidence=evidence,
                fixes=[
                    fix(
                        "Make slices: choose a profile of this list, then nvidia-smi mig -cgi PROFILE -C makes one.",
                        f"sudo nvidia-smi mig -i {gpu.index} -lgip",
                        verify="nvidia-smi -L",
                    ),
                    fix(
                        "Or turn MIG off, with no process on the GPU.",
                        f"sudo nvidia-smi -i {gpu.index} -mig 0",
                        verify="nvidia-smi -L",
                    ),
                ],
            )
        elif chosen.startswith("MIG-"):
            yield passed(name, f"MIG slice {chosen} is chosen", evidence=evidence)
        else:
            yield problem(
                name,
                f"MIG is on with {plural(len(slices), 'slice')} and none is chosen: programs get the first one",
                evidence=evidence,
                fixes=[
                    fix("Choose a slice.", f"export CUDA_VISIBLE_DEVICES={quoted(slices[0])}", verify=again("CD203"))
                ],
                severity="note",
                owner="environment",
            )


@rule(
    "CD204",
    title="Display on a GPU",
    severity="note",
    owner="environment",
    causes=("launch-timeout-watchdog",),
    explain="""While a GPU drives a display, the system ends kernels that run too long: 2 s under Windows (TDR), and a
run-time limit with X on Linux. A training step that meets it ends with LAUNCH_TIMEOUT, LAUNCH_FAILED or UNKNOWN, or
only with MAPPING_ERROR from the next cuDNN call. This says that it can happen here, not that it did.""",
    source="CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT in the CUDA Driver API; "
    "https://learn.microsoft.com/windows-hardware/drivers/display/timeout-detection-and-recovery",
    examples=lambda: (("ok", sample()), ("problem", sample({"gpus.0.display_active": known(True, EX)}))),
)
def display(case: Case) -> Iterator[Outcome]:
    for pointer, name, gpu in gpus(case):
        if isinstance(gpu.display_active, Absent):
            yield unanswered(name, "Display", gpu.display_active)
            continue
        evidence = [
            shown(gpu.display_active, f"{pointer}/display_active", f"a display is active: {_yes(gpu.display_active)}")
        ]
        if not gpu.display_active.value:
            yield passed(name, "No display runs on it", evidence=evidence)
            continue
        yield problem(
            name,
            "A display runs on it: long kernels can be ended by the watchdog",
            evidence=evidence,
            fixes=[
                fix(
                    "If programs end with launch timeouts or status 7: run them on a GPU without display, or stop the "
                    "desktop for the run.",
                    "sudo systemctl isolate multi-user.target",
                    verify=f"nvidia-smi -i {gpu.index} --query-gpu=display_active --format=csv",
                )
            ],
        )


@rule(
    "CD205",
    title="GPUs that the driver does not list",
    severity="note",
    owner="node",
    causes=("hardware-or-power",),
    explain="""A device that is on the PCI bus with the NVIDIA driver bound, but missing from NVML's list, has fallen
off the bus (Xid 79: power, heat, PCIe) or failed to start; or a job scheduler did not grant it, which is no fault.""",
    source="https://docs.nvidia.com/deploy/xid-errors/ (Xid 79)",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.pci": known("00000000:00:09.0", EX)})),
        (
            "problem",
            sample(
                {
                    "gpus.0.pci": known("00000000:00:09.0", EX),
                    "xids": known((Xid(time="", pci="0000:00:04", code=79, text="GPU has fallen off the bus."),), EX),
                }
            ),
        ),
        ("skipped", sample({"host.container": known("docker", EX)})),
    ),
)
def unlisted(case: Case) -> Iterator[Outcome]:
    listed = case.snapshot.gpus
    if not isinstance(listed, Known) or not listed.value:
        yield skip("machine", "NVML lists no GPU")
        return
    if in_container(case):
        yield skip("machine", "a container sees devices on the bus that it was not given")
        return
    pci = case.snapshot.driver.pci
    if not_linux(case) or (isinstance(pci, Known) and not pci.value):
        yield skip("machine", "this system shows no NVIDIA device on a PCI bus")
        return
    devices = see(case, lambda s: s.driver.pci).need()
    seen = {pci_address(value_or(g.pci, "")) for g in listed.value}
    missing = [
        (i, d.address)
        for i, d in enumerate(devices)
        if value_or(d.driver, "") == "nvidia" and pci_address(d.address) not in seen
    ]
    if not missing:
        title = f"NVML lists every NVIDIA device of the bus ({len(devices)})"
        yield passed("machine", title, evidence=[see(case, lambda s: s.gpus).shown(str(len(listed.value)))])
    fallen = {pci_address(x.pci) for x in value_or(case.snapshot.xids, ()) if x.code == 79}
    for i, address in missing:
        lost = pci_address(address) in fallen
        yield problem(
            f"GPU at {address}",
            "It fell off the bus (Xid 79)" if lost else "It is on the PCI bus, but NVML does not list it",
            detail="" if lost else "Either it failed, or this job was not given it.",
            evidence=[Evidence(pointer=f"/snapshot/driver/pci/value/{i}", value=address, source="sysfs")],
            fixes=[
                fix(
                    "Look for what the driver said of it; after Xid 79 power the machine down and up, and check power "
                    "and seating.",
                    f"sudo dmesg | grep -i {quoted(address[5:])}",
                    verify=again("CD205"),
                )
            ],
            severity="warning" if lost else None,
        )
