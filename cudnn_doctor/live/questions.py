"""Questions put to libraries in child processes: a version, whether the driver starts. None needs a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from cudnn_doctor.live.parent import Job, JobOutcome, Task, run_jobs
from cudnn_doctor.model.base import Absent, AbsentReason, Base, Fact, Known, known
from cudnn_doctor.model.facts import CudaInit
from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.native.cuda import LIBCUDA
from cudnn_doctor.native.cudnn import cuda_dotted, dotted


class Answer(Base, frozen=True, kw_only=True):
    """What one libcudnn said of itself."""

    version: Fact[str]  # "9.19.0": of the graph (9) or ops_infer (8) library that it found, not of the shim
    cudart: Fact[str]  # CUDA that it was built with
    asked: str  # "ok", or in words how it failed
    fate: Termination


def ask_versions(
    paths: Sequence[str], deadline: float, *, preload: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Answer]:
    """cudnnGetVersion and cudnnGetCudartVersion of each libcudnn in `paths`, a child a copy, all at once.

    `deadline` is in seconds. `preload` names, by path, libraries to load before (cuBLAS of a wheel).
    """
    more = preload or {}
    jobs = [
        _job("versions", {"path": path, "preload": list(more.get(path, ()))}, deadline) for path in dict.fromkeys(paths)
    ]
    return answers(run_jobs(jobs, deadline=deadline))


def version_jobs(paths: Iterable[str], deadline: float) -> list[Job]:
    """The children of `ask_versions`, for a caller that runs them beside others."""
    return [_job("versions", {"path": path, "preload": []}, deadline) for path in dict.fromkeys(paths)]


def answers(outcomes: Iterable[JobOutcome]) -> dict[str, Answer]:
    """What children of `version_jobs` said, by the path of the library."""
    return {str(o.job.tasks[0].args["path"]): _answer(o) for o in outcomes}


def ask_driver(path: str | None = None, deadline: float = 10.0) -> Fact[CudaInit]:
    """What `cuInit` answers: code, name and the CUDA that the driver serves. A crash or hang is Absent, in words.

    `path` is the libcuda to open; None takes the one that the loader finds.
    """
    job = msgspec.structs.replace(_job("driver", {"path": path or LIBCUDA}, deadline), trusted=True)
    (outcome,) = run_jobs([job], deadline=deadline)
    found = _init(outcome.tasks[0].steps)
    return found or Absent(reason=_reason(outcome), detail=in_words(outcome))


def init_of(results: Iterable[ScenarioResult]) -> Known[CudaInit] | None:
    """The same from live checks that were made anyway; None where none got as far."""
    return next((found for r in results if (found := _init(r.steps))), None)


def _init(made: Sequence[Step]) -> Known[CudaInit] | None:
    steps = {s.call: s for s in made}
    init = steps.get("cuInit")
    if init is None or init.status is None:
        return None
    version = steps["driver version"].value if "driver version" in steps else None
    library = steps["library"].value if "library" in steps else ""
    return known(
        CudaInit(
            code=init.status,
            name=init.name or cuda_error_name(init.status),
            driver_cuda=(
                known(cuda_dotted(version), "cuDriverGetVersion")
                if isinstance(version, int) and version > 0
                else Absent(reason="error", detail="cuDriverGetVersion gave no number")
            ),
            library=str(library),
        ),
        "cuInit in a child process",
    )


def cuda_error_name(code: int) -> str:
    """Name of a CUDA error that the driver itself could not name."""
    from cudnn_doctor.knowledge.status import cuda_error

    found = cuda_error(code)
    return found.name if found else f"CUDA error {code}"


def in_words(outcome: JobOutcome) -> str:
    """How a child ended, in one sentence."""
    fate = outcome.fate
    inside = f" in {fate.last_step}" if fate.last_step else ""
    printed = f": {fate.stderr.splitlines()[0]}" if fate.stderr else ""
    if fate.kind == "completed":
        return fate.error or "ok"
    if fate.kind == "signal":
        return f"killed by {fate.signal}{inside}{printed}"
    if fate.kind == "timeout":
        return f"no answer before the deadline{inside}{printed}"
    if fate.kind == "exit":
        return f"ended with exit code {fate.exit_code}{inside}{'; ' + fate.error if fate.error else ''}{printed}"
    return f"not started: {fate.error}"


def _reason(outcome: JobOutcome) -> AbsentReason:
    if outcome.fate.kind == "timeout":
        return "timeout"
    return "not-found" if outcome.tasks[0].error.startswith("dlopen: OSError") else "error"


def _job(body: str, args: dict[str, Any], deadline: float) -> Job:
    return Job(tasks=(Task(id=body, body=f"cudnn_doctor.live.question_tasks:{body}", args=args),), deadline=deadline)


def _answer(outcome: JobOutcome) -> Answer:
    words = in_words(outcome)
    values = {s.call: s.value for s in outcome.tasks[0].steps}

    def number(call: str, show: Any) -> Fact[str]:
        value = values.get(call)
        if isinstance(value, int) and value > 0:
            return known(show(value), f"{call} in a child process")
        return Absent(reason=_reason(outcome), detail=words)

    return Answer(
        version=number("cudnnGetVersion", dotted),
        cudart=number("cudnnGetCudartVersion", cuda_dotted),
        asked=words,
        fate=outcome.fate,
    )
