"""CD1xx: exact words, owners and severities for machines that are broken in one way."""

from __future__ import annotations

from typing import Any

import pytest

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import CudaInit, DeviceNode, LibcudaCopy, NvmlStatus, PciDevice
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.sample import ABSENT, NO_DEVICE, sample
from tests.rules import BY_CODE, judge, only

T = "test"
NO_GPU = NO_DEVICE
NO_DRIVER: dict[str, Any] = {
    "driver.pci": known((PciDevice(address="0000:03:00.0", device="0x1b80", driver=ABSENT),), T),
    "driver.kernel_module": ABSENT,
    "driver.nvml": known(NvmlStatus(code=9, name="NVML_ERROR_DRIVER_NOT_LOADED"), T),
    "driver.version": ABSENT,
    "driver.device_nodes": known((), T),
    "driver.init": Absent(reason="not-found", detail="no libcuda"),
    "driver.libcuda": (),
    "driver.uvm": known(False, T),
    "gpus": ABSENT,
}


def init(code: int, name: str = "") -> Known[CudaInit]:
    return known(CudaInit(code=code, name=name, driver_cuda=known("12.2", T), library="/usr/lib/libcuda.so.1"), T)


def test_no_hardware_is_no_verdict() -> None:
    finding = only("CD101", sample(NO_GPU))
    assert (finding.status, finding.title) == ("unknown", "No NVIDIA GPU on this machine")
    assert finding.detail == ("The PCI bus has no display device of vendor 0x10de (NVIDIA), and NVML lists none.")


def test_no_hardware_is_a_problem_when_it_is_required() -> None:
    finding = only("CD101", sample(NO_GPU, required=("gpu",)))
    assert (finding.status, finding.severity, finding.owner) == ("problem", "error", "node")


def test_no_hardware_silences_the_rest_of_the_driver() -> None:
    codes = [f"CD1{n:02}" for n in range(2, 14)]
    assert {f.status for c in codes if c not in ("CD112", "CD113") for f in judge(c, sample(NO_GPU))} == {"skipped"}


def windows(changes: dict[str, Any]) -> Case:
    """What the probes can tell under Windows: NVML answers, nothing of Linux is there."""
    gone = Absent(reason="not-supported", detail="win32")
    linux = ("driver.pci", "driver.kernel_module", "driver.nouveau", "driver.device_nodes", "driver.uvm")
    host = ("host.container", "host.wsl", "host.mps", "host.limits.stack", "host.limits.open_files", "xids")
    return sample({**dict.fromkeys((*linux, *host), gone), "driver.libcuda": (), **changes}, live=())


def test_windows_with_a_gpu_is_not_full_of_question_marks() -> None:
    codes = [c for c in BY_CODE if c[:3] in ("CD1", "CD2", "CD5")]
    findings = [f for code in codes for f in judge(code, windows({}))]
    assert [f.code for f in findings if f.status in ("problem", "crashed")] == []
    assert [f.code for f in findings if f.status == "unknown"] == []


def test_windows_without_a_gpu() -> None:
    finding = only("CD101", windows({"gpus": Absent(reason="not-found", detail="no nvml.dll"), "driver.init": ABSENT}))
    assert (finding.status, finding.title) == ("unknown", "No NVIDIA GPU on this machine")
    assert finding.detail == "NVML, which alone could tell on this system, lists none."


def test_a_sandbox_may_show_the_gpu_to_cuda_alone() -> None:
    case = sample({**NO_GPU, "driver.init": sample().snapshot.driver.init})
    finding = only("CD101", case)
    assert (finding.status, finding.evidence[0].pointer) == ("ok", "/snapshot/driver/init")
    assert only("CD109", case).status == "ok"
    gone = ("driver.nvml", "driver.version", "driver.kernel_module", "driver.kernel_module_kind")
    hidden = sample({**dict.fromkeys((*gone, "gpus"), ABSENT), "driver.pci": known((), T)})
    assert [f.code for rule in all_rules() for f in rule.apply(hidden) if f.status == "problem"] == []


