"""CD2xx: memory and its holders, modes, failing hardware, Xid lines."""

from __future__ import annotations

from typing import Any

import pytest

from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.facts import GpuProcess, PciDevice, Xid
from cudnn_doctor.rules.gpu_health import RECOVERY
from cudnn_doctor.rules.sample import ABSENT, sample, two_gpus
from tests.rules import judge, only

T = "test"
GIB = 1 << 30


def process(pid: int, memory: int | None, name: str = "") -> GpuProcess:
    return GpuProcess(
        pid=pid,
        name=known(name, T) if name else ABSENT,
        memory=ABSENT if memory is None else known(memory, T),
        kind="compute",
    )


def memory(free: int, total: int, *processes: GpuProcess) -> dict[str, Any]:
    return {
        "gpus.0.memory_free": known(free, T),
        "gpus.0.memory_total": known(total, T),
        "gpus.0.memory_used": known(total - free, T),
        "gpus.0.processes": known(processes, T),
    }


def test_a_full_card_and_by_whom() -> None:
    finding = only("CD201", sample(memory(300 << 20, 24 * GIB, process(1, 2 * GIB), process(7, 20 * GIB, "python3"))))
    assert (finding.title, finding.severity) == ("Only 300 MiB of 24.0 GiB free", "error")
    assert finding.detail == (
        "Who holds the memory: pid 7 (python3) 20.0 GiB, pid 1 2.0 GiB, "
        "processes that this user or container cannot see 1.7 GiB."
    )


@pytest.mark.parametrize(
    ("free", "total", "status", "severity"),
    [
        (600 << 20, 2 * GIB, "ok", "warning"),  # a small card, mostly free of others' work
        (2 * GIB, 24 * GIB, "problem", "warning"),
        (3 * GIB, 24 * GIB, "ok", "warning"),
        (511 << 20, 1 * GIB, "problem", "error"),
    ],
)
def test_how_much_is_enough(free: int, total: int, status: str, severity: str) -> None:
    finding = only("CD201", sample(memory(free, total)))
    assert (finding.status, finding.severity) == (status, severity)


def test_many_processes_are_cut_and_unnamed_ones_counted() -> None:
    finding = only("CD201", sample(memory(GIB, 80 * GIB, *(process(n, None) for n in range(1, 8)))))
    assert finding.detail == (
        "Who holds the memory: pid 1, pid 2, pid 3, pid 4, 3 more, "
        "processes that this user or container cannot see 79.0 GiB."
    )


def test_each_gpu_is_judged_alone() -> None:
    gpus = two_gpus("NVIDIA T400").snapshot.gpus
    findings = judge("CD201", sample({"gpus": gpus, "gpus.1.memory_free": Absent(reason="timeout", detail="NVML")}))
    assert [(f.status, f.subject) for f in findings] == [
        ("ok", "GPU 0 (NVIDIA H200)"),
        ("unknown", "GPU 1 (NVIDIA T400)"),
    ]


@pytest.mark.parametrize(
    ("mode", "busy", "severity", "title"),
    [
        ("prohibited", False, "error", "Compute mode is prohibited: no CUDA program may use it"),
        ("exclusive-process", True, "error", "Compute mode is exclusive-process, and pid 7 is already on it"),
        ("exclusive-process", False, "note", "Compute mode is exclusive-process: one program at a time"),
    ],
)
def test_compute_modes(mode: str, busy: bool, severity: str, title: str) -> None:
    processes = (process(7, GIB),) if busy else ()
    finding = only("CD202", sample({"gpus.0.compute_mode": known(mode, T), "gpus.0.processes": known(processes, T)}))
    assert (finding.title, finding.severity, finding.owner) == (title, severity, "node")


def test_mig_without_and_with_slices() -> None:
    none = only("CD203", sample({"gpus.0.mig": known(True, T)}))
    assert (none.severity, none.owner) == ("error", "node")
    slices = {"gpus.0.mig": known(True, T), "gpus.0.mig_devices": known(("MIG-aa", "MIG-bb"), T)}
    unchosen = only("CD203", sample(slices))
    assert unchosen.title == "MIG is on with 2 slices and none is chosen: programs get the first one"
    assert (unchosen.severity, unchosen.owner) == ("note", "environment")
    assert unchosen.fixes[0].command == "export CUDA_VISIBLE_DEVICES=MIG-aa"


