"""Readings of a snapshot that several rules share: pointers, versions, sizes, states that one root rule explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from cudnn_doctor.model import versions
from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Framework, Gpu, Resolution
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.model.visible_devices import Visible, visible_devices
from cudnn_doctor.rules.base import Case, Outcome, see, skip, unknown

T = TypeVar("T")
GPUS = "/snapshot/gpus"
ENVIRONMENT = "/snapshot/host/environment"


def numbers(version: str) -> tuple[int, ...]:
    """As `knowledge.versions.numbers`; () where the text is no version at all."""
    try:
        return versions.numbers(version)
    except ValueError:
        return ()


def same_version(a: str, b: str) -> bool:
    """Equal in all fields that both have: "9.19.0" and "9.19.0.56" are."""
    left, right = numbers(a), numbers(b)
    shared = min(len(left), len(right))
    return left[:shared] == right[:shared]


def size(count: int) -> str:
    """Bytes for people: "140.4 GiB", "512 MiB"."""
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GiB"
    if count >= 1 << 20:
        return f"{count / (1 << 20):.0f} MiB"
    return f"{count / (1 << 10):.0f} KiB"


def plural(count: int, noun: str) -> str:
    """ "1 copy", "2 copies"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("y") else f"{count} {noun}s"


def shortened(names: Iterable[str], noun: str) -> str:
    """ "/a, /b, /c and 29 more folders"."""
    listed = list(names)
    more = f" and {len(listed) - 3} more {noun}s" if len(listed) > 4 else ""
    return ", ".join(listed[:3] if more else listed) + more


def variable(case: Case, name: str) -> Evidence:
    """Evidence from an environment variable, set or not."""
    value = case.snapshot.host.environment.get(name)
    if value is None:
        return Evidence(pointer=ENVIRONMENT, value=f"{name} is not set", source="environment")
    return Evidence(pointer=f"{ENVIRONMENT}/{name}", value=value or "set and empty", source="environment")


def gpus(case: Case) -> Iterator[tuple[str, str, Gpu]]:
    """(JSON pointer, "GPU 0 (NVIDIA H200)", device) of each GPU that NVML lists. None where NVML gave no list: that is
    the driver rules' to explain."""
    if isinstance(case.snapshot.gpus, Known):
        for i, gpu in enumerate(case.snapshot.gpus.value):
            name = value_or(gpu.name, "")
            yield f"{GPUS}/value/{i}", f"GPU {gpu.index}" + (f" ({name})" if name else ""), gpu


def integrated(case: Case) -> bool:
    """A Tegra (Jetson): its GPU is part of the chip, on no PCI bus, and shows by the nodes of its own driver."""
    return any(
        n.path in ("/dev/nvmap", "/dev/nvhost-ctrl-gpu") for n in value_or(case.snapshot.driver.device_nodes, ())
    )


def gpu_present(case: Case) -> bool:
    """NVIDIA hardware is here, by NVML, on the PCI bus, as part of the chip, or because cuInit found a device (a
    sandbox may show neither NVML nor the bus).

    Raises:
        UnansweredError: when none of it could be read.
    """
    listed, pci = case.snapshot.gpus, case.snapshot.driver.pci
    if (isinstance(listed, Known) and listed.value) or integrated(case) or cuda_works(case):
        return True
    if isinstance(pci, Absent) and pci.reason == "not-supported":
        return False  # Windows and macOS show no bus: NVML's word counts
    return bool(see(case, lambda s: s.driver.pci).need())


def not_linux(case: Case) -> bool:
    """Kernel modules, device nodes and the like are facts of Linux alone."""
    module = case.snapshot.driver.kernel_module
    return isinstance(module, Absent) and module.reason == "not-supported"


def cuda_works(case: Case) -> bool:
    """cuInit succeeded in a child: whatever looks odd in the driver does not stop CUDA."""
    init = case.snapshot.driver.init
    return isinstance(init, Known) and init.value.code == 0


def in_container(case: Case) -> bool:
    return value_or(case.snapshot.host.container, "none") != "none"


def in_wsl(case: Case) -> bool:
    return value_or(case.snapshot.host.wsl, False)


def container_without_gpu(case: Case) -> bool:
    """A container that was started without the GPU: the hardware shows in sysfs, no device node is inside. One cause of
    many symptoms, so that CD502 alone speaks of it."""
    nodes = case.snapshot.driver.device_nodes
    return (
        in_container(case)
        and bool(value_or(case.snapshot.driver.pci, ()))
        and (isinstance(nodes, Known) and not nodes.value)
    )


def copies(case: Case) -> Iterator[tuple[str, CudnnCopy]]:
    """(JSON pointer, copy) of each cuDNN found."""
    for i, copy in enumerate(case.snapshot.cudnn):
        yield f"/snapshot/cudnn/{i}", copy


def copy_name(copy: CudnnCopy) -> str:
    """As in: cuDNN 9.19.0 (/opt/venv/.../libcudnn.so.9)."""
    return f"cuDNN {value_or(copy.version, f'{copy.major}.?')} ({copy.path})"


def copy_at(case: Case, real_path: str) -> CudnnCopy | None:
    """The copy whose libcudnn is this file."""
    return next((c for _, c in copies(case) if real_path in (c.real_path, c.path)), None)


