"""GPUs by NVML: every fact alone, lost devices, old bindings, MIG, processes."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import Gpu, GpuProcess
from cudnn_doctor.probe.nvml import error_name
from cudnn_doctor.probe.nvml_session import probe_gpus
from tests.probe.machine import UUID, error, facts, field, gpus, h200, process, put


def test_idle_h200() -> None:
    not_supported = Absent(reason="not-supported", detail="nvmlDeviceGetRetiredPages: NVML_ERROR_NOT_SUPPORTED (3)")
    (gpu,) = gpus(h200())
    assert gpu == Gpu(
        index=0,
        name=known("NVIDIA H200", "nvmlDeviceGetName"),
        uuid=known(UUID, "nvmlDeviceGetUUID"),
        pci=known("00000000:00:06.0", "nvmlDeviceGetPciInfo"),
        compute_capability=known("9.0", "nvmlDeviceGetCudaComputeCapability"),
        memory_total=known(150754820096, "nvmlDeviceGetMemoryInfo"),
        memory_used=known(644939776, "nvmlDeviceGetMemoryInfo"),
        memory_free=known(150109880320, "nvmlDeviceGetMemoryInfo"),
        compute_mode=known("default", "nvmlDeviceGetComputeMode"),
        mig=known(False, "nvmlDeviceGetMigMode"),
        mig_devices=known((), "nvmlDeviceGetMigMode"),
        persistence=known(True, "nvmlDeviceGetPersistenceMode"),
        ecc=known(True, "nvmlDeviceGetEccMode"),
        ecc_uncorrected=known(0, "nvmlDeviceGetTotalEccErrors"),
        retired_pages=not_supported,
        retirement_pending=Absent(
            reason="not-supported", detail="nvmlDeviceGetRetiredPagesPendingStatus: NVML_ERROR_NOT_SUPPORTED (3)"
        ),
        remapped_rows=known(0, "nvmlDeviceGetRemappedRows"),
        remap_pending=known(False, "nvmlDeviceGetRemappedRows"),
        remap_failed=known(False, "nvmlDeviceGetRemappedRows"),
        recovery_action=known("none", "nvmlDeviceGetFieldValues"),
        throttle=known(("gpu-idle",), "nvmlDeviceGetCurrentClocksEventReasons"),
        temperature=known(36, "nvmlDeviceGetTemperature"),
        display_active=known(False, "nvmlDeviceGetDisplayActive"),
        processes=known((), "NVML process lists"),
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [(3, "not-supported"), (4, "no-permission"), (13, "not-supported"), (6, "not-found"), (10, "timeout")]
    + [(code, "error") for code in (1, 2, 9, 15, 16, 17, 18, 20, 28, 999, 12345)],
)
def test_every_fact_that_fails_says_why(code: int, reason: str) -> None:
    answers: dict[str, Any] = {n: error(code) for n in h200() if n.startswith(("nvmlDeviceGet", "nvmlSystem"))}
    answers["nvmlDeviceGetCount"] = 1
    answers["nvmlDeviceGetHandleByIndex"] = "handle"
    (gpu,) = gpus({**answers, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION": 230})
    for name, fact in facts(gpu).items():
        assert isinstance(fact, Absent), name
        assert fact.reason == reason, name
        assert fact.detail.endswith(f": {error_name(code)} ({code})"), name
        assert fact.detail.startswith("nvmlDeviceGet"), name


def test_each_function_failing_alone_loses_only_its_facts() -> None:
    (healthy,) = gpus(h200())
    lost: dict[str, list[str]] = {}
    for function in [name for name in h200() if name.startswith("nvmlDeviceGet")]:
        if function in ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"):
            continue
        (gpu,) = gpus(h200(**{function: error(15)}))
        lost[function] = [name for name, fact in facts(gpu).items() if fact != getattr(healthy, name)]
        for name in lost[function]:
            assert getattr(gpu, name) == Absent(reason="error", detail=f"{function}: NVML_ERROR_GPU_IS_LOST (15)")
    assert lost["nvmlDeviceGetMemoryInfo"] == ["memory_total", "memory_used", "memory_free"]
    assert lost["nvmlDeviceGetRemappedRows"] == ["remapped_rows", "remap_pending", "remap_failed"]
    assert lost["nvmlDeviceGetMigMode"] == ["mig", "mig_devices"]
    assert lost["nvmlDeviceGetGraphicsRunningProcesses"] == []
    assert lost["nvmlDeviceGetMPSComputeRunningProcesses"] == []
    assert sorted(name for names in lost.values() for name in names) == sorted(facts(healthy))


def test_lost_gpu_does_not_lose_the_others() -> None:
    def handle(index: int) -> str:
        if index == 1:
            raise error(15)
        return f"handle {index}"

    first, second, third = gpus(h200(nvmlDeviceGetCount=3, nvmlDeviceGetHandleByIndex=handle))
    assert (first.index, second.index, third.index) == (0, 1, 2)
    why = Absent(reason="error", detail="nvmlDeviceGetHandleByIndex: NVML_ERROR_GPU_IS_LOST (15)")
    assert set(facts(second).values()) == {why}
    assert facts(first) == facts(third)
    assert first.name == known("NVIDIA H200", "nvmlDeviceGetName")


def test_no_session() -> None:
    assert probe_gpus(None) == Absent(reason="not-examined", detail="no NVML session")


def test_bindings_that_raise_something_else() -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetName=UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")))
    assert isinstance(gpu.name, Absent)
    assert gpu.name.reason == "error"
    assert gpu.name.detail.startswith("UnicodeDecodeError: ")


def test_strings_as_bytes() -> None:
    bus = SimpleNamespace(busId=b"00000000:65:00.0")
    (gpu,) = gpus(h200(nvmlDeviceGetName=b"Tesla K80", nvmlDeviceGetUUID=b"GPU-1", nvmlDeviceGetPciInfo=bus))
    assert gpu.name == known("Tesla K80", "nvmlDeviceGetName")
    assert gpu.uuid == known("GPU-1", "nvmlDeviceGetUUID")
    assert gpu.pci == known("00000000:65:00.0", "nvmlDeviceGetPciInfo")


def test_answer_of_another_shape() -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetMemoryInfo=SimpleNamespace(total=1)))
    assert gpu.memory_total == known(1, "nvmlDeviceGetMemoryInfo")
    assert isinstance(gpu.memory_free, Absent)
    assert gpu.memory_free.reason == "error"
    assert gpu.memory_free.detail.startswith("nvmlDeviceGetMemoryInfo: answer not understood: AttributeError")


def test_old_bindings_lack_names() -> None:
    answers = h200(nvmlDeviceGetCurrentClocksThrottleReasons=0x4)
    for name in (
        "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetRemappedRows",
    ):
        del answers[name]
    (gpu,) = gpus(answers)
    lacking = "the installed nvidia-ml-py has no {}"
    assert gpu.throttle == known(("sw-power-cap",), "nvmlDeviceGetCurrentClocksThrottleReasons")
    assert gpu.recovery_action == Absent(
        reason="not-supported", detail=lacking.format("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION")
    )
    assert gpu.remapped_rows == Absent(reason="not-supported", detail=lacking.format("nvmlDeviceGetRemappedRows"))


def test_throttle_reasons_in_words() -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetCurrentClocksEventReasons=0x20 | 0x8 | 0x1000))
    words = ("hw-slowdown", "sw-thermal", "reason-0x1000")
    assert gpu.throttle == known(words, "nvmlDeviceGetCurrentClocksEventReasons")
    (gpu,) = gpus(h200(nvmlDeviceGetCurrentClocksEventReasons=0x7FF))
    assert isinstance(gpu.throttle, Known)
    assert gpu.throttle.value == (
        *("gpu-idle", "applications-clocks", "sw-power-cap", "hw-slowdown", "sync-boost", "sw-thermal"),
        *("hw-thermal", "hw-power-brake", "display-clocks", "board-limit", "reliability"),
    )
    (gpu,) = gpus(h200(nvmlDeviceGetCurrentClocksEventReasons=0))
    assert gpu.throttle == known((), "nvmlDeviceGetCurrentClocksEventReasons")


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (1, "gpu-reset"),
        (2, "node-reboot"),
        (3, "drain-p2p"),
        (4, "drain-and-reset"),
        (5, "recover-imex-domain"),
        (6, "bus-reset"),
        (7, "system-reboot"),
        (8, "action-8"),
    ],
)
def test_recovery_action(value: int, word: str) -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetFieldValues=lambda handle, fields: [field(value)]))
    assert gpu.recovery_action == known(word, "nvmlDeviceGetFieldValues")


def test_recovery_action_that_the_device_does_not_know() -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetFieldValues=lambda handle, fields: [field(0, status=3)]))
    assert gpu.recovery_action == Absent(
        reason="not-supported",
        detail="nvmlDeviceGetFieldValues(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION): NVML_ERROR_NOT_SUPPORTED (3)",
    )


def test_retired_pages_of_both_causes() -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetRetiredPages=lambda handle, cause: [10, 20, 30] if cause == 0 else [40]))
    assert gpu.retired_pages == known(4, "nvmlDeviceGetRetiredPages")


def test_remapped_rows_counts_the_uncorrectable() -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetRemappedRows=(7, 2, 1, 1)))
    assert (gpu.remapped_rows, gpu.remap_pending, gpu.remap_failed) == (
        known(2, "nvmlDeviceGetRemappedRows"),
        known(True, "nvmlDeviceGetRemappedRows"),
        known(True, "nvmlDeviceGetRemappedRows"),
    )


@pytest.mark.parametrize(
    ("mode", "word"), [(1, "exclusive-thread"), (2, "prohibited"), (3, "exclusive-process"), (8, "mode-8")]
)
def test_compute_mode(mode: int, word: str) -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetComputeMode=mode))
    assert gpu.compute_mode == known(word, "nvmlDeviceGetComputeMode")


def mig(slots: dict[int, str | Exception]) -> dict[str, Any]:
    def slot(handle: str, index: int) -> str:
        content = slots.get(index, error(6))
        if isinstance(content, Exception):
            raise content
        return content

    return h200(
        nvmlDeviceGetMigMode=[1, 1],
        nvmlDeviceGetMaxMigDeviceCount=7,
        nvmlDeviceGetMigDeviceHandleByIndex=slot,
        nvmlDeviceGetUUID=lambda handle: UUID if handle == "handle 0" else f"MIG-{handle}",
    )


def test_mig_slices_with_empty_slots_between() -> None:
    (gpu,) = gpus(mig({0: "a", 3: "b"}))
    assert gpu.mig == known(True, "nvmlDeviceGetMigMode")
    assert gpu.uuid == known(UUID, "nvmlDeviceGetUUID")
    assert gpu.mig_devices == known(("MIG-a", "MIG-b"), "nvmlDeviceGetMigDeviceHandleByIndex")


def test_mig_on_without_any_slice() -> None:
    (gpu,) = gpus(mig({}))
    assert gpu.mig_devices == known((), "nvmlDeviceGetMigDeviceHandleByIndex")


def test_mig_slice_that_may_not_be_seen() -> None:
    (gpu,) = gpus(mig({0: "a", 1: error(4)}))
    detail = "nvmlDeviceGetMigDeviceHandleByIndex: NVML_ERROR_NO_PERMISSION (4)"
    assert gpu.mig_devices == Absent(reason="no-permission", detail=detail)


def test_processes_told_once_with_memory() -> None:
    (gpu,) = gpus(
        h200(
            nvmlDeviceGetComputeRunningProcesses=[process(10, 5 << 30), process(11, None), process(12, (1 << 64) - 1)],
            nvmlDeviceGetGraphicsRunningProcesses=[process(10, 5 << 30), process(13, 4096)],
            nvmlDeviceGetMPSComputeRunningProcesses=[process(11, 77)],
            nvmlSystemGetProcessName=lambda pid: f"/usr/bin/p{pid}",
        )
    )
    untold = Absent(reason="not-supported", detail="NVML does not tell the memory of this process")

    def row(pid: int, memory: Known[int] | Absent, kind: Any) -> GpuProcess:
        return GpuProcess(pid=pid, name=known(f"/usr/bin/p{pid}", "nvmlSystemGetProcessName"), memory=memory, kind=kind)

    assert gpu.processes == known(
        (
            row(11, known(77, "usedGpuMemory"), "mps"),
            row(10, known(5 << 30, "usedGpuMemory"), "compute"),
            row(12, untold, "compute"),
            row(13, known(4096, "usedGpuMemory"), "graphics"),
        ),
        "NVML process lists",
    )


def test_one_process_on_two_mig_slices_keeps_both_entries() -> None:
    (gpu,) = gpus(h200(nvmlDeviceGetComputeRunningProcesses=[process(10, 1), process(10, 2)]))
    assert isinstance(gpu.processes, Known)
    assert [(p.pid, p.memory) for p in gpu.processes.value] == [
        (10, known(1, "usedGpuMemory")),
        (10, known(2, "usedGpuMemory")),
    ]


def test_processes_are_counted_when_names_are_not_permitted() -> None:
    answers = h200(
        nvmlDeviceGetComputeRunningProcesses=[process(10, 1), process(11, 2)], nvmlSystemGetProcessName=error(4)
    )
    (gpu,) = gpus(answers)
    assert isinstance(gpu.processes, Known)
    why = Absent(reason="no-permission", detail="nvmlSystemGetProcessName: NVML_ERROR_NO_PERMISSION (4)")
    assert [p.name for p in gpu.processes.value] == [why, why]


def test_process_name_from_proc_where_nvml_has_none(tmp_path: Path) -> None:
    put(tmp_path, {"/proc/10/comm": "python3\n"})
    answers = h200(nvmlDeviceGetComputeRunningProcesses=[process(10, 1)], nvmlSystemGetProcessName="")
    (gpu,) = gpus(answers, tmp_path)
    assert isinstance(gpu.processes, Known)
    assert gpu.processes.value[0].name == known("python3", "/proc/10/comm")


def test_processes_of_an_older_driver() -> None:
    answers = h200(
        nvmlDeviceGetComputeRunningProcesses=error(13), nvmlDeviceGetComputeRunningProcesses_v2=[process(10, 1)]
    )
    (gpu,) = gpus(answers)
    assert isinstance(gpu.processes, Known)
    assert [p.pid for p in gpu.processes.value] == [10]


def test_children_of_the_doctor_are_no_users_of_the_gpu(tmp_path: Path) -> None:
    put(tmp_path, {"/proc/10/stat": f"10 (python3) S {os.getppid()} 10 10", "/proc/11/stat": "11 (python3) S 1 11 11"})
    answers = h200(nvmlDeviceGetComputeRunningProcesses=[process(10, 1), process(11, 2)])
    (gpu,) = gpus(answers, tmp_path)
    assert isinstance(gpu.processes, Known)
    assert [p.pid for p in gpu.processes.value] == [11]
