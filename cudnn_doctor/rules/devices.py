"""CD106 to CD108: the device nodes through which every CUDA call goes."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import DeviceNode
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip
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


def _is_gpu(path: str) -> bool:
    return path.removeprefix("/dev/nvidia").isdigit()


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
    missing = [] if any(_is_gpu(p) for p in paths) else ["/dev/nvidia0"]
    missing += [] if "/dev/nvidiactl" in paths else ["/dev/nvidiactl"]
    if not missing:
        yield passed(
            "driver", f"{sum(map(_is_gpu, paths))} GPU node(s) and /dev/nvidiactl are there", evidence=evidence
        )
    elif cuda_works(case):
        yield passed("driver", "CUDA starts without the usual device nodes", evidence=evidence)
    else:
        yield problem(
            "driver",
            f"{' and '.join(missing)} missing",
            detail="The kernel module is loaded, but the nodes through which CUDA reaches it are not there.",
            evidence=evidence,
            fixes=[
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
        ("unknown", sample({"driver.uvm": ABSENT})),
    ),
)
def uvm(case: Case) -> Iterator[Outcome]:
    why = _settled_elsewhere(case)
    if why:
        yield skip("driver", why)
        return
    driver = case.snapshot.driver
    loaded = see(case, lambda s: s.driver.uvm).need()
    node = any(n.path == "/dev/nvidia-uvm" for n in see(case, lambda s: s.driver.device_nodes).need())
    evidence = [
        see(case, lambda s: s.driver.uvm).shown("loaded" if loaded else "not loaded"),
        see(case, lambda s: s.driver.device_nodes).shown(f"/dev/nvidia-uvm {'present' if node else 'missing'}"),
    ]
    if loaded and node:
        yield passed("driver", "nvidia-uvm is loaded", evidence=evidence)
    elif cuda_works(case):
        yield passed("driver", "nvidia-uvm came with the first CUDA call", evidence=evidence)
    else:
        yield problem(
            "driver",
            "The node /dev/nvidia-uvm is missing" if loaded else "The kernel module nvidia-uvm is not loaded",
            detail="nvidia-smi works without it, CUDA programs do not. They load it themselves only where the setuid "
            "helper nvidia-modprobe is installed.",
            evidence=evidence,
            fixes=[
                fix(
                    "Load it and make its node.",
                    "sudo modprobe nvidia-uvm && sudo nvidia-modprobe -u -c 0",
                    verify=again("CD108"),
                ),
                fix(
                    "In a container, hand in the node as well: --gpus all, or --device /dev/nvidia-uvm.",
                    verify="ls -l /dev/nvidia-uvm",
                ),
            ],
            # Not asked yet whether CUDA starts: then the first program may still load the module.
            severity="warning" if isinstance(driver.init, Absent) and not loaded else None,
            owner="environment" if in_container(case) else None,
        )
