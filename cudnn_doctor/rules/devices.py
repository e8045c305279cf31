"""CD106 to CD108: the device nodes through which every CUDA call goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudnn_doctor.model.base import Absent, Known, known, value_or
from cudnn_doctor.model.facts import CudaInit, DeviceNode
from cudnn_doctor.model.report import Fix
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.environment import HOW_TO_START
from cudnn_doctor.rules.facts import (
    container_without_gpu,
    cuda_works,
    gpu_present,
    in_container,
    in_wsl,
    integrated,
    not_linux,
)
from cudnn_doctor.rules.remedies import again, fix
from cudnn_doctor.rules.sample import ABSENT, EX, sample

NODES = "/snapshot/driver/device_nodes"
DOC = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/ (device nodes) and nvidia-modprobe(1)"


def _nodes(*paths: str, allowed: bool = True) -> Known[tuple[DeviceNode, ...]]:
    return known(tuple(DeviceNode(path=p, readable=allowed, writable=allowed) for p in paths), EX)


CHECKED = ("/dev/nvidiactl", "/dev/nvidia-uvm")
MASKED = {  # /dev/nvidia-uvm replaced by a bind mount of /dev/null, as `unshare -m` does it on an H200
    "host.container": known("docker", EX),
    "driver.majors": known({"nvidia": 195, "nvidia-uvm": 509}, EX),
    "driver.device_nodes.2": DeviceNode(
        path="/dev/nvidia-uvm", readable=True, writable=True, kind="char", major=1, minor=3
    ),
    "driver.init": known(CudaInit(code=999, name="CUDA_ERROR_UNKNOWN", driver_cuda=ABSENT, library=""), EX),
}


def _is_gpu(path: str) -> bool:
    return path.removeprefix("/dev/nvidia").isdigit()


def _in_its_place(case: Case, node: DeviceNode) -> str:
    """What is there instead of the driver's node, "character device 1:3"; "" for the node itself, or where nobody
    looked. A bind mount of /dev/null is what container engines and masks leave."""
    if node.kind in ("", "char") and node.major < 0:
        return ""
    if node.kind != "char":
        return f"a {node.kind}"
    majors = value_or(case.snapshot.driver.majors, {})
    names = ("nvidia-uvm",) if node.path.startswith("/dev/nvidia-uvm") else ("nvidia", "nvidia-frontend", "nvidiactl")
    right = [majors[n] for n in names if n in majors]
    if not right or (node.path not in CHECKED and not _is_gpu(node.path)):
        return ""
    return "" if node.major in right else f"character device {node.major}:{node.minor}"


def _masked(case: Case) -> dict[str, str]:
    """The driver's nodes that are something else, with what they are."""
    nodes = value_or(case.snapshot.driver.device_nodes, ())
    return {n.path: what for n in nodes if (what := _in_its_place(case, n))}


def _absent(case: Case, paths: Sequence[str]) -> str:
    """ "This container has no /dev/nvidia-uvm (character device 1:3 is in its place)"."""
    masked = _masked(case)
    there = dict.fromkeys(f"{masked[p]} is in its place" for p in paths if p in masked)
    named = " and ".join(paths) + (f" ({', '.join(there)})" if there else "")
    return f"This container has no {named}" if in_container(case) else f"{named} missing"


def _hand_in(case: Case, paths: Sequence[str], code: str) -> Fix:
    """For a container: its nodes come with its start, whatever is loaded on the host."""
    devices = " ".join(f"--device {p}" for p in paths)
    kind = value_or(case.snapshot.host.container, "")
    return fix(
        "Start the container anew with the GPU, so that its engine hands in every node; with a list of single devices, "
        f"add {' and '.join(paths)}.",
        HOW_TO_START.get(kind, f"docker run --gpus all IMAGE  # or {devices}"),
        verify=again(code),
    )


def _settled_elsewhere(case: Case) -> str:
    """Why device nodes are not to be judged here; empty when they are."""
    if not gpu_present(case):
        return "no NVIDIA GPU on this machine"
    if integrated(case):
        return "an integrated GPU has nodes of its own"
    if not_linux(case):
        return "this system has no device nodes"
    if in_wsl(case):
        return "WSL reaches the GPU through /dev/dxg"
    if container_without_gpu(case):
        return "the container has no GPU: CD502"
    if isinstance(case.snapshot.driver.kernel_module, Absent):
        return "the kernel driver is not loaded: CD102"
    return ""


