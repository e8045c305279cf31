"""CD502 to CD507 and CD512: container, MPS, limits, and probes of ours that failed."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Absent, known, value_or
from cudnn_doctor.model.facts import ProbeFailure
from cudnn_doctor.rules.base import Case, Outcome, need, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.facts import container_without_gpu, gpu_present, not_linux, size, variable
from cudnn_doctor.rules.remedies import again, fix
from cudnn_doctor.rules.sample import ABSENT, EX, NO_DEVICE, sample, two_gpus

LIMITS = "/snapshot/host/limits"
MIB, GIB = 1 << 20, 1 << 30
NO_LIMITS = "this system has no such limit"
CONTAINER_DOC = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"
HOW_TO_START = {
    "docker": "docker run --gpus all IMAGE",
    "podman": "podman run --device nvidia.com/gpu=all IMAGE",
    "kubernetes": "kubectl describe pod POD  # resources: limits: nvidia.com/gpu: 1",
    "apptainer": "apptainer exec --nv IMAGE COMMAND",
}


@rule(
    "CD502",
    title="GPU of the container",
    severity="error",
    owner="environment",
    causes=("environment-restriction",),
    explain="""A container sees the GPUs only when it was started with them: --gpus, a resource limit of Kubernetes,
--nv. sysfs still shows the hardware of the host, so that tools that look there say that all is well.
NVIDIA_VISIBLE_DEVICES chooses the GPUs at the start; "void", "none" and the empty value give none.""",
    source=CONTAINER_DOC,
    examples=lambda: (
        ("skipped", sample()),
        ("ok", sample({"host.container": known("docker", EX)})),
        (
            "problem",
            sample({"host.container": known("docker", EX), "driver.device_nodes": known((), EX), "gpus": ABSENT}),
        ),
        (
            "problem",
            sample(
                {
                    "host.container": known("docker", EX),
                    "host.environment.NVIDIA_VISIBLE_DEVICES": "void",
                    "driver.device_nodes": known((), EX),
                    "gpus": ABSENT,
                }
            ),
        ),
    ),
)
def container_gpu(case: Case) -> Iterator[Outcome]:
    host = case.snapshot.host
    if not_linux(case):
        yield skip("machine", "containers with GPUs are of Linux")
        return
    kind = see(case, lambda s: s.host.container).need()
    if kind == "none":
        yield skip("machine", "this is no container")
        return
    if not gpu_present(case):
        yield skip(f"{kind} container", "no NVIDIA GPU on this machine")
        return
    nodes = see(case, lambda s: s.driver.device_nodes).need()
    evidence = [
        see(case, lambda s: s.host.container).shown(),
        see(case, lambda s: s.driver.device_nodes).shown(", ".join(n.path for n in nodes) or "none"),
        variable(case, "NVIDIA_VISIBLE_DEVICES"),
    ]
    if not container_without_gpu(case):
        yield passed(f"{kind} container", "It has GPU device nodes", evidence=evidence)
        return
    asked = host.environment.get("NVIDIA_VISIBLE_DEVICES")
    hidden = asked is not None and asked.strip().lower() in ("", "void", "none")
    yield problem(
        f"{kind} container",
        f"NVIDIA_VISIBLE_DEVICES='{asked}' leaves it without a GPU" if hidden else "It was started without a GPU",
        detail="The host has NVIDIA hardware, but no /dev/nvidia* is in this container.",
        evidence=evidence,
        fixes=[
            fix(
                "Set it to all or to the GPUs wanted, and start the container again."
                if hidden
                else "Start it with the GPU; the host needs the NVIDIA container toolkit.",
                HOW_TO_START.get(kind, HOW_TO_START["docker"]),
                verify=again("CD502"),
            )
        ],
    )


@rule(
    "CD503",
    title="MPS",
    severity="note",
    owner="node",
    causes=("environment-restriction",),
    explain="""With the Multi-Process Service all programs of a user share one context on the GPU. A fault of one
