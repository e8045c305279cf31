"""CD105: does NVML, the management library of the driver, answer."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.facts import NvmlStatus
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, skip
from cudnn_doctor.rules.facts import container_without_gpu, cuda_works, gpu_present, in_container, in_wsl
from cudnn_doctor.rules.remedies import fix
from cudnn_doctor.rules.sample import ABSENT, EX, sample

NVML = "/snapshot/driver/nvml"
NVML_DOC = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html"
NO_GPU = "no NVIDIA GPU on this machine"
LOST = "NVML_ERROR_GPU_IS_LOST"

# What nvmlInit's own errors mean, what to do, command.
_NVML_ERRORS: dict[int, tuple[str, str, str]] = {
    4: (
        "this user may not open the GPU's device nodes",
        "Give the user access to /dev/nvidia*: the group that owns them, or the job's device permissions.",
        "ls -l /dev/nvidia*; id",
    ),
    9: ("the kernel module is not loaded", "Load the kernel module.", "sudo modprobe nvidia"),
    10: (
        "the driver did not answer in time",
        "Look for Xid and NVRM lines in the kernel log.",
        "sudo dmesg | grep NVRM",
    ),
    12: (
        "libnvidia-ml.so.1 is missing",
        "Install the user-space part of the same driver release; in a container, start it with the GPU (--gpus all).",
        "ldconfig -p | grep libnvidia-ml",
    ),
    15: ("a GPU fell off the bus", "Power the machine down and up; check seating and power.", "sudo dmesg | grep Xid"),
    16: ("a GPU needs a reset", "End its processes and reset it.", "sudo nvidia-smi --gpu-reset"),
    17: (
        "the operating system refused access to the driver",
        "A cgroup or sandbox forbids /dev/nvidia*: allow the devices for this job or container.",
        "ls -l /dev/nvidia*; cat /proc/self/cgroup",
    ),
    999: (
        "the driver failed inside",
        "Look for NVRM lines in the kernel log; reload the driver.",
        "sudo dmesg | grep NVRM",
    ),
}


@rule(
    "CD105",
    title="NVML",
    severity="error",
    owner="node",
    causes=("environment-restriction",),
    explain="""NVML is the driver's management library, the one behind nvidia-smi. When it cannot start, the driver is
usually broken for CUDA as well, and its error says why. Where cuInit works all the same, only the facts about the
GPUs are missing and this is a warning.""",
    source=NVML_DOC,
    examples=lambda: (
        ("ok", sample()),
        (
            "problem",
            sample(
                {
                    "driver.nvml": known(NvmlStatus(code=4, name="NVML_ERROR_NO_PERMISSION"), EX),
                    "gpus": ABSENT,
                    "driver.init": ABSENT,
                }
            ),
        ),
        ("problem", sample({"driver.nvml": known(NvmlStatus(code=15, name=LOST), EX), "driver.init": ABSENT})),
        ("problem", sample({"driver.nvml": ABSENT, "gpus": ABSENT})),
        ("skipped", sample({"driver.nvml": known(NvmlStatus(code=18, name="NVML_ERROR_LIB_RM_VERSION_MISMATCH"), EX)})),
    ),
    follows=("CD102", "CD103", "CD104", "CD106", "CD107"),
)
def nvml(case: Case) -> Iterator[Outcome]:
    status = case.snapshot.driver.nvml
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
        return
    if container_without_gpu(case):
        yield skip("driver", "the container has no GPU: CD502")
        return
    if isinstance(status, Absent):
        if status.reason != "not-found":
            see(case, lambda s: s.driver.nvml).need()
        code, name = 12, "NVML_ERROR_LIBRARY_NOT_FOUND"
        evidence = [Evidence(pointer=NVML, value="libnvidia-ml.so.1 not found", source=status.detail)]
    else:
        code, name = status.value.code, status.value.name
        evidence = [see(case, lambda s: s.driver.nvml).shown(f"{code} {name} {status.value.message}".strip())]
    if code == 0:
        yield passed("driver", "NVML answers", evidence=evidence)
    elif code == 18:
        yield skip("driver", "kernel module and library differ: CD103")
    elif code in (9, 12) and isinstance(case.snapshot.driver.kernel_module, Absent) and not in_wsl(case):
        yield skip("driver", "the kernel driver is not loaded: CD102")
    else:
        meaning, text, command = _NVML_ERRORS.get(
            code, ("the driver's management library failed", "Look for NVRM lines in the kernel log.", "nvidia-smi")
        )
        yield problem(
            "driver",
            f"NVML does not start: {meaning}",
            detail=f"nvmlInit answered {code} ({name})." + (" CUDA itself works." if cuda_works(case) else ""),
            evidence=evidence,
            fixes=[fix(text, command, verify="nvidia-smi")],
            severity="warning" if cuda_works(case) else None,
            owner="environment" if code in (4, 17) or (code == 12 and in_container(case)) else None,
            causes=("hardware-or-power",) if code in (15, 16) else None,
        )
