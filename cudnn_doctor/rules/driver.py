"""CD101 to CD104: is there hardware, is a kernel driver on it, does the user-space driver fit it."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Absent, Known, known, value_or
from cudnn_doctor.model.facts import NvmlStatus, PciDevice
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip, unknown
from cudnn_doctor.rules.facts import (
    cuda_works,
    gpu_present,
    in_container,
    in_wsl,
    integrated,
    not_linux,
    numbers,
    plural,
)
from cudnn_doctor.rules.remedies import again, fix, quoted
from cudnn_doctor.rules.sample import ABSENT, EX, NO_DEVICE, sample

PCI = "/snapshot/driver/pci"
NVML = "/snapshot/driver/nvml"
MODULE = "/snapshot/driver/kernel_module"
NVML_DOC = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html"
INSTALL_DOC = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
NO_GPU = "no NVIDIA GPU on this machine"


def _pci(*drivers: str) -> Known[tuple[PciDevice, ...]]:
    return known(
        tuple(
            PciDevice(address=f"0000:0{i}:00.0", device="0x2335", driver=known(d, EX) if d else ABSENT)
            for i, d in enumerate(drivers)
        ),
        EX,
    )


def _devices(devices: tuple[PciDevice, ...]) -> str:
    return ", ".join(f"{d.address} ({value_or(d.driver, 'no driver')})" for d in devices)


@rule(
    "CD101",
    title="NVIDIA hardware",
    severity="error",
    owner="node",
    causes=("environment-restriction",),
    explain="""Without an NVIDIA GPU there is nothing that cuDNN could run on, and most other answers are moot: the
verdict is then "no verdict" (exit 2), not a pass. The kernel's list of PCI devices is asked first, because it knows
the hardware even when no driver is installed. Use `--require gpu` where a missing GPU must count as a problem.""",
    source="PCI vendor 0x10de in /sys/bus/pci/devices (https://pci-ids.ucw.cz/read/PC/10de) and NVML's device list",
    examples=lambda: (
        ("ok", sample()),
        ("ok", sample({"driver.pci": known((), EX), "gpus": ABSENT})),
        ("unknown", sample(NO_DEVICE)),
        ("problem", sample(NO_DEVICE, required=("gpu",))),
    ),
    required=True,
    requirements=("gpu",),
)
def hardware(case: Case) -> Iterator[Outcome]:
    listed = case.snapshot.gpus
    if isinstance(listed, Known) and listed.value:
        names = ", ".join(dict.fromkeys(value_or(g.name, "unnamed") for g in listed.value))
        count = plural(len(listed.value), "NVIDIA GPU")
        yield passed("machine", f"{count}: {names}", evidence=[see(case, lambda s: s.gpus).shown(names)])
        return
    if integrated(case):
        evidence = [see(case, lambda s: s.driver.device_nodes).shown("nodes of Tegra's GPU")]
        yield passed("machine", "An integrated GPU (Tegra)", evidence=evidence)
        return
    fact = case.snapshot.driver.pci
    bus = not (isinstance(fact, Absent) and fact.reason == "not-supported")  # Windows and macOS show none
    pci = see(case, lambda s: s.driver.pci).need() if bus else ()
    if pci:
        title = f"{plural(len(pci), 'NVIDIA GPU')} on the PCI bus"
        yield passed("machine", title, evidence=[see(case, lambda s: s.driver.pci).shown(_devices(pci))])
        return
    if cuda_works(case):
        seen = see(case, lambda s: s.driver.init).shown("cuInit succeeds")
        yield passed("machine", "A GPU that CUDA can use; neither NVML nor the PCI bus shows it here", evidence=[seen])
        return
    evidence = [
        see(case, lambda s: s.driver.pci).shown("no device of vendor 0x10de"),
        see(case, lambda s: s.gpus).shown("none"),
    ]
    detail = (
        "WSL shows GPUs through the driver of Windows, and NVML lists none."
        if in_wsl(case)
        else "The PCI bus has no display device of vendor 0x10de (NVIDIA), and NVML lists none."
        if bus
        else "NVML, which alone could tell on this system, lists none."
    )
    if "gpu" in case.required:
        text = "Run this on a machine with an NVIDIA GPU; in a virtual machine, hand the device through to the guest."
        yield problem(
            "machine",
            "No NVIDIA GPU on this machine",
            detail=detail + " --require gpu demands one.",
            evidence=evidence,
            fixes=[fix(text, verify="lspci -d 10de:")],
        )
    else:
        yield unknown("machine", "No NVIDIA GPU on this machine", detail=detail, evidence=evidence)


@rule(
    "CD102",
    title="Kernel driver on the hardware",
    severity="error",
    owner="node",
    causes=("helper-library-missing",),
    explain="""The hardware is on the PCI bus but no NVIDIA kernel module drives it: not installed, not built for the
