"""CD109: what libcuda answers to cuInit, asked in a child process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cudnn_doctor.model.base import Absent, Known, known, value_or
from cudnn_doctor.model.facts import CudaInit
from cudnn_doctor.model.live import Change
from cudnn_doctor.model.report import Owner
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.facts import gpu_present, gpus, hides_every_gpu, in_container, variable
from cudnn_doctor.rules.remedies import again, fix, quoted, unset
from cudnn_doctor.rules.sample import EX, sample

INIT = "/snapshot/driver/init"
NO_GPU = "no NVIDIA GPU on this machine"


class InitError(NamedTuple):
    """What a code of cuInit means and who does what about it."""

    meaning: str
    owner: Owner
    causes: tuple[str, ...]
    fixes: tuple[tuple[str, str], ...]  # text, command


UNSET_VISIBLE = "unset CUDA_VISIBLE_DEVICES"
RESTART_DRIVER = (
    "Reload the driver's modules with no process on the GPU, or reboot.",
    "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm",
)
INIT_ERRORS: dict[int, InitError] = {
    2: InitError(
        "out of memory while the driver starts",
        "environment",
        ("vram-other-process", "environment-restriction"),
        (
            (
                "See whether a limit on address space or cgroup memory is set, and whether the GPU is full.",
                "ulimit -a; nvidia-smi",
            ),
        ),
    ),
    3: InitError(
        "the driver could not be initialised",
        "node",
        ("environment-restriction",),
        (("Load nvidia-uvm and make its node.", "sudo modprobe nvidia-uvm && sudo nvidia-modprobe -u -c 0"),),
    ),
    34: InitError(
        "the library is the link-time stub of the toolkit, not the driver",
        "environment",
        ("cudnn-wrong-build",),
        (
            (
                "Take the folder .../lib64/stubs out of LD_LIBRARY_PATH.",
                "echo $LD_LIBRARY_PATH | tr : '\\n' | grep stubs",
            ),
        ),
    ),
    35: InitError(
        "the driver is older than the CUDA in use needs",
        "node",
        ("driver-too-old",),
        (
            ("Update the driver.", "nvidia-smi --query-gpu=driver_version --format=csv"),
            (
                "Or install a framework built for an older CUDA: see what fits this driver.",
                "cudnn-doctor matrix driver {driver}",
            ),
        ),
    ),
    100: InitError(
        "the driver sees no GPU that it may use",
        "environment",
        ("environment-restriction",),
        (
            ("Unset CUDA_VISIBLE_DEVICES, or name a GPU that exists.", UNSET_VISIBLE),
            ("In a container, start it with the GPU.", "docker run --gpus all ..."),
            ("With MIG on, make an instance and a compute instance first.", "nvidia-smi mig -lgi"),
            ("See what the driver itself lists; a job scheduler may have granted none.", "nvidia-smi -L"),
        ),
    ),
    101: InitError(
        "CUDA_VISIBLE_DEVICES names a device that is not there, or one twice",
        "environment",
        ("environment-restriction",),
        (("Unset it, or give each number once.", UNSET_VISIBLE),),
    ),
    304: InitError(
        "the operating system refused a call of the driver",
        "environment",
        ("environment-restriction",),
        (
            (
                "See what is refused: a limit on open files, a sandbox, a read-only /dev.",
                "strace -f nvidia-smi 2>&1 | grep -E 'EPERM|EACCES|EMFILE'",
            ),
        ),
    ),
    802: InitError(
        "the system is not ready: the NVLink fabric is not up",
        "node",
        ("environment-restriction",),
        (
            (
                "On machines with NVSwitch the fabric manager must run, in the driver's own version.",
                "sudo systemctl enable --now nvidia-fabricmanager && systemctl status nvidia-fabricmanager",
            ),
        ),
    ),
    803: InitError(
        "kernel module and libcuda do not fit together",
        "node",
        ("driver-lib-skew", "compat-libs-unsupported"),
        (
            ("After a driver update, reboot (or reload the module).", "sudo reboot"),
            (
                "If libcuda comes from a cuda-compat folder, take that out of LD_LIBRARY_PATH: it is for drivers older "
                "than itself.",
                "ldconfig -p | grep libcuda.so; echo $LD_LIBRARY_PATH",
            ),
        ),
    ),
    804: InitError(
        "forward compatibility (cuda-compat) was tried on a GPU that has none",
        "environment",
        ("compat-libs-unsupported",),
        (
            (
                "Take the cuda-compat folder out of LD_LIBRARY_PATH and ld.so.conf.d: only data-centre GPUs have it.",
                "echo $LD_LIBRARY_PATH | tr : '\\n' | grep compat; ls /etc/ld.so.conf.d",
            ),
            ("Update the driver instead.", "nvidia-smi --query-gpu=driver_version --format=csv"),
        ),
    ),
    805: InitError(
        "the MPS daemon does not answer",
        "node",
        ("environment-restriction",),
        (
            ("Start the daemon again.", "nvidia-cuda-mps-control -d"),
            ("Or leave MPS for this program.", "CUDA_MPS_PIPE_DIRECTORY=/nonexistent python YOUR_SCRIPT.py"),
        ),
    ),
    999: InitError(
        "an unknown error: mostly nvidia-uvm in a bad state after suspend, or missing",
        "node",
        ("driver-stack-bug", "environment-restriction"),
        (RESTART_DRIVER, ("Look for NVRM and Xid lines.", "sudo dmesg | grep -E 'NVRM|Xid'")),
    ),
}


def _init(code: int, name: str) -> Known[CudaInit]:
    return known(CudaInit(code=code, name=name, driver_cuda=known("13.0", EX), library="/usr/lib/libcuda.so.1"), EX)


CUINIT = "CD109"


@rule(
    CUINIT,
    title="cuInit",
    severity="error",
    owner="node",
    causes=("driver-stack-bug",),
    explain="""cuInit is the first call of every CUDA program. cuDNN can only pass its failure on, as NOT_INITIALIZED