@rule(
    "CD106",
    title="Device nodes",
    severity="error",
    owner="node",
    causes=("environment-restriction",),
    explain="""CUDA opens /dev/nvidiactl and /dev/nvidiaN. They are made by udev or by the setuid helper
nvidia-modprobe at the first use; on a machine without a display and without that helper nobody makes them after a
reboot. In a container they must be handed in. cuInit then gives 100 (no device) or 999.""",
    source=DOC,
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"driver.device_nodes": _nodes(), "driver.init": ABSENT})),
        ("problem", sample({"driver.device_nodes": _nodes("/dev/nvidia0", "/dev/nvidia-uvm"), "driver.init": ABSENT})),
        ("unknown", sample({"driver.device_nodes": ABSENT})),
    ),
)
def nodes_exist(case: Case) -> Iterator[Outcome]:
    why = _settled_elsewhere(case)
    if why:
        yield skip("driver", why)
        return
    fact = see(case, lambda s: s.driver.device_nodes)
    paths = [n.path for n in fact.need()]
    evidence = [fact.shown(", ".join(paths) or "none")]
    masked = _masked(case)
    genuine = [p for p in paths if p not in masked]
    missing = [] if any(_is_gpu(p) for p in genuine) else ["/dev/nvidia0"]
    missing += [] if "/dev/nvidiactl" in genuine else ["/dev/nvidiactl"]
    if not missing:
        yield passed(
            "driver", f"{sum(map(_is_gpu, paths))} GPU node(s) and /dev/nvidiactl are there", evidence=evidence
        )
    elif cuda_works(case):
        yield passed("driver", "CUDA starts without the usual device nodes", evidence=evidence)
    else:
        yield problem(
            "driver",
            _absent(case, missing),
            detail="The kernel module is loaded, but the nodes through which CUDA reaches it are not there.",
            evidence=evidence,
            fixes=[_hand_in(case, missing, "CD106")]
            if in_container(case)
            else [
                fix("Make the nodes and load nvidia-uvm.", "sudo nvidia-modprobe -c 0 -u", verify=again("CD106")),
                fix(
                    "So that they survive a reboot, let the persistence daemon start at boot.",
                    "sudo systemctl enable --now nvidia-persistenced",
                    verify="ls -l /dev/nvidia*",
                ),
            ],
            owner="environment" if in_container(case) else None,
        )


@rule(
    "CD107",
    title="Permission on the device nodes",
    severity="error",
    owner="environment",
    causes=("environment-restriction",),
    explain="""Every CUDA program opens the device nodes for reading and writing. Distributions give them to everybody
(0666) or to a group such as video; a job scheduler or container may forbid some of them. A program of another user,
root for one, works at the same time, which makes this look like a fault of the framework.""",
    source=DOC + "; options NVreg_DeviceFileUID, GID and Mode of the kernel module",
    examples=lambda: (
        ("ok", sample()),
        (
            "problem",
            sample(
                {
                    "driver.device_nodes.0": DeviceNode(
                        path="/dev/nvidiactl", readable=True, writable=True, refused="EPERM"
                    ),
                    "driver.init": ABSENT,
                }
            ),
        ),
        (
            "problem",
            sample(
                {
                    "driver.device_nodes": _nodes("/dev/nvidia0", "/dev/nvidiactl", allowed=False),
                    "driver.init": ABSENT,
                }
            ),
        ),
        (
            "problem",
            sample(
                {
                    "driver.device_nodes": known(
                        (
                            *_nodes("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm").value,
                            DeviceNode(path="/dev/nvidia1", readable=False, writable=False),
                        ),
                        EX,
                    )
                }
            ),
        ),
    ),
    follows=("CD106", "CD502"),
)
def nodes_permitted(case: Case) -> Iterator[Outcome]:
    why = _settled_elsewhere(case)
    if why:
        yield skip("driver", why)
        return
    fact = case.snapshot.driver.device_nodes
    everything = see(case, lambda s: s.driver.device_nodes).need()
    nodes = [n for n in everything if _is_gpu(n.path) or n.path in ("/dev/nvidiactl", "/dev/nvidia-uvm")]
    if not nodes:
        yield skip("driver", "there are no device nodes: CD106")
        return
    refused = {n.path: n.refused or "mode" for n in nodes if n.refused or not (n.readable and n.writable)}
    usable = any(_is_gpu(n.path) and n.path not in refused for n in nodes)
    if not refused:
        yield passed(
            "driver",
            "This user may open all device nodes",
            evidence=[see(case, lambda s: s.driver.device_nodes).shown("read and write")],
        )
        return
    by_rule = any(why != "mode" for why in refused.values())
    partly = cuda_works(case) or (usable and all(_is_gpu(p) for p in refused))
    yield problem(
        "driver",
        f"This user may not read and write {', '.join(refused)}",
        detail="The other GPUs can be used." if partly and usable else "No CUDA program of this user can start.",
        evidence=[
            shown(fact, f"{NODES}/value/{i}", f"{n.path} refused ({refused[n.path]})")
            for i, n in enumerate(everything)
            if n.path in refused
        ],
        fixes=[
            fix(
                "The mode of the nodes allows it, so a device rule of the container or the job forbids it: start it "
                "with the GPU (docker run --gpus all, sbatch --gres=gpu:1).",
                "cat /proc/self/cgroup; ls -l /dev/nvidia*",
                verify=again("CD107"),
            )
            if by_rule
            else fix(
                "See which group owns the nodes and join it (sudo usermod -aG GROUP $USER, then log in again); under a "
                "scheduler, ask for the GPU.",
                "ls -l /dev/nvidia*; id",
                verify=again("CD107"),
            )
        ],
        severity="note" if partly else None,
    )


