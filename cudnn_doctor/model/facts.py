"""The facts about one machine: probes fill a `Snapshot`. No judgement.

Units: memory in bytes, times in milliseconds unless a name says otherwise. Versions are dotted strings as the field
writes them ("9.19.0", "580.159.04", CUDA "13.0"), compute capabilities are "9.0".
"""

from __future__ import annotations

from typing import Literal

from cudnn_doctor.model.base import NOT_EXAMINED, Base, Fact, Known


class TargetEnv(Base, frozen=True, kw_only=True):
    """The Python environment that is examined; often not the doctor's own."""

    prefix: str
    python: Fact[str]  # path of the interpreter
    python_version: Fact[str]
    kind: Literal["venv", "conda", "system"]
    chosen_by: str  # "--env", "VIRTUAL_ENV", "CONDA_PREFIX" or "own interpreter"
    site_packages: tuple[str, ...]  # in the order of sys.path, with PYTHONPATH and what .pth files add
    not_followed: tuple[str, ...] = ()  # what else changes sys.path by running code, in words
    installer: Literal["pip", "uv", ""] = "pip"  # what can install there; "" where it has neither of its own


class Limits(Base, frozen=True, kw_only=True):
    """Resource limits, soft values in bytes or counts; -1 is unlimited."""

    stack: Fact[int]
    memlock: Fact[int]
    open_files: Fact[int]
    cgroup_memory: Fact[int]
    address_space: Fact[int] = NOT_EXAMINED


class Host(Base, frozen=True, kw_only=True):
    os: Fact[str]
    kernel: Fact[str]
    machine: str
    libc: Fact[str]
    container: Fact[str]  # "docker", "podman", "kubernetes", "lxc", ... or "none"
    wsl: Fact[bool]
    limits: Limits
    environment: dict[str, str]  # allow-listed variables that are set
    mps: Fact[bool]  # an MPS control daemon serves this user


class PciDevice(Base, frozen=True, kw_only=True):
    """A PCI function of vendor 0x10de (NVIDIA) of display class, as sysfs shows it."""

    address: str
    device: str  # "0x2335"
    driver: Fact[str]  # kernel driver bound: "nvidia", "nouveau", "vfio-pci"


class DeviceNode(Base, frozen=True, kw_only=True):
    path: str
    readable: bool  # by the file's mode
    writable: bool
    refused: str = (
        ""  # errno of an open that the mode allowed: "EPERM" (a container's device rules), "ENXIO" (no driver)
    )
    kind: str = ""  # "char", "block", "file", "folder", ...; "" in older recordings
    major: int = -1  # of a device; -1 where it is none
    minor: int = -1


class NvmlStatus(Base, frozen=True, kw_only=True):
    """What nvmlInit answered: (0, "NVML_SUCCESS"), (18, "NVML_ERROR_LIB_RM_VERSION_MISMATCH"), ..."""

    code: int
    name: str
    message: str = ""


class LibcudaCopy(Base, frozen=True, kw_only=True):
    """One libcuda.so.1 on the loader's path, in search order."""

    path: str
    real_path: str
    version: Fact[str]  # driver release in the file name, "580.159.04"
    found_by: str
    compat: bool  # from a cuda-compat package (forward compatibility)
    wsl: bool


class CudaInit(Base, frozen=True, kw_only=True):
    """What libcuda answered in a child: cuInit's code and name, cuDriverGetVersion as "13.0"."""

    code: int
    name: str
    driver_cuda: Fact[str]
    library: str  # path that was opened


class Driver(Base, frozen=True, kw_only=True):
    pci: Fact[tuple[PciDevice, ...]]
    nvml: Fact[NvmlStatus]
    version: Fact[str]  # user-space driver release, by NVML
    cuda: Fact[str]  # highest CUDA that this driver serves, by libcuda in a child: a ceiling, not a toolkit
    kernel_module: Fact[str]  # release of the loaded kernel module
    kernel_module_kind: Fact[str]  # "open" or "proprietary"
    nouveau: Fact[bool]
    device_nodes: Fact[tuple[DeviceNode, ...]]
    uvm: Fact[bool]  # nvidia-uvm loaded
    libcuda: tuple[LibcudaCopy, ...]
    init: Fact[CudaInit] = NOT_EXAMINED
    libcuda_off_path: tuple[LibcudaCopy, ...] = ()  # copies in well-known folders that the loader does not search
    majors: Fact[dict[str, int]] = NOT_EXAMINED  # character devices of /proc/devices: {"nvidia": 195, ...}


