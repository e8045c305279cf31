"""CD110 to CD113: which libcuda a program gets."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Absent, Known, known, value_or
from cudnn_doctor.model.facts import CudaInit, LibcudaCopy
from cudnn_doctor.model.report import Evidence, Fix
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.facts import (
    container_without_gpu,
    cuda_works,
    gpu_present,
    gpus,
    in_container,
    in_wsl,
    not_linux,
    numbers,
    variable,
)
from cudnn_doctor.rules.remedies import again, cure, fix, in_front, quoted, with_folder, without_folders
from cudnn_doctor.rules.sample import ABSENT, EX, sample

LIBCUDA = "/snapshot/driver/libcuda"
COMPAT_DOC = "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html"
NO_GPU = "no NVIDIA GPU on this machine"
MISMATCH = CudaInit(code=803, name="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", driver_cuda=ABSENT, library="libcuda.so.1")


def _libcuda(path: str, version: str = "580.159.04", *, compat: bool = False, wsl: bool = False) -> LibcudaCopy:
    return LibcudaCopy(
        path=path, real_path=path, version=known(version, EX), found_by="LD_LIBRARY_PATH", compat=compat, wsl=wsl
    )


@rule(
    "CD110",
    title="Forward-compatibility libcuda (cuda-compat)",
    severity="error",
    owner="environment",
    causes=("compat-libs-unsupported",),
    explain="""The package cuda-compat brings a libcuda of a newer driver, so that a newer CUDA runs on an older
kernel module. It works on data-centre GPUs alone (804 elsewhere), and only while it is newer than the kernel module:
once the driver was updated past it, the forgotten folder on LD_LIBRARY_PATH breaks CUDA with 803.""",
    source=COMPAT_DOC,
    examples=lambda: (
        ("skipped", sample()),
        (
            "problem",
            sample(
                {
                    "driver.libcuda.0": _libcuda("/usr/local/cuda-12.2/compat/libcuda.so.1", "535.54.03", compat=True),
                    "driver.init": known(MISMATCH, EX),
                }
            ),
        ),
        (
            "problem",
            sample(
                {
                    "driver.libcuda.0": _libcuda("/usr/local/cuda-13.1/compat/libcuda.so.1", "590.44.01", compat=True),
                    "driver.init": ABSENT,
                    "gpus.0.name": known("NVIDIA GeForce RTX 4090", EX),
                }
            ),
        ),
        (
            "ok",
            sample(
                {"driver.libcuda.0": _libcuda("/usr/local/cuda-13.1/compat/libcuda.so.1", "590.44.01", compat=True)}
            ),
        ),
    ),
)
def compat(case: Case) -> Iterator[Outcome]:
    driver = case.snapshot.driver
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
        return
    if not driver.libcuda or not driver.libcuda[0].compat:
        yield skip("driver", "no cuda-compat library comes first")
        return
    copy = driver.libcuda[0]
    evidence = [shown(copy.version, f"{LIBCUDA}/0/version"), see(case, lambda s: s.driver.kernel_module).shown()]
    subject = copy.path
    if cuda_works(case):
        yield passed(subject, "Forward compatibility is in use and works", evidence=evidence)
        return
    theirs, module = value_or(copy.version, ""), value_or(driver.kernel_module, "")
    consumer = [name for _, name, gpu in gpus(case) if "GeForce" in value_or(gpu.name, "")]
    init = driver.init.value.code if isinstance(driver.init, Known) else None
    if theirs and module and numbers(theirs) < numbers(module):
        why, title = f"it is older than the kernel module {module}", f"cuda-compat {theirs} is older than the driver"
    elif init == 804 or consumer:
        why = f"{consumer[0] if consumer else 'this GPU'} has no forward compatibility"
        title = "cuda-compat comes first on a GPU that it does not serve"
    else:
        why, title = "CUDA does not start with it", "cuda-compat comes first and CUDA does not start"
    yield problem(
        subject,
        title,
        detail=f"Programs get this libcuda ({theirs or 'unknown version'}, found by {copy.found_by}), and {why}.",
        evidence=evidence,
        fixes=[
            _leave(case, copy)
            or fix(
                "Take its folder out of /etc/ld.so.conf.d, so that the driver's own is found.",
                "sudo ldconfig; ldconfig -p | grep libcuda.so",
                verify=again("CD109"),
            )
        ],
    )


@rule(
    "CD111",
    title="libcuda",
    severity="error",
    owner="node",
    causes=("helper-library-missing",),
    explain="""libcuda.so.1 belongs to the driver, not to the CUDA toolkit. Frameworks and cuDNN open it by that name.