def test_a_jetson_has_a_gpu_on_no_bus() -> None:
    node = DeviceNode(path="/dev/nvmap", readable=True, writable=True)
    case = sample({**NO_GPU, "driver.device_nodes": known((node,), T), "driver.kernel_module": ABSENT})
    assert only("CD101", case).title == "An integrated GPU (Tegra)"
    assert only("CD102", case).status == "skipped"
    assert only("CD106", case).detail == "an integrated GPU has nodes of its own"


def test_hardware_without_driver_is_one_error() -> None:
    case = sample(NO_DRIVER, live=())
    finding = only("CD102", case)
    assert finding.title == "1 NVIDIA GPU, but the NVIDIA kernel driver is not loaded"
    assert finding.fixes[0].command == "sudo modprobe nvidia"
    problems = {f.code for n in range(1, 14) for f in judge(f"CD1{n:02}", case) if f.status == "problem"}
    assert problems == {"CD102"}


def test_nouveau_is_one_error() -> None:
    device = PciDevice(address="0000:03:00.0", device="0x1b80", driver=known("nouveau", T))
    case = sample({**NO_DRIVER, "driver.pci": known((device,), T), "driver.nouveau": known(True, T)}, live=())
    problems = {f.code: f for n in range(1, 14) for f in judge(f"CD1{n:02}", case) if f.status == "problem"}
    assert set(problems) == {"CD104"}
    assert problems["CD104"].title == "nouveau holds the GPU, so the NVIDIA driver cannot load"


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        (
            {"driver.kernel_module": known("570.86.10", T)},
            "Kernel module 570.86.10 and user-space driver 580.159.04 differ",
        ),
        (
            {
                "driver.nvml": known(NvmlStatus(code=18, name="NVML_ERROR_LIB_RM_VERSION_MISMATCH"), T),
                "driver.kernel_module": ABSENT,
            },
            "Kernel module unknown and user-space driver 580.159.04 differ",
        ),
        (
            {"driver.kernel_module": known("535.54.03", T), "driver.version": ABSENT},
            "Kernel module 535.54.03 and user-space driver 580.159.04 differ",
        ),
    ],
)
def test_driver_skew(changes: dict[str, Any], title: str) -> None:
    finding = only("CD103", sample(changes))
    assert (finding.title, finding.owner, finding.severity) == (title, "node", "error")
    assert finding.causes == ("driver-lib-skew",)
    assert finding.fixes[0].verify == "cudnn-doctor check --only CD103"


def test_skew_is_not_nvmls_fault_as_well() -> None:
    changes = {"driver.nvml": known(NvmlStatus(code=18, name="NVML_ERROR_LIB_RM_VERSION_MISMATCH"), T)}
    assert only("CD105", sample(changes)).detail == "kernel module and library differ: CD103"


@pytest.mark.parametrize(
    ("code", "name", "owner", "title"),
    [
        (4, "NO_PERMISSION", "environment", "NVML does not start: this user may not open the GPU's device nodes"),
        (15, "GPU_IS_LOST", "node", "NVML does not start: a GPU fell off the bus"),
        (999, "UNKNOWN", "node", "NVML does not start: the driver failed inside"),
        (77, "77", "node", "NVML does not start: the driver's management library failed"),
    ],
)
def test_nvml_by_its_own_error(code: int, name: str, owner: str, title: str) -> None:
    status = known(NvmlStatus(code=code, name=f"NVML_ERROR_{name}"), T)
    broken = only("CD105", sample({"driver.nvml": status, "driver.init": ABSENT}))
    assert (broken.title, broken.owner, broken.severity) == (title, owner, "error")
    cuda_works = only("CD105", sample({"driver.nvml": status}))
    assert (cuda_works.severity, cuda_works.detail) == (
        "warning",
        f"nvmlInit answered {code} (NVML_ERROR_{name}). CUDA itself works.",
    )


