"""A healthy machine to build the rules' examples from: one H200 with torch and one cuDNN, as a real box shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cudnn_doctor.model.base import Absent, known, value_or
from cudnn_doctor.model.facts import (
    Cuda,
    CudaInit,
    CudaLibrary,
    CudnnCopy,
    DeviceNode,
    Driver,
    Framework,
    Gpu,
    Host,
    LibcudaCopy,
    Limits,
    NvmlStatus,
    Package,
    PciDevice,
    Resolution,
    SearchStep,
    Snapshot,
    SubLibrary,
    TargetEnv,
)
from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.rules.base import Case

EX = "example"
SITE = "/opt/venv/lib/python3.12/site-packages"
CUDNN_DIR = f"{SITE}/nvidia/cudnn/lib"
ABSENT = Absent(reason="not-found", detail=EX)
UNSUPPORTED = Absent(reason="not-supported", detail=EX)
NO_DEVICE: dict[str, Any] = {"driver.pci": known((), EX), "gpus": ABSENT, "driver.init": ABSENT}  # no NVIDIA GPU


def snapshot() -> Snapshot:
    """The healthy machine."""
    gpu = Gpu(
        index=0,
        name=known("NVIDIA H200", EX),
        uuid=known("GPU-0", EX),
        pci=known("00000000:00:04.0", EX),
        compute_capability=known("9.0", EX),
        memory_total=known(150754820096, EX),
        memory_used=known(615907328, EX),
        memory_free=known(150138912768, EX),
        compute_mode=known("default", EX),
        mig=known(False, EX),
        mig_devices=known((), EX),
        persistence=known(True, EX),
        ecc=known(True, EX),
        ecc_uncorrected=known(0, EX),
        retired_pages=UNSUPPORTED,
        retirement_pending=UNSUPPORTED,
        remapped_rows=known(0, EX),
        remap_pending=known(False, EX),
        remap_failed=known(False, EX),
        recovery_action=known("none", EX),
        throttle=known((), EX),
        temperature=known(33, EX),
        display_active=known(False, EX),
        processes=known((), EX),
    )
    names = ("graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic")
    copy = CudnnCopy(
        path=f"{CUDNN_DIR}/libcudnn.so.9",
        real_path=f"{CUDNN_DIR}/libcudnn.so.9",
        directory=CUDNN_DIR,
        major=9,
        soname="libcudnn.so.9",
        kind="full",
        found_by=("site-packages",),
        version=known("9.19.0", EX),
        version_readings=(known("9.19.0", EX),),
        cudart=known("13.0", EX),
        package=known("nvidia-cudnn-cu13 9.19.0.56", EX),
        cuda_flavour=known(13, EX),
        sublibraries=tuple(
            SubLibrary(
                name=f"libcudnn_{n}.so.9",
                path=f"{CUDNN_DIR}/libcudnn_{n}.so.9",
                real_path=f"{CUDNN_DIR}/libcudnn_{n}.so.9",
                version=known("9.19.0", EX),
                size=1000000,
            )
            for n in names
        ),
        asked=known("ok", EX),
    )
    requires = (
        "nvidia-cudnn-cu13==9.19.0.56; platform_system == 'Linux'",
        "nvidia-cublas==13.1.0.3; platform_system == 'Linux'",
    )
    libcuda = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"
    return Snapshot(
        taken_at="2026-11-30T12:00:00Z",
        patient=TargetEnv(
            prefix="/opt/venv",
            python=known("/opt/venv/bin/python", EX),
            python_version=known("3.12.3", EX),
            kind="venv",
            chosen_by="VIRTUAL_ENV",
            site_packages=(SITE,),
        ),
        host=Host(
            os=known("Ubuntu 24.04.3 LTS", EX),
            kernel=known("6.18.0", EX),
            machine="x86_64",
            libc=known("glibc 2.39", EX),
            container=known("none", EX),
            wsl=known(False, EX),
            limits=Limits(
                stack=known(8388608, EX),
                memlock=known(-1, EX),
                open_files=known(1048576, EX),
                cgroup_memory=known(-1, EX),
            ),
            environment={},
            mps=known(False, EX),
        ),
        driver=Driver(
            pci=known((PciDevice(address="0000:00:04.0", device="0x2335", driver=known("nvidia", EX)),), EX),
            nvml=known(NvmlStatus(code=0, name="NVML_SUCCESS"), EX),
            version=known("580.159.04", EX),
            cuda=known("13.0", EX),
            kernel_module=known("580.159.04", EX),
            kernel_module_kind=known("open", EX),
            nouveau=known(False, EX),
            device_nodes=known(
                tuple(
                    DeviceNode(path=p, readable=True, writable=True)
                    for p in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
                ),
                EX,
            ),
            uvm=known(True, EX),
            libcuda=(
                LibcudaCopy(
                    path="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                    real_path=libcuda,
                    version=known("580.159.04", EX),
                    found_by="ld.so.cache",
                    compat=False,
                    wsl=False,
                ),
            ),
            init=known(CudaInit(code=0, name="CUDA_SUCCESS", driver_cuda=known("13.0", EX), library=libcuda), EX),
        ),
        gpus=known((gpu,), EX),
        cudnn=(copy,),
        resolutions=tuple(
            Resolution(
                consumer=consumer,
                wanted="libcudnn.so.9",
                path=known(copy.path, EX),
                real_path=known(copy.real_path, EX),
                step=step,
                shadowed=(),
                steps=(SearchStep(step=step, directory=CUDNN_DIR, found=True),),
            )
            for consumer, step in (("plain dlopen", "LD_LIBRARY_PATH"), ("torch", "DT_RUNPATH of libtorch_cuda.so"))
        ),
        cuda=Cuda(
            toolkits=(),
            libraries=tuple(
                CudaLibrary(
                    name=name,
                    major=13,
                    path=f"{SITE}/nvidia/cu13/lib/{name}.so.13",
                    real_path=f"{SITE}/nvidia/cu13/lib/{name}.so.13",
                    version=known("13.1.0", EX),
                    found_by="site-packages",
                )
                for name in ("libcudart", "libcublas", "libcublasLt", "libnvrtc")
            ),
        ),
        packages=known(
            (
                Package(name="torch", version="2.11.0", location=SITE, requires=requires, installer="pip"),
                Package(
                    name="nvidia-cudnn-cu13",
                    version="9.19.0.56",
                    location=SITE,
                    requires=("nvidia-cublas",),
                    installer="pip",
                ),
            ),
            EX,
        ),
        overwrites=(),
        frameworks=(
            Framework(
                name="torch",
                distribution="torch",
                version="2.11.0",
                location=f"{SITE}/torch",
                cuda_build=known(True, EX),
                built_cuda=known("13.0", EX),
                built_cudnn=known("9.19.0", EX),
                compute_capabilities=known(("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"), EX),
                requires=requires,
                cudnn_soname=known("libcudnn.so.9", EX),
            ),
        ),
        xids=known((), EX),
    )


def another_copy(version: str, directory: str, **changes: Any) -> CudnnCopy:
    """A second cuDNN 9 beside the healthy one, complete, of another version and place."""
    mine = snapshot().cudnn[0]
    copy = msgspec.structs.replace(
        mine,
        path=f"{directory}/libcudnn.so.9",
        real_path=f"{directory}/libcudnn.so.9",
        directory=directory,
        found_by=("LD_LIBRARY_PATH",),
        version=known(version, EX),
        version_readings=(known(version, EX),),
        package=ABSENT,
        sublibraries=tuple(
            msgspec.structs.replace(
                s, path=f"{directory}/{s.name}", real_path=f"{directory}/{s.name}", version=known(version, EX)
            )
            for s in mine.sublibraries
        ),
    )
    return msgspec.structs.replace(copy, **changes)


LIVE_CALLS = (
    "cuInit",
    "cuDevicePrimaryCtxRetain",
    "cuStreamCreate",
    "cudnnCreate",
    "cudnnSetStream",
    "cudnnGetStream",
    "cudnnConvolutionForward",
    "cuStreamSynchronize",
)


def live_steps(*, fails: str = "", status: int = 0, name: str = "", detail: str = "") -> tuple[Step, ...]:
    """The steps of a live check; with `fails`, up to that call, which answers `status`."""
    steps = [Step(call="cudnnGetVersion", value=91900)]
    for call in LIVE_CALLS:
        if call == fails:
            return (*steps, Step(call=call, status=status, name=name, detail=detail, ms=1.0))
        success = "CUDNN_STATUS_SUCCESS" if call.startswith("cudnn") else "CUDA_SUCCESS"
        steps.append(Step(call=call, status=0, name=success, ms=1.0))
    mapped = [f"{CUDNN_DIR}/libcudnn.so.9", f"{CUDNN_DIR}/libcudnn_graph.so.9", f"{CUDNN_DIR}/libcudnn_cnn.so.9"]
    steps.insert(7, Step(call="stream kept", value=True))
    return (*steps, Step(call="wrong values", value=0), Step(call="libraries", value=mapped))


def live_check(**changes: Any) -> ScenarioResult:
    """A live check that went well, with fields of its result replaced."""
    result = ScenarioResult(
        scenario="live-check",
        device=0,
        cudnn=f"{CUDNN_DIR}/libcudnn.so.9",
        cudnn_version="9.19.0",
        fate=Termination(kind="completed"),
        steps=live_steps(),
        ms=420.0,
    )
    return msgspec.structs.replace(result, **changes)


def live(**changes: Any) -> Case:
    """The healthy machine with this live check alone."""
    return sample(live=(live_check(**changes),))


def sample(
    changes: Mapping[str, Any] | None = None,
    *,
    live: tuple[ScenarioResult, ...] | None = None,
    required: tuple[str, ...] = (),
) -> Case:
    """The healthy machine with dotted paths replaced: `{"gpus.0.memory_free": known(0, "example")}`.

    A path goes through `Known` values, and tuples by index. Raises AttributeError or IndexError where it leads nowhere.
    """
    changed: Any = snapshot()
    for path, value in (changes or {}).items():
        changed = _replace(changed, path.split("."), value)
    return Case(changed, (live_check(),) if live is None else live, required=required)


def two_gpus(second: str, **variables: str) -> Case:
    """The healthy machine with a second GPU of this name."""
    gpu = value_or(snapshot().gpus, ())[0]
    other = msgspec.structs.replace(
        gpu,
        index=1,
        name=known(second, EX),
        uuid=known("GPU-1", EX),
        pci=known("00000000:00:05.0", EX),
    )
    changes: dict[str, Any] = {f"host.environment.{name}": value for name, value in variables.items()}
    return sample({"gpus": known((gpu, other), EX), **changes})


def search(wanted: str, path: str = "", consumer: str = "") -> Resolution:
    """A search that the healthy copy itself makes; without `path` it finds nothing."""
    where = known(path, EX) if path else ABSENT
    return Resolution(
        consumer=consumer or f"{CUDNN_DIR}/libcudnn.so.9",
        wanted=wanted,
        path=where,
        real_path=where,
        step="LD_LIBRARY_PATH",
        shadowed=(),
        steps=(),
    )


def with_searches(*searches: Resolution) -> Case:
    """The healthy machine with further searches."""
    return sample({"resolutions": (*sample().snapshot.resolutions, *searches)})


def _replace(node: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    if isinstance(node, tuple):
        i = int(path[0])
        return (*node[:i], _replace(node[i], path[1:], value), *node[i + 1 :])
    if isinstance(node, dict):
        return {**node, path[0]: _replace(node.get(path[0]), path[1:], value)}
    if hasattr(node, "value") and path[0] != "value":
        return msgspec.structs.replace(node, value=_replace(node.value, path, value))
    return msgspec.structs.replace(node, **{path[0]: _replace(getattr(node, path[0]), path[1:], value)})