def resolutions(case: Case) -> Iterator[tuple[str, Resolution]]:
    """(JSON pointer, resolution) of each search that was worked out."""
    for i, resolution in enumerate(case.snapshot.resolutions):
        yield f"/snapshot/resolutions/{i}", resolution


def frameworks(case: Case) -> Iterator[tuple[str, str, Framework]]:
    """(JSON pointer, "torch 2.11.0", framework) of each framework that is not known to be a CPU-only build."""
    for i, framework in enumerate(case.snapshot.frameworks):
        if value_or(framework.cuda_build, True):
            other = framework.name == "other"
            name = framework.distribution if other else f"{framework.name} {framework.version}"
            yield f"/snapshot/frameworks/{i}", name, framework


def searches(case: Case) -> Iterator[tuple[str, str, Framework, Resolution]]:
    """(pointer of the resolution, "torch 2.11.0", framework, its search for libcudnn)."""
    for _, name, framework in frameworks(case):
        for pointer, resolution in resolutions(case):
            if resolution.consumer == framework.name and is_libcudnn(resolution.wanted):
                yield pointer, name, framework, resolution


def unanswered(subject: str, what: str, absent: Absent) -> Outcome:
    """The outcome for one of several devices whose fact is absent: what the device has not is nothing to judge."""
    why = f"{absent.reason}: {absent.detail}" if absent.detail else absent.reason
    return skip(subject, f"{what}: {why}") if absent.reason == "not-supported" else unknown(subject, what, detail=why)


def pci_address(text: str) -> str:
    """One form of what NVML ("00000000:3B:00.0"), sysfs ("0000:3b:00.0") and Xid lines ("0000:3b:00") write."""
    domain, _, rest = text.lower().removeprefix("pci:").partition(":")
    return f"{domain[-4:].rjust(4, '0')}:{rest.partition('.')[0]}"


def probe_error(case: Case, probe: str) -> str:
    """How a probe failed ("cuDNN copies: OSError: ..."); "" when it did its work. An empty list of a failed probe is
    no answer."""
    return next((f"{f.probe}: {f.error}" for f in case.snapshot.failures if f.probe == probe), "")


def is_libcudnn(soname: str) -> bool:
    """Whether a name is that of cuDNN itself and not of a part: libcudnn.so.9, libcudnn-74a4c495.so.9.1.0 (a copy in a
    wheel that auditwheel made)."""
    return soname.startswith(("libcudnn.so", "libcudnn-"))


def loaded_by(case: Case, copy: CudnnCopy) -> str:
    """Who would load this copy, or stops at it because it cannot be opened: "torch", "plain dlopen"; "" for a copy that
    loses every search."""
    consumers = [
        r.consumer
        for _, r in resolutions(case)
        if is_libcudnn(r.wanted) and {value_or(r.real_path, ""), r.stopped_at} & {copy.real_path, copy.path}
    ]
    return ", ".join(dict.fromkeys(consumers))


def in_use(case: Case, copy: CudnnCopy) -> bool:
    """Whether a program of this environment gets this copy or a file of it: a framework does, or there is no framework
    that loads any, and a plain dlopen does. What only a plain dlopen would find beside a framework with its own copy
    serves nobody."""
    return _asked_for(case, copy) or any(
        _asked_for(case, other) for _, other in copies(case) if other.real_path in used_by(case, copy).split(", ")
    )


def _asked_for(case: Case, copy: CudnnCopy) -> bool:
    users = set(loaded_by(case, copy).split(", ")) - {""}
    asking = {f.name for _, _, f, _ in searches(case)}
    return bool(users & asking) or bool(users and not asking)


def used_by(case: Case, copy: CudnnCopy) -> str:
    """Who would load this copy or a sub-library of it; "" where nobody would."""
    files = {copy.real_path, copy.path, *(p for s in copy.sublibraries for p in (s.path, s.real_path))}
    users = [r.consumer for _, r in resolutions(case) if value_or(r.real_path, "") in files and r.consumer not in files]
    return ", ".join(dict.fromkeys(users))


def own_searches(case: Case, copy: CudnnCopy) -> Iterator[tuple[str, Resolution]]:
    """The searches that this copy itself would make."""
    for pointer, resolution in resolutions(case):
        if resolution.consumer in (copy.path, copy.real_path):
            yield pointer, resolution


def requirement_name(requirement: str) -> str:
    """The distribution that a Requires-Dist line names, normalised: "nvidia-cudnn-cu12"."""
    import re

    named = re.match(r"[\w.-]+", requirement)
    return re.sub(r"[-_.]+", "-", named[0]).lower() if named else ""


def visible(case: Case) -> Visible | None:
    """What CUDA_VISIBLE_DEVICES leaves of the GPUs that NVML lists; None when it is not set or NVML lists none."""
    value = case.snapshot.host.environment.get("CUDA_VISIBLE_DEVICES")
    listed = value_or(case.snapshot.gpus, ())
    if value is None or not listed:
        return None
    slices = [s for g in listed for s in value_or(g.mig_devices, ())]
    return visible_devices(value, [value_or(g.uuid, "") for g in listed], slices)


def hides_every_gpu(case: Case) -> bool:
    """CUDA_VISIBLE_DEVICES leaves nothing: CUDA then fails although the machine is sound."""
    seen = visible(case)
    return seen is not None and not seen.devices