running kernel (after a kernel update), refused by Secure Boot, or the device was given to a virtual machine
(vfio-pci). Every CUDA call fails then; frameworks say "no CUDA-capable device" and fall back to the CPU or stop.""",
    source=INSTALL_DOC,
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({**NO_DEVICE, "driver.pci": _pci(""), "driver.kernel_module": ABSENT})),
        ("problem", sample({**NO_DEVICE, "driver.pci": _pci("vfio-pci"), "driver.kernel_module": ABSENT})),
        ("skipped", sample(NO_DEVICE)),
    ),
)
def kernel_driver(case: Case) -> Iterator[Outcome]:
    driver = case.snapshot.driver
    module = driver.kernel_module
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
    elif isinstance(module, Known):
        yield passed(
            "driver",
            f"Kernel module {module.value} is loaded",
            evidence=[see(case, lambda s: s.driver.kernel_module).shown()],
        )
    elif value_or(case.snapshot.gpus, ()) or integrated(case) or cuda_works(case):
        yield skip("driver", "a driver serves the GPU, and this system shows no kernel module of that name")
    elif module.reason != "not-found":
        see(case, lambda s: s.driver.kernel_module).need()
    else:
        devices = see(case, lambda s: s.driver.pci).need()
        bound = {value_or(d.driver, "") for d in devices}
        if "nouveau" in bound:
            yield skip("driver", "nouveau holds the device: CD104")
            return
        evidence = [
            see(case, lambda s: s.driver.pci).shown(_devices(devices)),
            Evidence(pointer=MODULE, value="not loaded", source=module.detail),
        ]
        if bound == {"vfio-pci"}:
            yield problem(
                "driver",
                "The GPU is reserved for a virtual machine (vfio-pci)",
                detail="The kernel bound every NVIDIA device to vfio-pci, so no program of this system can use it.",
                evidence=evidence,
                fixes=[
                    fix(
                        "Run the work in the guest that owns the device, or bind it to the driver nvidia again.",
                        f"lspci -k -s {quoted(devices[0].address)}",
                        verify=again("CD102"),
                    )
                ],
            )
            return
        yield problem(
            "driver",
            f"{plural(len(devices), 'NVIDIA GPU')}, but the NVIDIA kernel driver is not loaded",
            detail="The PCI bus shows the hardware; /proc/driver/nvidia/version is missing, so nothing drives it.",
            evidence=evidence,
            fixes=[
                fix("Load the module, if it is installed.", "sudo modprobe nvidia", verify=again("CD102")),
                fix(
                    "If modprobe does not know it, install the driver (or rebuild it for the running kernel). "
                    "If it says 'Key was rejected by service', Secure Boot refuses the unsigned module: enrol its key.",
                    "dkms status; mokutil --sb-state",
                    verify="nvidia-smi",
                ),
            ],
        )


@rule(
    "CD103",
    title="Kernel module against user-space driver",
    severity="error",
    owner="node",
    causes=("driver-lib-skew",),
    explain="""The kernel module and the user-space libraries of the driver (libcuda, NVML) must be of one release.