class GpuProcess(Base, frozen=True, kw_only=True):
    pid: int
    name: Fact[str]
    memory: Fact[int]
    kind: Literal["compute", "graphics", "mps"]


class Gpu(Base, frozen=True, kw_only=True):
    """One device as NVML shows it. `index` is NVML's; CUDA_VISIBLE_DEVICES does not change it."""

    index: int
    name: Fact[str]
    uuid: Fact[str]
    pci: Fact[str]
    compute_capability: Fact[str]
    memory_total: Fact[int]
    memory_used: Fact[int]
    memory_free: Fact[int]
    compute_mode: Fact[str]  # "default", "exclusive-thread", "prohibited", "exclusive-process"
    mig: Fact[bool]
    mig_devices: Fact[tuple[str, ...]]  # UUIDs of the slices
    persistence: Fact[bool]
    ecc: Fact[bool]
    ecc_uncorrected: Fact[int]  # volatile, since the last reset
    retired_pages: Fact[int]
    retirement_pending: Fact[bool]
    remapped_rows: Fact[int]  # by uncorrectable errors
    remap_pending: Fact[bool]
    remap_failed: Fact[bool]
    recovery_action: Fact[str]  # "none", "gpu-reset", "node-reboot", "drain-p2p", "drain-and-reset"
    throttle: Fact[tuple[str, ...]]  # active reasons: "sw-thermal", "hw-slowdown", "hw-power-brake", "gpu-idle", ...
    temperature: Fact[int]  # degrees Celsius
    display_active: Fact[bool]
    processes: Fact[tuple[GpuProcess, ...]]


class SubLibrary(Base, frozen=True, kw_only=True):
    """One file beside a libcudnn.so.N that cuDNN opens itself (libcudnn_ops.so.9, ...)."""

    name: str  # soname: "libcudnn_ops.so.9"
    path: str
    real_path: str
    version: Fact[str]  # from the file name or by asking the library
    size: int
    needed: int = 0  # bytes that its own ELF headers speak of; 0 where nobody looked


class CudnnCopy(Base, frozen=True, kw_only=True):
    """One installed cuDNN: a folder with libcudnn.so.N or sub-libraries of it; symlinks counted once."""

    path: str  # libcudnn.so.N as found first; for a copy without it, the first sub-library
    real_path: str
    directory: str  # folder of the sub-libraries
    major: int
    soname: str  # "libcudnn.so.9"
    kind: Literal["full", "jit", "shimless"]  # shimless: sub-libraries without libcudnn.so.N
    found_by: tuple[str, ...]  # every way that leads here: "LD_LIBRARY_PATH", "ld.so.cache", "site-packages", ...
    version: Fact[str]  # the most trusted reading
    version_readings: tuple[Known[str], ...]  # every reading with its source, most trusted first
    cudart: Fact[str]  # CUDA that it was built with, cudnnGetCudartVersion: "13.0"
    package: Fact[str]  # "nvidia-cudnn-cu13 9.19.0.56", the wheel, deb or conda package that owns it
    cuda_flavour: Fact[int]  # CUDA major that the package says: 12 of nvidia-cudnn-cu12
    sublibraries: tuple[SubLibrary, ...]
    size: int = 0  # of libcudnn itself
    needed: int = 0  # bytes that the ELF headers of libcudnn speak of; 0 where nobody looked
    asked: Fact[str] = NOT_EXAMINED  # fate of the child that loaded it: "ok", or the crash in words
    claimed_by: str = ""  # "nvidia-cudnn-cu12 9.1.0.70", whose RECORD has this path with another size: its file is gone


class SearchStep(Base, frozen=True, kw_only=True):
    """One place where the dynamic loader looked, in its order."""

    step: str  # "DT_RPATH of .../libtorch_cuda.so", "LD_LIBRARY_PATH", "ld.so.cache", "preloaded by torch/__init__.py"
    directory: str
    found: bool
    skipped: str = ""  # why a file here does not count ("wrong ELF class", "not readable")


class Resolution(Base, frozen=True, kw_only=True):
    """Which file a consumer would load for a soname, and by which step of the search."""

    consumer: str  # "plain dlopen", "torch", "tensorflow", "jax", or the path of a cuDNN copy
    wanted: str  # soname
    path: Fact[str]  # the winner, as the loader would open it
    real_path: Fact[str]
    step: str  # the step that found it; "" when none did
    shadowed: tuple[str, ...]  # real paths of other copies of that soname that lose
    steps: tuple[SearchStep, ...]
    stopped_at: str = ""  # the file that cannot be opened and ends the search, so that nothing is loaded


