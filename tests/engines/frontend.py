"""Cross-check with nvidia-cudnn-frontend, NVIDIA's own user of the backend API: in tests alone, never at run time.

`python -m tests.engines.frontend LIBCUDNN OUT.json.gz`, on a machine with a GPU, puts every problem to both sides in
the same children and records side by side what each says of it: engines, configurations that the heuristics propose,
notes, workspaces, and the streams in which a plan's kernels land when it is executed with another handle.

Facts of frontend 1.18.0, from the headers in its wheel: a configuration's name is "eng17_k2=1" (get_engine_tag). A
plan keeps no handle, its operation graph does (ExecutionPlanBuilder_v8::build). Numerical notes are told in its log
alone: the list that its filters go by begins with as many TENSOR_CORE as there are notes (query_properties resizes it,
then appends). An attention without statistics has them as virtual tensors (SoftmaxNode), so that the composite without
them is put together from single operations here.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from cudnn_doctor.engines.child_task import Work
from cudnn_doctor.engines.collect import how_it_died
from cudnn_doctor.engines.keys import plan_key
from cudnn_doctor.engines.problems import Problem, problems
from cudnn_doctor.engines.run import nvrtc_beside
from cudnn_doctor.engines.verdicts import capture_alarm
from cudnn_doctor.live.one_device import only
from cudnn_doctor.live.parent import Job, JobOutcome, Task, run_jobs
from cudnn_doctor.model.base import Base
from cudnn_doctor.model.engines import CaptureSeen

CHILD = "tests.engines.frontend_child"
LOG = "CUDNN_FRONTEND_LOG_FILE"
WIDTH, DEADLINE = 6, 120.0  # children at a time, seconds for all
NAME = re.compile(r"eng(\d+)((?:_k\d+=-?\d+)*)")


class Proposal(Base, frozen=True, kw_only=True, omit_defaults=True):
    """A configuration that a heuristic proposes, as its side calls it."""

    name: str
    behaviour: tuple[str, ...] = ()


class Built(Base, frozen=True, kw_only=True, omit_defaults=True):
    """A plan: what it says of itself, and where its kernels went. `given` is an execution with handle B, `control` one
    with handle A, whose graph it was built from."""

    name: str
    numerical: tuple[str, ...] | None = None
    behaviour: tuple[str, ...] | None = None
    workspace: int | None = None  # bytes
    given: CaptureSeen | None = None
    control: CaptureSeen | None = None
    output: str = ""  # of a run with handle B; empty where a second one gave other bits
    failure: str = ""


class Said(Base, frozen=True, kw_only=True, omit_defaults=True):
    """What one side says of a problem."""

    engines: int = 0
    proposed: dict[str, tuple[Proposal, ...]] = msgspec.field(default_factory=dict)  # by heuristic, best first
    refused: dict[str, str] = msgspec.field(default_factory=dict)  # heuristic: why it proposes nothing
    built: tuple[Built, ...] = ()


class Pair(Base, frozen=True, kw_only=True, omit_defaults=True):
    """Both sides of a problem."""

    problem: Problem
    ours: Said = Said()
    theirs: Said = Said()
    errors: tuple[str, ...] = ()  # tracebacks, and how a child ended that did not come to its end


class Crosscheck(Base, frozen=True, kw_only=True):
    """The recording."""

    frontend: str  # version of nvidia-cudnn-frontend
    cudnn: str
    device: str
    ms: float
    pairs: tuple[Pair, ...]


# ---------------------------------------------------------------- comparison


def key_of(name: str) -> str:
    """Our key of what the frontend calls "eng17_k2=1_k5=0".

    Raises:
        ValueError: it is no name of a configuration ("INVALID_ENGINE_NAME_CFG").
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no name of an engine's configuration")
    knobs = [knob.split("=") for knob in match[2].split("_k")[1:]]
    return plan_key(int(match[1]), [(int(k), int(v)) for k, v in knobs])