(1 or 1001), and TensorFlow then prints "possibly insufficient driver version" whatever the reason was. The code of
cuInit itself, asked in a child process, tells the reasons apart.""",
    source="CUresult in cuda.h of CUDA 12.9; CUDA Driver API, error handling",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"driver.init": _init(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")})),
        ("problem", sample({"driver.init": _init(804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE")})),
        ("problem", sample({"driver.init": _init(100, "CUDA_ERROR_NO_DEVICE")})),
        (
            "skipped",
            sample(
                {
                    "driver.init": _init(100, "CUDA_ERROR_NO_DEVICE"),
                    "host.environment.CUDA_VISIBLE_DEVICES": "",
                }
            ),
        ),
        (
            "skipped",
            sample({"driver.init": _init(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"), "driver.libcuda.0.compat": True}),
        ),
        ("problem", sample({"driver.init": _init(35, "")})),
        ("problem", sample({"driver.init": _init(999, "CUDA_ERROR_UNKNOWN")})),
        ("problem", sample({"driver.init": _init(12345, "")})),
        ("problem", sample({"driver.init": Absent(reason="error", detail="SIGSEGV in cuInit")})),
        ("problem", sample({"driver.init": Absent(reason="timeout", detail="cuInit did not return in 20 s")})),
        ("unknown", sample({"driver.init": Absent(reason="not-examined")})),
    ),
    required=True,
    follows=(
        "CD507",
        "CD514",
        "CD501",
        "CD502",
        "CD513",
        "CD102",
        "CD103",
        "CD104",
        "CD106",
        "CD107",
        "CD108",
        "CD110",
        "CD111",
        "CD113",
    ),
)
def cuinit(case: Case) -> Iterator[Outcome]:
    init = case.snapshot.driver.init
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
        return
    if isinstance(init, Absent):
        if init.reason == "not-found":
            yield skip("driver", "there is no libcuda to ask: CD111")
            return
        if init.reason not in ("error", "timeout"):
            see(case, lambda s: s.driver.init).need()
        hangs = init.reason == "timeout"
        yield problem(
            "driver",
            "cuInit does not return" if hangs else "libcuda dies in cuInit",
            detail=f"In a child process: {init.detail}. Every CUDA program of this environment will do the same.",
            evidence=[see(case, lambda s: s.driver.init).shown()],
            fixes=[
                fix(
                    "See what the kernel says of it.",
                    "sudo dmesg | grep -E 'NVRM|Xid|segfault'",
                    verify=again("CD109"),
                ),
                fix(
                    "See which libcuda is loaded, and install the driver's own again.", "ldconfig -p | grep libcuda.so"
                ),
            ],
        )
        return
    asked = init.value
    if asked.code == 0:
        title = f"cuInit succeeds; the driver serves CUDA {value_or(asked.driver_cuda, 'of unknown version')}"
        yield passed("driver", title, evidence=[shown(init, f"{INIT}/value/code", "0 CUDA_SUCCESS")])
        return
    root = _root(case, asked.code)
    if root:
        yield skip("driver", f"cuInit gives {asked.code} {asked.name}: {root}")
        return
    release = value_or(case.snapshot.driver.version, "VERSION")
    known_error = INIT_ERRORS.get(asked.code)
    meaning = known_error.meaning if known_error else "a code that cudnn-doctor does not know"
    shown_code = f"{asked.code} {asked.name}".strip()
    evidence = [
        shown(init, f"{INIT}/value/code", shown_code),
        shown(init, f"{INIT}/value/library", asked.library),
    ]
    if asked.code in (100, 101):
        evidence.append(variable(case, "CUDA_VISIBLE_DEVICES"))
    yield problem(
        "driver",
        f"cuInit fails with {shown_code}: {meaning}",
        detail=f"No CUDA program can start here, so cuDNN can only say NOT_INITIALIZED. Asked of {asked.library}.",
        evidence=evidence,
        fixes=[
            fix(text, command.replace("{driver}", quoted(release)), verify=again("CD109"), change=_change(command))
            for text, command in (known_error.fixes if known_error else (RESTART_DRIVER,))
            if _applies(case, command)
        ],
        owner=known_error.owner if known_error else None,
        causes=known_error.causes if known_error else None,
    )


def _change(command: str) -> Change | None:
    return unset("CUDA_VISIBLE_DEVICES") if command == UNSET_VISIBLE else None


def _applies(case: Case, command: str) -> bool:
    """Whether what a fix speaks of is there at all."""
    if command == UNSET_VISIBLE:
        return "CUDA_VISIBLE_DEVICES" in case.snapshot.host.environment
    if command.startswith("docker"):
        return in_container(case)
    return "mig" not in command or any(value_or(g.mig, True) for _, _, g in gpus(case))


def _root(case: Case, code: int) -> str:
    """The finding that explains this code better; "" when there is none."""
    first = case.snapshot.driver.libcuda[:1]
    if code in (100, 101) and hides_every_gpu(case):
        return "CUDA_VISIBLE_DEVICES hides every GPU, CD501"
    if code == 34 and first and "/stubs/" in first[0].path:
        return "the toolkit's stub comes first, CD113"
    if first and first[0].compat:
        return "cuda-compat comes first, CD110"
    return ""