It is missing when only the kernel module or a "headless" part of the driver was installed, and in containers whose
NVIDIA_DRIVER_CAPABILITIES lack "compute": nvidia-smi works there and CUDA does not.""",
    source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"driver.libcuda": ()})),
        (
            "problem",
            sample({"driver.libcuda.0.version": Absent(reason="error", detail="no ELF file: 0 bytes")}),
        ),
        (
            "problem",
            sample(
                {
                    "driver.libcuda": (),
                    "driver.libcuda_off_path": (_libcuda("/usr/local/nvidia/lib64/libcuda.so.1"),),
                }
            ),
        ),
        (
            "problem",
            sample(
                {
                    "driver.libcuda": (),
                    "host.container": known("docker", EX),
                    "host.environment.NVIDIA_DRIVER_CAPABILITIES": "utility",
                }
            ),
        ),
        ("skipped", sample({"driver.libcuda": (), "driver.kernel_module": ABSENT, "gpus": ABSENT})),
    ),
)
def libcuda_found(case: Case) -> Iterator[Outcome]:
    driver = case.snapshot.driver
    if not gpu_present(case):
        yield skip("driver", NO_GPU)
    elif container_without_gpu(case):
        yield skip("driver", "the container has no GPU: CD502")
    elif driver.libcuda and (damage := _damage(driver.libcuda[0])):
        first = driver.libcuda[0]
        leave = _leave(case, first)
        yield problem(
            first.path,
            f"The libcuda.so.1 that the loader meets first cannot be loaded: {damage}",
            detail=f"It is found by {first.found_by}; the loader stops there and does not look for another.",
            evidence=[shown(first.version, f"{LIBCUDA}/0/version")],
            fixes=[leave]
            if leave
            else [fix("See what put it there.", f"ls -l {quoted(first.path)}", verify=again("CD111"))],
            owner="environment",
        )
    elif driver.libcuda:
        first = driver.libcuda[0]
        evidence = [Evidence(pointer=f"{LIBCUDA}/0/path", value=first.path, source=first.found_by)]
        yield passed("driver", f"libcuda.so.1 is {first.real_path}", evidence=evidence)
    elif in_wsl(case):
        yield skip("driver", "WSL: CD112")
    elif not_linux(case):
        yield skip("driver", "the driver of this system is no libcuda.so.1")
    elif not isinstance(driver.kernel_module, Known) and not value_or(case.snapshot.gpus, ()):
        yield skip("driver", "the kernel driver is not loaded: CD102")
    else:
        evidence = [Evidence(pointer=LIBCUDA, value="none found", source="the loader's search path")]
        elsewhere = [c for c in driver.libcuda_off_path if not c.compat]
        if elsewhere:
            place = "/snapshot/driver/libcuda_off_path"
            evidence.append(Evidence(pointer=place, value=elsewhere[0].path, source="a well-known folder"))
        if in_container(case):
            evidence.append(variable(case, "NVIDIA_DRIVER_CAPABILITIES"))
        yield problem(
            "driver",
            "libcuda.so.1 is not on the loader's path",
            detail="The driver's kernel part is there, its CUDA library is not: no CUDA program can start.",
            evidence=evidence,
            fixes=[
                fix(
                    f"It is {elsewhere[0].path}: tell the loader.",
                    with_folder(elsewhere[0].path.rpartition("/")[0]),
                    verify=again("CD111"),
                    change=in_front(case, elsewhere[0].path.rpartition("/")[0]),
                )
                if elsewhere
                else fix(
                    "In a container, ask for the compute part of the driver.",
                    "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...",
                    verify=again("CD111"),
                )
                if in_container(case)
                else fix(
                    "Install the compute libraries of the driver release that is loaded (libnvidia-compute-NNN on "
                    "Debian and Ubuntu, nvidia-driver-cuda-libs on Fedora and RHEL).",
                    "cat /proc/driver/nvidia/version; ldconfig -p | grep libcuda.so",
                    verify=again("CD111"),
                )
            ],
            owner="environment" if in_container(case) else None,
        )


@rule(
    "CD112",
    title="libcuda under WSL",
    severity="error",
    owner="environment",
    causes=("helper-library-missing", "driver-lib-skew"),
    explain="""Under WSL the driver is that of Windows; its libcuda lies in /usr/lib/wsl/lib. A Linux driver installed