def disagreements(pair: Pair) -> list[str]:
    """In what the two sides differ, or could not be compared; empty where they agree."""
    ours, theirs = pair.ours, pair.theirs
    found = [error.strip().splitlines()[-1] for error in pair.errors]
    if ours.engines != theirs.engines:
        found.append(f"engines: {ours.engines}, theirs {theirs.engines}")
    for mode in sorted({*ours.proposed, *theirs.proposed}):
        left = [(p.name, sorted(p.behaviour)) for p in ours.proposed.get(mode, ())]
        right = [(key_of(p.name), sorted(p.behaviour)) for p in theirs.proposed.get(mode, ())]
        if left != right:
            at = next(
                (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
            )
            found.append(
                f"{mode}: {len(left)} and {len(right)}, first at {at}: {left[at:][:1]}, theirs {right[at:][:1]}"
            )
    left_plans, right_plans = {b.name: b for b in ours.built}, {key_of(b.name): b for b in theirs.built}
    if list(left_plans) != list(right_plans):
        found.append(f"plans: {list(left_plans)}, theirs {list(right_plans)}")
    for key in left_plans.keys() & right_plans.keys():
        found += [f"{key}: {what}" for what in _plan(left_plans[key], right_plans[key])]
    return found


def _plan(ours: Built, theirs: Built) -> list[str]:
    if ours.failure or theirs.failure:
        agree = bool(ours.failure) == bool(theirs.failure)
        return [] if agree else [f"failure {ours.failure!r}, theirs {theirs.failure!r}"]
    found = [
        f"{field}: {left}, theirs {right}"
        for field, left, right in (
            ("numerical notes", _sorted(ours.numerical), _sorted(theirs.numerical)),
            ("behaviour notes", _sorted(ours.behaviour), _sorted(theirs.behaviour)),
            ("workspace", ours.workspace, theirs.workspace),
            ("nodes with handle B", _where(ours.given), _where(theirs.given)),
            ("nodes with handle A", _where(ours.control), _where(theirs.control)),
        )
        if left is None or left != right
    ]
    if ours.output and theirs.output and ours.output != theirs.output:
        found.append(f"output: {ours.output}, theirs {theirs.output}")
    return found


def _sorted(notes: tuple[str, ...] | None) -> list[str] | None:
    return None if notes is None else sorted(notes)


def _where(seen: CaptureSeen | None) -> tuple[int, int, int, int, bool] | None:
    return None if seen is None else (seen.given, seen.plan, seen.other, seen.kernels, bool(seen.error))


def strays(pair: Pair) -> list[str]:
    """Frontend plans whose kernels are not all in the stream of the handle that they were executed with, or whose
    control (executed with the handle of the graph) does not show."""
    found = []
    for built in pair.theirs.built:
        if built.given and built.control and not (built.given.error or built.control.error):
            why = capture_alarm(built.given) or ("" if capture_alarm(built.control) else "the control shows nothing")
            found += [f"{built.name}: {why}"] if why else []
    return found


# ---------------------------------------------------------------- children


def crosscheck(cudnn: str, chosen: Sequence[Problem], *, preload: Sequence[str] = ()) -> Crosscheck:
    """Both sides of all problems. A child for each operation, data type and layout compares; a second one, with the
    frontend's log switched on, reads the notes there: while it logs, an execution asks libcudart about every pointer,
    and it refuses to choose where there are two of them."""
    start = time.monotonic()
    first = [*preload, *_cudart_beside(cudnn), *nvrtc_beside(cudnn)]
    groups: dict[str, list[Problem]] = {}
    for problem in chosen:
        groups.setdefault(problem.group, []).append(problem)
    # Nothing is held here, and a context with one hardware queue is made in a quarter of the time.
    env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "CUDA_VISIBLE_DEVICES": only(0, os.environ)}
    with TemporaryDirectory(prefix="cudnn-frontend-") as folder:
        jobs = []
        for name, group in groups.items():
            log = {"CUDNN_FRONTEND_LOG_INFO": "1", LOG: f"{folder}/{name.replace('/', '-')}"}
            for body, more in (("compare", {"CUDNN_FRONTEND_LOG_INFO": "0"}), ("notes", log)):
                tasks = tuple(_task(p, cudnn, first, body) for p in group)
                jobs.append(Job(tasks=tasks, set_env={**env, **more}, deadline=DEADLINE))
        outcomes = run_jobs(jobs, deadline=DEADLINE, width=min(WIDTH, os.cpu_count() or 2))
    facts: dict[str, str] = {}
    told = {p.id: _Told(p) for p in chosen}
    for outcome in outcomes:
        _take(outcome, told, facts)
    return Crosscheck(
        frontend=facts.get("frontend", ""),
        cudnn=facts.get("version", ""),
        device=facts.get("device", ""),
        ms=round((time.monotonic() - start) * 1000, 1),
        pairs=tuple(t.pair() for t in told.values()),
    )