program ends all of them (CUDA 719, 806 or 810), and cuDNN reports it in programs that did nothing wrong. States that
fault on purpose are refused by `cudnn-doctor reproduce` while MPS runs.""",
    source="https://docs.nvidia.com/deploy/mps/",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"host.mps": known(True, EX)})),
        ("unknown", sample({"host.mps": ABSENT})),
        ("skipped", sample(NO_DEVICE)),
    ),
)
def mps(case: Case) -> Iterator[Outcome]:
    fact = see(case, lambda s: s.host.mps)
    if not_linux(case):
        yield skip("machine", "MPS is a service of Linux")
        return
    if not gpu_present(case):
        yield skip("machine", "no NVIDIA GPU on this machine")
        return
    running = fact.need()
    evidence = [fact.shown("runs" if running else "does not run")]
    if not running:
        yield passed("machine", "MPS does not run", evidence=evidence)
        return
    yield problem(
        "machine",
        "MPS runs: a fault of one program ends all that share the GPU",
        evidence=evidence,
        fixes=[
            fix(
                "If programs die together, run the suspect without MPS.",
                "CUDA_MPS_PIPE_DIRECTORY=/nonexistent python YOUR_SCRIPT.py",
                verify="echo get_server_list | nvidia-cuda-mps-control",
            )
        ],
    )


@rule(
    "CD504",
    title="Stack limit",
    severity="warning",
    owner="environment",
    causes=("environment-restriction",),
    explain="""Launchers and job schedulers may hand on a small stack limit. Frameworks and their compilers recurse
deeply and crash, or fail at odd places: one public report of status 7 was cured by `srun --propagate=STACK`. Usual
are 8 MiB or no limit; below 1 MiB this warns.""",
    source="HugeCTR issue 433; on an H200 a convolution ran under 256 KiB, 64 KiB crashed every program",
    examples=lambda: (
        ("ok", sample()),
        ("ok", sample({"host.limits.stack": known(-1, EX)})),
        ("problem", sample({"host.limits.stack": known(256 << 10, EX)})),
        ("unknown", sample({"host.limits.stack": ABSENT})),
    ),
)
def stack(case: Case) -> Iterator[Outcome]:
    fact = see(case, lambda s: s.host.limits.stack)
    if not_linux(case):
        yield skip("process", NO_LIMITS)
        return
    limit = fact.need()
    text = "unlimited" if limit < 0 else size(limit)
    evidence = [fact.shown(text)]
    if limit < 0 or limit >= MIB:
        yield passed("process", f"Stack limit {text}", evidence=evidence)
        return
    yield problem(
        "process",
        f"Stack limit is only {text}",
        evidence=evidence,
        fixes=[
            fix("Raise it in the shell or the job.", "ulimit -s 8192", verify=again("CD504")),
            fix("Under Slurm, do not hand on the limit of the login shell.", "srun --propagate=NONE COMMAND"),
        ],
    )


@rule(
    "CD505",
    title="Locked memory",
    severity="note",
    owner="environment",
    causes=("environment-restriction",),
    explain="""The limit on locked memory does not touch cuDNN: on an H200 a convolution ran with a limit of 0. NCCL
over InfiniBand needs it high, and several GPUs or nodes then hang or stop with "Cannot allocate memory" while one GPU
works.""",
    source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html; 0 and 64 KiB on an H200",
    examples=lambda: (
        ("skipped", sample()),
        ("ok", two_gpus("NVIDIA H200")),
        ("problem", _two_gpus_with_memlock(64 << 10)),
    ),
)
def memlock(case: Case) -> Iterator[Outcome]:
    if len(value_or(case.snapshot.gpus, ())) < 2:
        yield skip("process", "it matters to programs on several GPUs alone")
        return
    fact = see(case, lambda s: s.host.limits.memlock)
    limit = fact.need()
    text = "unlimited" if limit < 0 else size(limit)
    evidence = [fact.shown(text)]
    if limit < 0 or limit > 64 << 10:
        yield passed("process", f"Limit on locked memory {text}", evidence=evidence)
        return
    yield problem(
        "process",
        f"Limit on locked memory is {text}: NCCL over InfiniBand will fail, cuDNN does not mind",
        evidence=evidence,
        fixes=[
            fix(
                "Raise it; in a container: --ulimit memlock=-1.",
                "ulimit -l unlimited",
                verify=again("CD505"),
            )
        ],
    )


def _two_gpus_with_memlock(limit: int) -> Case:
    gpus = two_gpus("NVIDIA H200").snapshot.gpus
    return sample({"gpus": gpus, "host.limits.memlock": known(limit, EX)})


@rule(
    "CD506",
    title="Memory limit of the cgroup",
    severity="warning",
    owner="environment",
    causes=("environment-restriction",),
    explain="""A container or job with little host memory is killed, or fails to allocate, while a framework starts:
cuDNN alone maps up to a gigabyte of libraries, the CUDA context and pinned buffers come on top. cuDNN reports it as
NOT_INITIALIZED or INTERNAL_ERROR_HOST_ALLOCATION_FAILED (4003).""",
    source="https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.max); sizes of the wheels' libraries",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"host.limits.cgroup_memory": known(1 << 30, EX)})),
        ("ok", sample({"host.limits.cgroup_memory": known(128 << 30, EX)})),
        ("skipped", sample({"host.limits.cgroup_memory": ABSENT})),
    ),
)
def cgroup_memory(case: Case) -> Iterator[Outcome]:
    fact = case.snapshot.host.limits.cgroup_memory
    pointer = f"{LIMITS}/cgroup_memory"
    if isinstance(fact, Absent) and fact.reason in ("not-found", "not-supported"):
        yield skip("process", "no memory controller limits this process")
        return
    limit = need(fact, pointer)
    text = "unlimited" if limit < 0 else size(limit)
    evidence = [shown(fact, pointer, text)]
    if limit < 0 or limit >= 2 * GIB:
        yield passed("process", f"Memory of the cgroup {text}", evidence=evidence)
        return
    yield problem(
        "process",
        f"The cgroup allows only {text} of host memory",
        evidence=evidence,
        fixes=[
            fix(
                "Give the container or job more memory (8 GiB are usual for a framework with a GPU).",
                "docker run --memory 8g ...",
                verify=again("CD506"),
            )
        ],
    )


@rule(
    "CD507",
    title="Limit on open files",
    severity="warning",
    owner="environment",
    causes=("environment-restriction",),
    explain="""The driver opens dozens of files a GPU and process, data loaders many more. When the limit is reached
cuInit ends with 304 or 999, and worker processes stop with "Too many open files".""",
    source="getrlimit(2), RLIMIT_NOFILE",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"host.limits.open_files": known(128, EX)})),
        ("unknown", sample({"host.limits.open_files": ABSENT})),
    ),
)
def open_files(case: Case) -> Iterator[Outcome]:
    fact = see(case, lambda s: s.host.limits.open_files)
    if not_linux(case):
        yield skip("process", NO_LIMITS)
        return
    limit = fact.need()
    text = "unlimited" if limit < 0 else str(limit)
    evidence = [fact.shown(text)]
    if limit < 0 or limit >= 256:
        yield passed("process", f"Limit on open files {text}", evidence=evidence)
        return
    yield problem(
        "process",
        f"Only {text} open files are allowed",
        evidence=evidence,
        fixes=[fix("Raise the limit.", "ulimit -n 4096", verify=again("CD507"))],
    )


FAILED_PROBES = "CD512"


@rule(
    FAILED_PROBES,
    title="Probes that failed",
    severity="error",
    owner="program",
    causes=("insufficient-info",),
    explain="""A probe of cudnn-doctor that ends with an exception leaves its facts out. Lists that it should have
filled are then empty for no good reason, so there is no verdict. Please report it with this output.""",
    source="cudnn-doctor itself",
    examples=lambda: (
        ("skipped", sample()),
        ("crashed", sample({"failures": (ProbeFailure(probe="cuDNN copies", error="OSError: broken disk"),)})),
    ),
)
def failed_probes(case: Case) -> Iterator[Outcome]:
    for failure in case.snapshot.failures:
        yield Outcome(
            status="crashed",
            subject=failure.probe,
            title="This probe of cudnn-doctor failed",
            detail=failure.error,
        )
    if not case.snapshot.failures:
        yield skip("cudnn-doctor", "all probes ran")
