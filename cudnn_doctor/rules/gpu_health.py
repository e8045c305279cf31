"""CD206 to CD210: heat and power, failing memory, what the driver asks for, Xid lines of the kernel log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.model.base import Absent, Known, known, value_or
from cudnn_doctor.model.facts import Xid
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.facts import gpu_present, gpus, not_linux, pci_address, plural, unanswered
from cudnn_doctor.rules.remedies import again, fix
from cudnn_doctor.rules.sample import ABSENT, EX, NO_DEVICE, sample

# Reasons that mean too hot or too little power; "sw-power-cap" is normal on a busy GPU, "gpu-idle" on an idle one.
SLOWED = {
    "sw-thermal": "the driver lowers the clocks because it is too hot",
    "hw-thermal": "the hardware halves the clocks because it is too hot",
    "hw-slowdown": "the hardware halves the clocks (heat or power)",
    "hw-power-brake": "the power supply asks it to slow down",
}
MEMORY_DOC = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/ and https://docs.nvidia.com/deploy/dynamic-page-retirement/"


@rule(
    "CD206",
    title="Throttling by heat or power",
    severity="warning",
    owner="node",
    causes=("hardware-or-power",),
    explain="""A GPU that slows down for heat or for a weak power supply is slow at best. The same fault also shows as
kernels that end with "unspecified launch failure" and a GPU that falls off the bus, which frameworks report as cuDNN
errors. A power cap set in software, or a lowered clock when idle, is normal and not counted.""",
    source="nvmlDeviceGetCurrentClocksEventReasons (NVML)",
    examples=lambda: (
        ("ok", sample()),
        ("ok", sample({"gpus.0.throttle": known(("gpu-idle", "sw-power-cap"), EX)})),
        ("problem", sample({"gpus.0.throttle": known(("hw-slowdown", "hw-power-brake"), EX)})),
        ("unknown", sample({"gpus.0.throttle": ABSENT})),
    ),
)
def throttling(case: Case) -> Iterator[Outcome]:
    for pointer, name, gpu in gpus(case):
        if isinstance(gpu.throttle, Absent):
            yield unanswered(name, "Reasons for lowered clocks", gpu.throttle)
            continue
        active = [r for r in gpu.throttle.value if r in SLOWED]
        heat = f"{gpu.temperature.value} degrees Celsius" if isinstance(gpu.temperature, Known) else ""
        evidence = [shown(gpu.throttle, f"{pointer}/throttle", ", ".join(gpu.throttle.value) or "none")]
        if heat:
            evidence.append(shown(gpu.temperature, f"{pointer}/temperature", heat))
        if not active:
            yield passed(name, f"Not slowed down{f', {heat}' if heat else ''}", evidence=evidence)
            continue
        yield problem(
            name,
            f"Slowed down: {'; '.join(SLOWED[r] for r in active)}",
            evidence=evidence,
            fixes=[
                fix(
                    "Check fans, air flow and the power cables and supply of this GPU.",
                    f"nvidia-smi -i {gpu.index} -q -d PERFORMANCE,TEMPERATURE,POWER",
                    verify=again("CD206"),
                )
            ],
        )


@rule(
    "CD207",
    title="Uncorrected ECC errors",
    severity="warning",
    owner="node",
    causes=("hardware-or-power",),
    explain="""An uncorrectable memory error kills the program that met it (CUDA 214 or 226, Xid 48, 94 or 95), and