def _cudart_beside(cudnn: str) -> list[str]:
    """libcudart of the wheels beside a wheel's libcudnn: the frontend asks it for the device of an attention."""
    wheels = Path(cudnn).resolve().parent.parent.parent
    folders = ("cu[0-9]*/lib", "cuda_runtime/lib") if wheels.name == "nvidia" else ()
    return [str(p) for folder in folders for p in sorted(wheels.glob(f"{folder}/libcudart.so.*"))]


def _task(problem: Problem, cudnn: str, preload: list[str], body: str) -> Task:
    work = Work(problem=problem, cudnn=cudnn, preload=tuple(preload))
    return Task(id=problem.id, body=f"{CHILD}:{body}", args=msgspec.to_builtins(work))


class _Told:
    """What the children told of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.said = {"ours": Said(), "theirs": Said()}
        self.built: dict[str, list[Built]] = {"ours": [], "theirs": []}
        self.logged: dict[str, Built] = {}
        self.errors: list[str] = []

    def pair(self) -> Pair:
        theirs = []
        for built in self.built["theirs"]:
            log = self.logged.get(built.name)
            if log is not None:
                built = msgspec.structs.replace(built, numerical=log.numerical, behaviour=log.behaviour)  # noqa: PLW2901
            theirs.append(built)
        return Pair(
            problem=self.problem,
            ours=msgspec.structs.replace(self.said["ours"], built=tuple(self.built["ours"])),
            theirs=msgspec.structs.replace(self.said["theirs"], built=tuple(theirs)),
            errors=tuple(self.errors),
        )


def _take(outcome: JobOutcome, told: dict[str, _Told], facts: dict[str, str]) -> None:
    for task in outcome.tasks:
        of = told[task.id]
        for step in task.steps:
            if step.call in ("frontend", "version", "device"):
                facts[step.call] = step.value
            elif step.call == "said":
                of.said[step.detail] = msgspec.convert(step.value, Said)
            elif step.call == "built":
                of.built[step.detail].append(msgspec.convert(step.value, Built))
            elif step.call == "logged":
                of.logged[step.value["name"]] = msgspec.convert(step.value, Built)
            elif step.call == "traceback":
                of.errors.append(step.value)
            elif step.status:
                of.errors.append(f"{step.call}: {step.status} {step.name} {step.detail}")
        if task.error:
            of.errors.append(task.error)
        elif not task.ended:
            of.errors.append(f"{outcome.fate.last_step}: {how_it_died(task, outcome.fate)}")


def main(arguments: Sequence[str]) -> int:
    """Records, prints all that differs (each text once, with the problems that it is true of), then the numbers. Gives
    how many problems differ."""
    cudnn, out = arguments
    seen = crosscheck(cudnn, problems())
    Path(out).write_bytes(gzip.compress(msgspec.json.encode(seen), 9, mtime=0))
    texts: dict[str, list[str]] = {}
    for pair in seen.pairs:
        for text in (*pair.errors, *disagreements(pair), *strays(pair)):
            texts.setdefault(text, []).append(pair.problem.id)
    for text, where in texts.items():
        print(f"{len(where)} of {len(seen.pairs)}, {', '.join(where[:3])}: {text}")  # noqa: T201
    print(summary(seen))  # noqa: T201
    return len({problem for where in texts.values() for problem in where})


def summary(seen: Crosscheck) -> str:
    """The numbers of a recording."""
    modes = [listed for pair in seen.pairs for listed in pair.theirs.proposed.values()]
    built = [b for pair in seen.pairs for b in pair.theirs.built]
    differ = sum(1 for pair in seen.pairs if disagreements(pair) or strays(pair))
    captured = sum(1 for b in built if b.given and not b.given.error)
    return (
        f"frontend {seen.frontend}, cuDNN {seen.cudnn}, {seen.device}: {differ} of {len(seen.pairs)} problems differ; "
        f"{sum(len(m) for m in modes)} configurations proposed, {len(built)} built, {captured} captured, "
        f"{sum(1 for b in built if b.failure)} failed on both sides or one"
    )


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
