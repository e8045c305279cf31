"""CD513: variables that change what CUDA and cuDNN do."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, skip
from cudnn_doctor.rules.facts import variable
from cudnn_doctor.rules.remedies import cure, unset
from cudnn_doctor.rules.sample import sample

# What each does when it is set to anything but nothing or 0.
CAN_BREAK = {
    "CUDA_FORCE_PTX_JIT": "CUDA ignores machine code and compiles PTX, which cuDNN does not carry for every kernel",
    "CUDA_DISABLE_PTX_JIT": "CUDA compiles no PTX: a GPU newer than the machine code in a library gets no kernel",
    "CUDA_DISABLE_JIT": "CUDA compiles nothing: a GPU newer than the machine code in a library gets no kernel",
    "CUDA_INJECTION64_PATH": "CUDA loads this library into every process when it starts",
    "CUDA_MPS_PIPE_DIRECTORY": "CUDA talks to the MPS daemon in this folder",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "MPS gives a program this much memory and no more",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "MPS gives a program this part of the GPU and no more",
    "CUDNN_ERRATA_JSON_FILE": "cuDNN leaves out the engines that this file names",
}
CHANGES = {
    "CUDA_LAUNCH_BLOCKING": "every kernel is waited for",
    "CUDA_MODULE_LOADING": "kernels are loaded lazily or all at the start",
    "CUDA_MODULE_DATA_LOADING": "data of kernels are loaded lazily or all at the start",
    "CUDA_DEVICE_MAX_CONNECTIONS": "number of queues to the GPU",
    "CUDA_CACHE_DISABLE": "compiled kernels are not kept",
    "CUDA_CACHE_PATH": "where compiled kernels are kept",
    "CUDA_CACHE_MAXSIZE": "how much of compiled kernels is kept",
    "CUDA_MANAGED_FORCE_DEVICE_ALLOC": "managed memory lies on the GPU",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "a fault on the GPU writes a core file",
    "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP": "a fault on the GPU writes a small core file",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": "a fault on the GPU waits for a debugger",
    "CUDA_DISABLE_PERF_BOOST": "clocks are not raised for a waiting program",
    "CUDA_LOG_FILE": "CUDA logs its errors there",
    "NVIDIA_TF32_OVERRIDE": "TF32 is switched off (0) for every library",
    "CUDNN_LOGINFO_DBG": "cuDNN 8 logs its calls",
    "CUDNN_LOGWARN_DBG": "cuDNN 8 logs warnings",
    "CUDNN_LOGERR_DBG": "cuDNN 8 logs errors",
    "CUDNN_LOGLEVEL_DBG": "cuDNN 9 logs up to this level",
    "CUDNN_LOGDEST_DBG": "where cuDNN logs",
    "CUBLAS_WORKSPACE_CONFIG": "size of cuBLAS's workspace, for results that repeat",
}


@rule(
    "CD513",
    title="Variables that change what CUDA and cuDNN do",
    severity="note",
    owner="environment",
    causes=("environment-restriction",),
    explain="""The driver and cuDNN read variables of their own. Most change speed or what is logged; some make every
call fail: with CUDA_FORCE_PTX_JIT=1 cuDNN 9 answers 5003 on an H200. Where a live call fails, those that can break it
are tried unset in a child process, and the one that was the cause is an error.""",
    source="https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html; "
    "https://docs.nvidia.com/deploy/mps/; CUDA_FORCE_PTX_JIT with cuDNN 9.19 on an H200, 2026-12-01",
    examples=lambda: (
        ("problem", sample({"host.environment.CUDA_FORCE_PTX_JIT": "1"})),
        ("ok", sample({"host.environment.CUDA_LAUNCH_BLOCKING": "1"})),
        ("ok", sample({"host.environment.CUDA_FORCE_PTX_JIT": "0"})),
        ("skipped", sample()),
    ),
)
def switches(case: Case) -> Iterator[Outcome]:
    environment = case.snapshot.host.environment
    harmless = [n for n in CHANGES if n in environment]
    for name, does in CAN_BREAK.items():
        if name not in environment:
            continue
        if environment[name].strip() in ("", "0"):
            harmless.append(name)
            continue
        guilty = any(t.works and t.change == unset(name) for t in case.trials)
        yield problem(
            name,
            f"{name}={environment[name]}: {does}",
            detail="Without it the live check works." if guilty else "",
            evidence=[variable(case, name)],
            fixes=[cure(f"Unset {name}, unless you need it.", unset(name), verify="cudnn-doctor check")],
            severity="error" if guilty else None,
        )
    if harmless:
        does = ", ".join(f"{n}={environment[n]}" for n in harmless)
        yield passed("environment", f"Harmless to the calls: {does}", evidence=[variable(case, n) for n in harmless])
    elif not any(n in environment for n in CAN_BREAK):
        yield skip("environment", "none of them is set")