class Toolkit(Base, frozen=True, kw_only=True):
    """A CUDA toolkit on disk; /usr/local/cuda and its target are one."""

    path: str
    real_path: str
    version: Fact[str]
    found_by: str


class CudaLibrary(Base, frozen=True, kw_only=True):
    """libcudart, libcublas, libcublasLt, libnvrtc, ... on disk."""

    name: str  # "libcublas"
    major: int  # 12 of libcublas.so.12
    path: str
    real_path: str
    version: Fact[str]
    found_by: str


class Cuda(Base, frozen=True, kw_only=True):
    toolkits: tuple[Toolkit, ...]
    libraries: tuple[CudaLibrary, ...]


class Package(Base, frozen=True, kw_only=True):
    """An installed distribution that matters here, from its metadata."""

    name: str  # normalised: "nvidia-cudnn-cu12"
    version: str
    location: str
    requires: tuple[str, ...]  # Requires-Dist lines as written
    installer: str = ""  # "pip", "conda", "uv", ...


class Overwrite(Base, frozen=True, kw_only=True):
    """Several installed distributions claim the same files."""

    packages: tuple[str, ...]  # "name version"
    directory: str
    files: int
    on_disk: Fact[str]  # the distribution whose file sizes/hashes the disk holds now


# "other": a program that only a text names, in `Framework.distribution`.
FrameworkName = Literal["tensorflow", "torch", "jax", "mxnet", "onnxruntime", "ctranslate2", "paddle", "cupy", "other"]


class Framework(Base, frozen=True, kw_only=True):
    """TensorFlow, PyTorch, JAX, ... read from files; never imported."""

    name: FrameworkName
    distribution: str  # "tensorflow-gpu", "jax-cuda13-plugin"
    version: str
    location: str
    cuda_build: Fact[bool]
    built_cuda: Fact[str]
    built_cudnn: Fact[str]  # may be the major alone: "9"
    compute_capabilities: Fact[tuple[str, ...]]  # "sm_80", "compute_90"
    requires: tuple[str, ...]  # requirements on nvidia-* distributions, extras' markers included
    cudnn_soname: Fact[str]  # "libcudnn.so.9" that its binaries name
    # linked: it cannot be imported without; opened: when it first uses a GPU; optional: it does without
    cudnn_need: Literal["linked", "opened", "optional"] = "linked"
    call_before: str = ""  # the call with which a program lets it look in site-packages: "onnxruntime.preload_dlls()"


class Xid(Base, frozen=True, kw_only=True):
    time: str
    pci: str
    code: int
    text: str


class ProbeFailure(Base, frozen=True, kw_only=True):
    """A probe that raised: a fault of ours or of the machine; what it would have said is Absent."""

    probe: str
    error: str


class FrameworkWork(Base, frozen=True, kw_only=True):
    """One work that a framework did on the GPU, beside the same on the CPU."""

    name: str  # "convolution", "attention-fp16"
    right: bool
    skipped: str = ""  # why it was not done
    error: str = ""  # what the framework raised
    deviation: float | None = None  # largest difference, as a part of the largest value
    seconds: float | None = None


class FrameworkWord(Base, frozen=True, kw_only=True):
    """What a framework itself did and said in the examined Python, in a child process."""

    name: str  # "torch"
    version: str = ""
    cudnn: str = ""  # cudnnGetVersion by its own word, "91900"; "" where it does not tell
    gpu: bool = False  # it has a GPU to work on
    skipped: str = ""
    error: str = ""  # of its import
    works: tuple[FrameworkWork, ...] = ()
    mapped: tuple[str, ...] = ()  # CUDA libraries in the process at its end
    ending: str = "ok"  # "killed by SIGABRT in convolution"
    said: str = ""  # the last lines that it printed, of one that did not end well


class Snapshot(Base, frozen=True, kw_only=True):
    """All facts about one machine and one patient. No judgement."""

    taken_at: str  # ISO 8601, UTC
    patient: TargetEnv
    host: Host
    driver: Driver
    gpus: Fact[tuple[Gpu, ...]]
    cudnn: tuple[CudnnCopy, ...]
    resolutions: tuple[Resolution, ...]
    cuda: Cuda
    packages: Fact[tuple[Package, ...]]
    overwrites: tuple[Overwrite, ...]
    frameworks: tuple[Framework, ...]
    xids: Fact[tuple[Xid, ...]]
    failures: tuple[ProbeFailure, ...] = ()
    framework_words: tuple[FrameworkWord, ...] = ()  # with --framework