def test_missing_nodes_are_named() -> None:
    finding = only("CD106", sample({"driver.device_nodes": known((), T), "driver.init": ABSENT}))
    assert (finding.title, finding.owner) == ("/dev/nvidia0 and /dev/nvidiactl missing", "node")


def test_nodes_refused_by_a_device_rule() -> None:
    node = DeviceNode(path="/dev/nvidiactl", readable=True, writable=True, refused="EPERM")
    finding = only("CD107", sample({"driver.device_nodes.1": node, "driver.init": ABSENT}))
    assert finding.title == "This user may not read and write /dev/nvidiactl"
    assert finding.evidence[0].value == "/dev/nvidiactl refused (EPERM)"
    assert "docker run --gpus all" in finding.fixes[0].text


def test_one_of_two_gpus_refused_is_a_note() -> None:
    nodes = [DeviceNode(path=f"/dev/nvidia{n}", readable=n == 0, writable=n == 0) for n in (0, 1)]
    nodes.append(DeviceNode(path="/dev/nvidiactl", readable=True, writable=True))
    finding = only("CD107", sample({"driver.device_nodes": known(tuple(nodes), T), "driver.init": ABSENT}))
    assert (finding.severity, finding.detail) == ("note", "The other GPUs can be used.")


def test_uvm_that_nobody_asked_for_yet_is_a_warning() -> None:
    never_asked = {"driver.uvm": known(False, T), "driver.init": Absent(reason="not-examined")}
    assert only("CD108", sample(never_asked)).severity == "warning"
    failed = {"driver.uvm": known(False, T), "driver.init": init(999)}
    assert only("CD108", sample(failed)).severity == "error"


@pytest.mark.parametrize(
    ("code", "name", "owner", "causes", "command"),
    [
        (35, "cudaErrorInsufficientDriver", "node", ("driver-too-old",), "nvidia-smi --query-gpu"),
        (100, "CUDA_ERROR_NO_DEVICE", "environment", ("environment-restriction",), "nvidia-smi -L"),
        (802, "CUDA_ERROR_SYSTEM_NOT_READY", "node", ("environment-restriction",), "systemctl enable --now nvidia-fab"),
        (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "node", ("driver-lib-skew", "compat-libs-unsupported"), "reboot"),
        (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "environment", ("compat-libs-unsupported",), "grep compat"),
        (999, "CUDA_ERROR_UNKNOWN", "node", ("driver-stack-bug", "environment-restriction"), "modprobe nvidia_uvm"),
        (4711, "CUDA error 4711", "node", ("driver-stack-bug",), "modprobe nvidia_uvm"),
    ],
)
def test_cuinit_by_code(code: int, name: str, owner: str, causes: tuple[str, ...], command: str) -> None:
    finding = only("CD109", sample({"driver.init": init(code, name)}))
    assert finding.title.startswith(f"cuInit fails with {code} {name}: ")
    assert (finding.severity, finding.owner, finding.causes) == ("error", owner, causes)
    assert command in finding.fixes[0].command
    assert "/usr/lib/libcuda.so.1" in [e.value for e in finding.evidence]


def test_no_device_names_only_what_can_be_here() -> None:
    base = {"driver.init": init(100, "CUDA_ERROR_NO_DEVICE"), "host.environment.CUDA_VISIBLE_DEVICES": "0"}
    sliced = {**base, "gpus.0.mig": known(True, T), "host.container": known("docker", T)}
    wanted = ["unset CUDA_VISIBLE_DEVICES", "nvidia-smi -L"]
    assert [f.command for f in only("CD109", sample(base)).fixes] == wanted
    more = ["docker run --gpus all ...", "nvidia-smi mig -lgi"]
    assert [f.command for f in only("CD109", sample(sliced)).fixes] == [wanted[0], *more, wanted[1]]