They differ after a driver update without a reboot, or when a container or an old installation brings a libcuda of its
own. NVML then answers 18 "Driver/library version mismatch", cuInit 803, and TensorFlow prints "kernel version ...
does not match DSO version". cuDNN can only report NOT_INITIALIZED.""",
    source=NVML_DOC + " (NVML_ERROR_LIB_RM_VERSION_MISMATCH) and CUDA_ERROR_SYSTEM_DRIVER_MISMATCH in cuda.h",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"driver.kernel_module": known("570.86.10", EX)})),
        (
            "problem",
            sample(
                {
                    "driver.nvml": known(NvmlStatus(code=18, name="NVML_ERROR_LIB_RM_VERSION_MISMATCH"), EX),
                    "driver.version": ABSENT,
                    "driver.kernel_module": known("575.57.08", EX),
                }
            ),
        ),
        ("unknown", sample({"driver.kernel_module": ABSENT})),
    ),
)
def driver_skew(case: Case) -> Iterator[Outcome]:
    driver = case.snapshot.driver
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
        return
    if in_wsl(case) or not_linux(case):
        yield skip("driver", "the kernel side of the driver is that of Windows")
        return
    mismatch = isinstance(driver.nvml, Known) and driver.nvml.value.code == 18
    evidence = [see(case, lambda s: s.driver.kernel_module).shown()]
    user = ""
    if isinstance(driver.version, Known):
        user = driver.version.value
        evidence.append(see(case, lambda s: s.driver.version).shown())
    else:
        for i, copy in enumerate(driver.libcuda):
            if isinstance(copy.version, Known) and not copy.compat:
                user = copy.version.value
                evidence.append(shown(copy.version, f"/snapshot/driver/libcuda/{i}/version"))
                break
    if mismatch and isinstance(driver.nvml, Known):
        evidence.append(see(case, lambda s: s.driver.nvml).shown(f"{driver.nvml.value.code} {driver.nvml.value.name}"))
    module = (
        value_or(driver.kernel_module, "unknown") if mismatch else see(case, lambda s: s.driver.kernel_module).need()
    )
    if not mismatch and not user:
        see(case, lambda s: s.driver.version).need()
    if not mismatch and numbers(user) == numbers(module):
        yield passed("driver", f"Kernel module and user-space driver are both {module}", evidence=evidence)
        return
    where = "The container has libraries of another release than the host's module." if in_container(case) else ""
    yield problem(
        "driver",
        f"Kernel module {module} and user-space driver {user or 'unknown'} differ",
        detail=(
            f"The loaded kernel module is {module}, the libraries of the driver are {user or 'of another release'}: "
            f"CUDA cannot start until they are of one release. {where}".rstrip()
        ),
        evidence=evidence,
        fixes=[
            fix(
                "Reboot; or, with no process on the GPU, reload the module that is installed now.",
                "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia",
                verify=again("CD103"),
            ),
            fix(
                "In a container: start it again after the host's driver was updated, and remove a libcuda.so.1 or "
                "libnvidia-ml.so.1 that its image brings along.",
                "ldconfig -p | grep -E 'libcuda.so|libnvidia-ml'",
                verify="nvidia-smi",
            ),
        ],
    )


@rule(
    "CD104",
    title="nouveau",
    severity="error",
    owner="node",
    causes=("helper-library-missing",),
    explain="""nouveau is the free display driver of the kernel. It knows no CUDA, and while it holds the device the
NVIDIA module cannot. The NVIDIA installers blacklist it; a fresh kernel or initramfs can bring it back.""",
    source=INSTALL_DOC,
    examples=lambda: (
        ("ok", sample()),
        (
            "problem",
            sample(
                {
                    "driver.nouveau": known(True, EX),
                    "driver.pci": _pci("nouveau"),
                    "driver.kernel_module": ABSENT,
                    "gpus": ABSENT,
                }
            ),
        ),
        ("ok", sample({"driver.nouveau": known(True, EX), "driver.pci": _pci("nvidia", "nouveau")})),
    ),
)
def nouveau(case: Case) -> Iterator[Outcome]:
    driver = case.snapshot.driver
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
        return
    if not_linux(case):
        yield skip("driver", "nouveau is a driver of Linux")
        return
    loaded = see(case, lambda s: s.driver.nouveau).need()
    devices = value_or(driver.pci, ())
    evidence = [see(case, lambda s: s.driver.nouveau).shown("loaded" if loaded else "not loaded")]
    if not loaded:
        yield passed("driver", "nouveau is not loaded", evidence=evidence)
        return
    evidence.append(see(case, lambda s: s.driver.pci).shown(_devices(devices)))
    if isinstance(driver.kernel_module, Known):
        yield passed("driver", "nouveau is loaded, but the NVIDIA driver serves a GPU beside it", evidence=evidence)
        return
    yield problem(
        "driver",
        "nouveau holds the GPU, so the NVIDIA driver cannot load",
        evidence=evidence,
        fixes=[
            fix(
                "Forbid nouveau, rebuild the initramfs (dracut -f on Fedora and RHEL) and reboot.",
                "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | "
                "sudo tee /etc/modprobe.d/blacklist-nouveau.conf && sudo update-initramfs -u",
                verify=again("CD104"),
            )
        ],
    )
