"""CD504 to CD507 and CD514: limits on what a process may use."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Absent, Known, known, value_or
from cudnn_doctor.rules.base import Case, Outcome, need, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.facts import cuda_works, gpu_present, not_linux, size
from cudnn_doctor.rules.remedies import again, cure, fix, limit_to
from cudnn_doctor.rules.sample import ABSENT, EX, sample, two_gpus

LIMITS = "/snapshot/host/limits"
MIB, GIB = 1 << 20, 1 << 30
TOO_FEW = 64  # open files: below that a CUDA program does not start
NO_LIMITS = "this system has no such limit"


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
            cure("Raise it in the shell or the job.", limit_to("stack", 8 * MIB), verify=again("CD504")),
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
        detail="CUDA does not start with so few." if limit < TOO_FEW else "",
        fixes=[cure("Raise the limit.", limit_to("open_files", 4096), verify=again("CD507"))],
        severity="error" if limit < TOO_FEW else None,
    )


@rule(
    "CD514",
    title="Limit on address space",
    severity="warning",
    owner="environment",
    causes=("environment-restriction",),
    explain="""The driver and cuDNN map more address space than they use. Under `ulimit -v`, which some job schedulers
set from the memory that a job asked for, cuInit ends with 2, out of memory, on an empty GPU: with 4 GiB on an H200,
while a convolution of cuDNN 9.19 ran there with 16 GiB.""",
    source="getrlimit(2), RLIMIT_AS; ulimit -v of 4, 16 and 64 GiB with driver 580.159.04 on an H200, 2026-12-01",
    examples=lambda: (
        ("skipped", sample()),
        ("ok", sample({"host.limits.address_space": known(-1, EX)})),
        ("ok", sample({"host.limits.address_space": known(64 * GIB, EX)})),
        ("problem", sample({"host.limits.address_space": known(8 * GIB, EX), "driver.init": ABSENT})),
    ),
)
def address_space(case: Case) -> Iterator[Outcome]:
    seen = see(case, lambda s: s.host.limits.address_space)
    if not_linux(case) or (isinstance(seen.fact, Absent) and seen.fact.reason == "not-examined"):
        yield skip("process", "it was not read")
        return
    limit = seen.need()
    text = "unlimited" if limit < 0 else size(limit)
    evidence = [seen.shown(text)]
    if limit < 0:
        yield passed("process", "No limit on address space", evidence=evidence)
    elif cuda_works(case) or not gpu_present(case):
        yield passed("process", f"Address space {text}, and nothing fails for it", evidence=evidence)
    else:
        failed = isinstance(case.snapshot.driver.init, Known)
        yield problem(
            "process",
            f"Address space is limited to {text}, and CUDA does not start",
            detail="cuInit then says that it is out of memory, on an empty GPU as well.",
            evidence=evidence,
            fixes=[
                cure("Lift the limit in the shell or the job.", limit_to("address_space"), verify=again("CD109")),
                fix("Under Slurm, do not hand on the limit of the login shell.", "srun --propagate=NONE COMMAND"),
            ],
            severity="error" if failed else None,
        )