@rule(
    "CD108",
    title="nvidia-uvm",
    severity="error",
    owner="node",
    causes=("environment-restriction",),
    explain="""nvidia-uvm is the second kernel module that CUDA needs (unified memory). nvidia-smi works without it,
CUDA does not: cuInit gives 999 or 3. It is loaded by the first CUDA program through nvidia-modprobe, or is missing
after suspend and resume or in a container that got only /dev/nvidia0.""",
    source=DOC,
    examples=lambda: (
        ("ok", sample()),
        ("ok", sample({"driver.uvm": known(False, EX)})),
        ("problem", sample({"driver.uvm": known(False, EX), "driver.init": ABSENT})),
        ("problem", sample({"driver.device_nodes": _nodes("/dev/nvidia0", "/dev/nvidiactl"), "driver.init": ABSENT})),
        ("problem", sample(MASKED)),
        ("unknown", sample({"driver.uvm": ABSENT})),
    ),
    follows=("CD102", "CD106", "CD502"),
)
def uvm(case: Case) -> Iterator[Outcome]:
    why = _settled_elsewhere(case)
    if why:
        yield skip("driver", why)
        return
    driver = case.snapshot.driver
    loaded = see(case, lambda s: s.driver.uvm).need()
    masked = _masked(case).get("/dev/nvidia-uvm", "")
    node = not masked and any(n.path == "/dev/nvidia-uvm" for n in see(case, lambda s: s.driver.device_nodes).need())
    evidence = [
        see(case, lambda s: s.driver.uvm).shown("loaded" if loaded else "not loaded"),
        see(case, lambda s: s.driver.device_nodes).shown(f"/dev/nvidia-uvm: {'there' if node else masked or 'none'}"),
    ]
    if loaded and node:
        yield passed("driver", "nvidia-uvm is loaded", evidence=evidence)
    elif cuda_works(case):
        yield passed("driver", "nvidia-uvm came with the first CUDA call", evidence=evidence)
    else:
        yield problem(
            "driver",
            _absent(case, ["/dev/nvidia-uvm"]) if loaded else "The kernel module nvidia-uvm is not loaded",
            detail="nvidia-smi works without it, CUDA programs do not. They load it themselves only where the setuid "
            "helper nvidia-modprobe is installed.",
            evidence=evidence,
            fixes=[_hand_in(case, ["/dev/nvidia-uvm"], "CD108")]
            if loaded and in_container(case)
            else [
                fix(
                    "Load it and make its node.",
                    "sudo modprobe nvidia-uvm && sudo nvidia-modprobe -u -c 0",
                    verify=again("CD108"),
                )
            ],
            # Not asked yet whether CUDA starts: then the first program may still load the module.
            severity="warning" if isinstance(driver.init, Absent) and not loaded else None,
            owner="environment" if in_container(case) else None,
        )