inside WSL puts another libcuda before it and breaks CUDA. cuDNN up to 8.5 also wants the name libcuda.so without a
number, and blames one of its own libraries when that link is missing ("Could not load library
libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file").""",
    source="https://docs.nvidia.com/cuda/wsl-user-guide/index.html; the 8.5 message was measured with its wheel",
    examples=lambda: (
        ("skipped", sample()),
        (
            "ok",
            sample(
                {
                    "host.wsl": known(True, EX),
                    "driver.libcuda": (_libcuda("/usr/lib/wsl/lib/libcuda.so.1", wsl=True),),
                }
            ),
        ),
        (
            "problem",
            sample(
                {
                    "host.wsl": known(True, EX),
                    "driver.libcuda": (
                        _libcuda("/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
                        _libcuda("/usr/lib/wsl/lib/libcuda.so.1", wsl=True),
                    ),
                }
            ),
        ),
        ("problem", sample({"host.wsl": known(True, EX), "driver.libcuda": ()})),
    ),
)
def wsl(case: Case) -> Iterator[Outcome]:
    if not_linux(case) or not see(case, lambda s: s.host.wsl).need():
        yield skip("driver", "this is not WSL")
        return
    found = case.snapshot.driver.libcuda
    evidence = [
        Evidence(pointer=f"{LIBCUDA}/{i}/path", value=copy.path, source=copy.found_by) for i, copy in enumerate(found)
    ] or [Evidence(pointer=LIBCUDA, value="none found", source="the loader's search path")]
    if found and found[0].wsl:
        yield passed("driver", "libcuda is that of WSL", evidence=evidence)
    elif not found:
        yield problem(
            "driver",
            "No libcuda on the loader's path under WSL",
            detail="The driver of Windows provides it in /usr/lib/wsl/lib.",
            evidence=evidence,
            fixes=[
                fix("Install the NVIDIA driver in Windows and restart WSL.", "wsl.exe --shutdown", verify="nvidia-smi"),
                fix(
                    "If the folder is there, put it on the loader's path.",
                    "echo /usr/lib/wsl/lib | sudo tee /etc/ld.so.conf.d/ld.wsl.conf && sudo ldconfig",
                    verify=again("CD112"),
                ),
            ],
        )
    else:
        yield problem(
            "driver",
            f"{found[0].path} comes before the libcuda of WSL",
            detail="A Linux driver is installed inside WSL; its libcuda has no kernel module to talk to.",
            evidence=evidence,
            fixes=[
                fix(
                    "Remove the Linux driver from WSL (apt-get lists the packages and asks); the toolkit may stay.",
                    "sudo apt-get remove 'libnvidia-compute-*' 'nvidia-driver-*'",
                    verify=again("CD112"),
                )
            ],
        )


@rule(
    "CD113",
    title="Stub libcuda of the toolkit",
    severity="error",
    owner="environment",
    causes=("environment-restriction",),
    explain="""The toolkit's lib64/stubs holds a libcuda that only serves to link programs on machines without a
driver. Every call of it answers 34, CUDA_ERROR_STUB_LIBRARY. It must never be found at run time.""",
    source="CUDA_ERROR_STUB_LIBRARY in cuda.h",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"driver.libcuda.0": _libcuda("/usr/local/cuda/lib64/stubs/libcuda.so.1")})),
        ("skipped", sample({"driver.libcuda": ()})),
    ),
)
def stub(case: Case) -> Iterator[Outcome]:
    found = case.snapshot.driver.libcuda
    if not found:
        yield skip("driver", "no libcuda found: CD111")
        return
    evidence = [Evidence(pointer=f"{LIBCUDA}/0/path", value=found[0].path, source=found[0].found_by)]
    if "/stubs/" not in found[0].path and "/stubs/" not in found[0].real_path:
        yield passed("driver", "libcuda is no stub", evidence=evidence)
        return
    yield problem(
        found[0].path,
        "The toolkit's stub comes first instead of the driver's libcuda",
        detail=f"It was found by {found[0].found_by}; every CUDA call ends with 34, CUDA_ERROR_STUB_LIBRARY.",
        evidence=evidence,
        fixes=[
            _leave(case, found[0])
            or fix(
                "Take the stubs folder out of /etc/ld.so.conf.d.",
                "grep -r stubs /etc/ld.so.conf.d",
                verify=again("CD113"),
            )
        ],
    )


def _damage(copy: LibcudaCopy) -> str:
    """Why the loader could not map it; "" where it can."""
    version = copy.version
    return version.detail if isinstance(version, Absent) and version.detail.startswith("no ELF file") else ""


def _leave(case: Case, copy: LibcudaCopy) -> Fix | None:
    """Takes the folder of a libcuda out of LD_LIBRARY_PATH; None where it is not found by that."""
    folder = copy.path.rpartition("/")[0]
    leave = without_folders(case, folder)
    text = f"Take {folder} out of LD_LIBRARY_PATH, so that the driver's own libcuda is found."
    return cure(text, leave, verify=again("CD109")) if leave else None