cuDNN is often the one to report it. The counter holds what happened since the driver was loaded or the GPU reset.""",
    source=MEMORY_DOC,
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.ecc_uncorrected": known(2, EX)})),
        ("skipped", sample({"gpus.0.ecc_uncorrected": Absent(reason="not-supported", detail="no ECC")})),
    ),
)
def ecc(case: Case) -> Iterator[Outcome]:
    for pointer, name, gpu in gpus(case):
        if isinstance(gpu.ecc_uncorrected, Absent):
            yield unanswered(name, "ECC errors", gpu.ecc_uncorrected)
            continue
        count = gpu.ecc_uncorrected.value
        evidence = [shown(gpu.ecc_uncorrected, f"{pointer}/ecc_uncorrected")]
        if not count:
            yield passed(name, "No uncorrected ECC error since the last reset", evidence=evidence)
            continue
        yield problem(
            name,
            f"{plural(count, 'uncorrected ECC error')} since the last reset",
            evidence=evidence,
            fixes=[
                fix(
                    "With no process on the GPU, reset it; replace it if the errors come back.",
                    f"nvidia-smi -i {gpu.index} -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT; "
                    f"sudo nvidia-smi -i {gpu.index} --gpu-reset",
                    verify=again("CD207"),
                )
            ],
        )


@rule(
    "CD208",
    title="Retired pages and remapped rows",
    severity="warning",
    owner="node",
    causes=("hardware-or-power",),
    explain="""Bad places of the device memory are taken out of use: as pages up to Volta and Turing, as remapped rows
from Ampere on. "Pending" takes effect at the next reset and is harmless until then for programs that do not use the
place; "failed" means that there is no spare memory left and the GPU must be replaced.""",
    source=MEMORY_DOC,
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.remap_pending": known(True, EX)})),
        ("problem", sample({"gpus.0.remap_failed": known(True, EX)})),
        ("problem", sample({"gpus.0.retirement_pending": known(True, EX)})),
        ("unknown", sample({"gpus.0.remap_failed": ABSENT, "gpus.0.remap_pending": ABSENT})),
    ),
)
def bad_memory(case: Case) -> Iterator[Outcome]:
    for pointer, name, gpu in gpus(case):
        facts = {
            "remap_failed": gpu.remap_failed,
            "remap_pending": gpu.remap_pending,
            "retirement_pending": gpu.retirement_pending,
        }
        read = {field: fact for field, fact in facts.items() if isinstance(fact, Known)}
        evidence = [
            shown(fact, f"{pointer}/{field}", f"{field.replace('_', ' ')}: {'yes' if fact.value else 'no'}")
            for field, fact in read.items()
        ]
        absent = [fact for fact in facts.values() if isinstance(fact, Absent)]
        unread = [fact for fact in absent if fact.reason != "not-supported"]  # a GPU has one of the two schemes
        failed = value_or(gpu.remap_failed, False)
        pending = value_or(gpu.remap_pending, False) or value_or(gpu.retirement_pending, False)
        if failed:
            yield problem(
                name,
                "Row remapping failed: the memory is failing and has no spare rows left",
                evidence=evidence,
                fixes=[
                    fix(
                        "Take the GPU out of use and have it replaced.",
                        f"nvidia-smi -i {gpu.index} -q -d ROW_REMAPPER",
                        verify=again("CD208"),
                    )
                ],
                severity="error",
            )
        elif pending:
            yield problem(
                name,
                "Bad memory waits for a reset to be taken out of use",
                evidence=evidence,
                fixes=[
                    fix(
                        "With no process on the GPU, reset it (or reboot).",
                        f"sudo nvidia-smi -i {gpu.index} --gpu-reset",
                        verify=again("CD208"),
                    )
                ],
            )
        elif unread or not read:
            yield unanswered(name, "Row remapping and page retirement", (unread or absent)[0])
        else:
            yield passed(name, "No bad memory is waiting or failed", evidence=evidence)


RECOVERY = {
    "gpu-reset": "it must be reset before it works again",
    "bus-reset": "its PCIe bus must be reset",
    "node-reboot": "the node must be rebooted",
    "system-reboot": "the system must be rebooted",
    "drain-and-reset": "its work must be drained and it must be reset",
    "drain-p2p": "work over its NVLink peers must be drained, then it must be reset",
    "recover-imex-domain": "the IMEX domain must be recovered",
}


@rule(
    "CD209",
    title="Recovery that the driver asks for",
    severity="error",
    owner="node",
    causes=("hardware-or-power", "driver-stack-bug"),
    explain="""After a fault the driver says what brings the GPU back: nothing, a reset, a reboot, or draining its
