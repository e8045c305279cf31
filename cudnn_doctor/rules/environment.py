"""CD502 to CD507 and CD512: container, MPS, limits, and probes of ours that failed."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import known
from cudnn_doctor.model.facts import ProbeFailure
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, skip
from cudnn_doctor.rules.facts import container_without_gpu, gpu_present, not_linux, variable
from cudnn_doctor.rules.remedies import again, fix
from cudnn_doctor.rules.sample import ABSENT, EX, NO_DEVICE, sample

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