def test_what_counts_as_slowed_down() -> None:
    idle = only("CD206", sample({"gpus.0.throttle": known(("gpu-idle", "sw-power-cap", "applications-clocks"), T)}))
    assert idle.status == "ok"
    hot = only("CD206", sample({"gpus.0.throttle": known(("sw-thermal",), T), "gpus.0.temperature": known(91, T)}))
    assert hot.title == "Slowed down: the driver lowers the clocks because it is too hot"
    assert [e.value for e in hot.evidence] == ["sw-thermal", "91 degrees Celsius"]


def test_old_and_new_ways_to_retire_memory() -> None:
    unsupported = Absent(reason="not-supported")
    old = {"gpus.0.remap_failed": unsupported, "gpus.0.remap_pending": unsupported}
    assert only("CD208", sample({**old, "gpus.0.retirement_pending": known(False, T)})).status == "ok"
    pending = only("CD208", sample({**old, "gpus.0.retirement_pending": known(True, T)}))
    assert (pending.status, pending.severity) == ("problem", "warning")
    assert only("CD208", sample(old)).status == "skipped"  # a GeForce has neither
    failed = only("CD208", sample({"gpus.0.remap_failed": known(True, T)}))
    assert (failed.severity, failed.owner) == ("error", "node")


@pytest.mark.parametrize("action", RECOVERY)
def test_recovery_actions(action: str) -> None:
    finding = only("CD209", sample({"gpus.0.recovery_action": known(action, T)}))
    assert finding.title == f"The driver asks for {action}: {RECOVERY[action]}"
    assert finding.fixes[0].command == ("sudo reboot" if "reboot" in action else "sudo nvidia-smi -i 0 --gpu-reset")


def xid(code: int, pci: str = "0000:00:04", time: str = "2026-11-30T12:00:00Z") -> Xid:
    return Xid(time=time, pci=pci, code=code, text="pid=7, name=python3, Ch 00000008")


def test_xids_are_grouped_by_gpu_and_number() -> None:
    lines = (xid(31), xid(31, time="2026-11-30T13:00:00Z"), xid(79, pci="0000:81:00"))
    mmu, bus = judge("CD210", sample({"xids": known(lines, T)}))
    assert mmu.subject == "GPU 0 (NVIDIA H200)"
    assert mmu.title == "Xid 31 (MMU fault (illegal address)), 2 times, last at 2026-11-30T13:00:00Z"
    assert (mmu.owner, mmu.severity, mmu.causes) == ("program", "note", ("prior-cuda-fault", "custom-op-bad-build"))
    assert bus.subject == "GPU at 0000:81:00"
    assert bus.title == "Xid 79 (GPU fell off the bus), last at 2026-11-30T12:00:00Z"
    assert (bus.owner, bus.severity, bus.causes) == ("node", "warning", ("hardware-or-power",))
    assert bus.evidence[0].pointer == "/snapshot/xids/value/2"


def test_the_xid_table() -> None:
    table = knowledge("xids")["xids"]
    causes = {entry["id"] for entry in knowledge("causes")}
    assert set(table) == {8, 13, 31, 32, 43, 45, 46, 48, 63, 64, 69, 74, 79, 94, 95, 109, 119}
    for entry in table.values():
        assert set(entry) == {"name", "owner", "causes", "action"}
        assert entry["owner"] in ("node", "program")
        assert set(entry["causes"]) <= causes
    assert {n for n, e in table.items() if e["owner"] == "program"} == {8, 13, 31, 43, 45, 109}


def test_a_gpu_that_nvml_lost() -> None:
    lost = PciDevice(address="0000:81:00.0", device="0x2335", driver=known("nvidia", T))
    here = sample().snapshot.driver.pci
    assert not isinstance(here, Absent)
    changes = {"driver.pci": known((*here.value, lost), T)}
    withheld = only("CD205", sample(changes))
    assert (withheld.severity, withheld.title) == ("note", "It is on the PCI bus, but NVML does not list it")
    fallen = only("CD205", sample({**changes, "xids": known((xid(79, pci="0000:81:00"),), T)}))
    assert (fallen.severity, fallen.title) == ("warning", "It fell off the bus (Xid 79)")