peers first. Until then programs fail at unforeseeable places.""",
    source="https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"gpus.0.recovery_action": known("gpu-reset", EX)})),
        ("problem", sample({"gpus.0.recovery_action": known("action-9", EX)})),
        ("skipped", sample({"gpus.0.recovery_action": Absent(reason="not-supported", detail="old driver")})),
    ),
)
def recovery(case: Case) -> Iterator[Outcome]:
    for pointer, name, gpu in gpus(case):
        if isinstance(gpu.recovery_action, Absent):
            yield unanswered(name, "Recovery action", gpu.recovery_action)
            continue
        action = gpu.recovery_action.value
        evidence = [shown(gpu.recovery_action, f"{pointer}/recovery_action")]
        if action == "none":
            yield passed(name, "The driver asks for no recovery", evidence=evidence)
            continue
        whole = "reboot" in action
        yield problem(
            name,
            f"The driver asks for {action}: {RECOVERY.get(action, 'see the documentation of this driver')}",
            evidence=evidence,
            fixes=[
                fix(
                    "Move the work away and reboot." if whole else "End all processes on the GPU, then reset it.",
                    "sudo reboot" if whole else f"sudo nvidia-smi -i {gpu.index} --gpu-reset",
                    verify=again("CD209"),
                )
            ],
            severity="warning" if action in ("drain-p2p", "recover-imex-domain") else None,
        )


UNKNOWN_XID = {
    "name": "see NVIDIA's catalogue",
    "owner": "node",
    "causes": ["hardware-or-power"],
    "action": "Look the number up: https://docs.nvidia.com/deploy/xid-errors/",
}


@rule(
    "CD210",
    title="Xid lines of the kernel log",
    severity="warning",
    owner="node",
    causes=("hardware-or-power", "prior-cuda-fault"),
    explain="""The driver writes an Xid line when a GPU, or a program on it, fails. The number tells a fault of the
program (13, 31, 43: a kernel that faulted, and the real reason for many a cuDNN error) from failing hardware (48, 79,
95). The lines are of the past: a reset may have cured what they report.""",
    source="https://docs.nvidia.com/deploy/xid-errors/",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"xids": known((Xid(time="t", pci="0000:00:04", code=79, text="fell off the bus"),), EX)})),
        ("problem", sample({"xids": known((Xid(time="t", pci="0000:00:04", code=31, text="MMU Fault"),), EX)})),
        ("problem", sample({"xids": known((Xid(time="t", pci="0000:00:04", code=999, text="?"),), EX)})),
        ("unknown", sample({"xids": Absent(reason="no-permission", detail="/dev/kmsg")})),
        ("skipped", sample(NO_DEVICE)),
    ),
)
def xids(case: Case) -> Iterator[Outcome]:
    if not_linux(case):
        yield skip("machine", "Xid lines are written by the driver of Linux")
        return
    if not value_or(case.snapshot.xids, ()) and not gpu_present(case):
        yield skip("machine", "no NVIDIA GPU on this machine")
        return
    lines = see(case, lambda s: s.xids).need()
    if not lines:
        yield passed("machine", "No Xid in the kernel log", evidence=[see(case, lambda s: s.xids).shown("none")])
        return
    names = {pci_address(value_or(g.pci, "")): name for _, name, g in gpus(case)}
    groups: dict[tuple[str, int], list[int]] = {}
    for i, line in enumerate(lines):
        groups.setdefault((pci_address(line.pci), line.code), []).append(i)
    for (address, code), indexes in groups.items():
        meaning: dict[str, Any] = knowledge("xids")["xids"].get(code, UNKNOWN_XID)
        last = lines[indexes[-1]]
        times = f", {len(indexes)} times" if len(indexes) > 1 else ""
        when = f", last at {last.time}" if last.time else ""
        program = meaning["owner"] == "program"
        yield problem(
            names.get(address, f"GPU at {address}"),
            f"Xid {code} ({meaning['name']}){times}{when}",
            detail="Mostly the fault of a program that ran then, not of the GPU." if program else "",
            evidence=[shown(case.snapshot.xids, f"/snapshot/xids/value/{indexes[-1]}", last.text[:160])],
            fixes=[fix(meaning["action"], "sudo dmesg -T | grep -i xid", verify=again("CD210"))],
            severity="note" if program else None,
            owner=meaning["owner"],
            causes=meaning["causes"],
        )