def test_a_driver_that_crashes_or_hangs() -> None:
    crash = only("CD109", sample({"driver.init": Absent(reason="error", detail="killed by SIGSEGV in cuInit")}))
    assert (crash.title, crash.status) == ("libcuda dies in cuInit", "problem")
    assert "killed by SIGSEGV in cuInit" in crash.detail
    hang = only("CD109", sample({"driver.init": Absent(reason="timeout", detail="no answer before the deadline")}))
    assert hang.title == "cuInit does not return"


def test_hidden_gpus_are_not_the_drivers_fault() -> None:
    changes = {"driver.init": init(100, "CUDA_ERROR_NO_DEVICE"), "host.environment.CUDA_VISIBLE_DEVICES": ""}
    assert only("CD109", sample(changes)).status == "skipped"
    assert only("CD501", sample(changes)).title == "It is empty: every GPU is hidden"


def compat(version: str) -> LibcudaCopy:
    path = "/usr/local/cuda/compat/libcuda.so.1"
    return LibcudaCopy(
        path=path, real_path=path, version=known(version, T), found_by="LD_LIBRARY_PATH", compat=True, wsl=False
    )


@pytest.mark.parametrize(
    ("version", "gpu", "code", "title"),
    [
        ("535.54.03", "NVIDIA H200", 803, "cuda-compat 535.54.03 is older than the driver"),
        ("590.44.01", "NVIDIA H200", 804, "cuda-compat comes first on a GPU that it does not serve"),
        ("590.44.01", "NVIDIA GeForce RTX 4090", 803, "cuda-compat comes first on a GPU that it does not serve"),
        ("590.44.01", "NVIDIA H200", 999, "cuda-compat comes first and CUDA does not start"),
    ],
)
def test_forward_compatibility(version: str, gpu: str, code: int, title: str) -> None:
    changes = {"driver.libcuda.0": compat(version), "gpus.0.name": known(gpu, T), "driver.init": init(code)}
    finding = only("CD110", sample(changes))
    assert (finding.title, finding.owner) == (title, "environment")
    assert only("CD109", sample(changes)).detail.endswith("cuda-compat comes first, CD110")


def test_the_toolkits_stub_is_one_error() -> None:
    """As on an H200 with a copy of the stub named libcuda.so.1 on LD_LIBRARY_PATH."""
    path = "/opt/cuda/lib64/stubs/libcuda.so.1"
    stub = LibcudaCopy(path=path, real_path=path, version=ABSENT, found_by="LD_LIBRARY_PATH", compat=False, wsl=False)
    case = sample({"driver.libcuda.0": stub, "driver.init": init(34, "CUDA_ERROR_STUB_LIBRARY")})
    assert only("CD109", case).status == "skipped"
    assert only("CD113", case).title == "The toolkit's stub comes first instead of the driver's libcuda"


def test_libcuda_that_lies_where_nobody_looks() -> None:
    path = "/usr/local/nvidia/lib64/libcuda.so.1"
    hidden = LibcudaCopy(path=path, real_path=path, version=ABSENT, found_by="", compat=False, wsl=False)
    finding = only("CD111", sample({"driver.libcuda": (), "driver.libcuda_off_path": (hidden,)}))
    assert (
        finding.fixes[0].command
        == "export LD_LIBRARY_PATH=/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    )


def test_a_container_without_gpu_is_one_error() -> None:
    changes = {
        "host.container": known("docker", T),
        "driver.device_nodes": known((), T),
        "driver.nvml": Absent(reason="not-found", detail="no libnvidia-ml.so.1"),
        "driver.libcuda": (),
        "driver.init": Absent(reason="not-found"),
        "gpus": ABSENT,
    }
    case = sample(changes, live=())
    codes = [*(f"CD1{n:02}" for n in range(1, 14)), *(f"CD5{n:02}" for n in range(1, 13))]
    problems = {f.code: f for code in codes for f in judge(code, case) if f.status == "problem"}
    assert set(problems) == {"CD502"}
    assert problems["CD502"].fixes[0].command == "docker run --gpus all IMAGE"
    assert problems["CD502"].owner == "environment"
