"""CD605 to CD610: what the native calls of the live check answered, and what the libraries did beside it."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.knowledge.cudnn_log import log_variables
from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.live import Step, Termination
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, skip
from cudnn_doctor.rules.facts import gpus, numbers, plural, size, variable
from cudnn_doctor.rules.live_result import (
    FOLLOWS,
    LiveOutcome,
    cause_fixes,
    live_outcomes,
    loaded_by_someone,
    other_copies,
)
from cudnn_doctor.rules.remedies import again, cure, fix, unset
from cudnn_doctor.rules.sample import live, live_steps, sample

LOGGING = ("CUDNN_LOGLEVEL_DBG", "CUDNN_LOGINFO_DBG", "CUDNN_LOGWARN_DBG", "CUDNN_LOGERR_DBG")
LOG_LINE = ("I! CuDNN", "i! ", "I!", "W!", "E!")  # beginnings of lines of cuDNN 8's and 9's log
STATUS_DOC = "cudnn_graph.h of 9.27 and cudnn_ops_infer.h of 8.9; cuda.h of CUDA 12.9; states measured on an H200"


def _meaning(found: LiveOutcome, step: Step) -> tuple[str, tuple[str, ...]]:
    """What the status means and which causes it can have, by the library that gave it."""
    from cudnn_doctor.knowledge.status import cuda_error, cudnn_status

    code = step.status or 0
    major = _major(found)
    known = cudnn_status(major, code) if step.call.startswith("cudnn") else cuda_error(code)
    return (known.meaning, known.causes) if known else ("", ())


def _major(found: LiveOutcome) -> int:
    return next(iter(numbers(found.result.cudnn_version)), 9)


def _shown(step: Step) -> str:
    return f"{step.status} {step.name}".strip()


def _good(case: Case, title: str) -> Iterator[Outcome]:
    """The outcome of every live check that went well."""
    for found in live_outcomes(case):
        if found.kind == "good":
            evidence = [Evidence(pointer=f"{found.pointer}/fate/kind", value="completed", source="live check")]
            yield passed(found.subject, title, evidence=evidence)


def _refused(case: Case, found: LiveOutcome, step: Step, code: str) -> Outcome:
    meaning, causes = _meaning(found, step)
    said = f" cuDNN says: {step.detail}." if step.detail else ""
    evidence = [Evidence(pointer=f"{found.place}/status", value=_shown(step), source=f"{step.call} in the live check")]
    free = [(p, g.memory_free) for p, _, g in gpus(case) if g.index == found.result.device]
    if any(c.startswith("vram") for c in causes) and free and isinstance(free[0][1], Known):
        text = f"{size(free[0][1].value)} free"
        evidence.append(Evidence(pointer=f"{free[0][0]}/memory_free", value=text, source=free[0][1].source))
    command = f"{log_variables(_major(found))} cudnn-doctor check --only CD6 --format json"
    return problem(
        found.subject,
        f"{step.call} answers {_shown(step)}",
        detail=f"{meaning}{said}".strip(),
        evidence=evidence,
        fixes=[
            *cause_fixes(causes, again(code)),
            *(other_copies(case, found) if step.call.startswith("cudnn") else ()),
            fix("See what the library itself logs: stderr of the live check.", command, verify=again(code)),
        ],
        causes=causes,
        severity=None if loaded_by_someone(case, found) else "note",
    )


@rule(
    "CD605",
    title="cudnnCreate",
    severity="error",
    owner="environment",
    causes=("vram-other-process", "driver-too-old", "cudnn-sublibs-mixed"),
    explain="""Every framework makes a handle first. NOT_INITIALIZED (1 or 1001) has many reasons: a driver that does
not start, no memory, a foreign engine library of cuDNN 9.1. INTERNAL_ERROR (4 or 4000) is mostly a full card. Numbers
mean something else in cuDNN 9 than before: they are named by the major that answered.""",
    source=STATUS_DOC,
    examples=lambda: (
        ("ok", live()),
        ("problem", live(steps=live_steps(fails="cudnnCreate", status=1001, name="CUDNN_STATUS_NOT_INITIALIZED"))),
        ("problem", live(steps=live_steps(fails="cudnnCreate", status=4000, name="CUDNN_STATUS_INTERNAL_ERROR"))),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def create(case: Case) -> Iterator[Outcome]:
    yield from _good(case, "cudnnCreate gives a handle")
    for found in live_outcomes(case):
        if found.kind == "create" and found.step:
            yield _refused(case, found, found.step, "CD605")


@rule(
    "CD606",
    title="Statuses of the other calls",
    severity="error",
    owner="environment",
    causes=("prior-cuda-fault", "gpu-too-new-for-build", "vram-other-process"),
    explain="""The first call of the live check that does not succeed is named with its status by (cuDNN major, code),
or by CUDA's own table. In a fresh process nothing can have poisoned the context before, so that a status such as 7 or
2007 here points at the driver, the libraries or the hardware, not at the program that failed.""",
    source=STATUS_DOC,
    examples=lambda: (
        ("ok", live()),
        (
            "problem",
            live(
                steps=live_steps(fails="cudnnSetStream", status=7, name="CUDNN_STATUS_MAPPING_ERROR"),
                cudnn_version="8.9.7",
            ),
        ),
        ("problem", live(steps=live_steps(fails="cuStreamCreate", status=2, name="CUDA_ERROR_OUT_OF_MEMORY"))),
        ("skipped", live(steps=live_steps(fails="cuInit", status=803, name="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"))),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def calls(case: Case) -> Iterator[Outcome]:
    yield from _good(case, "Every call succeeds")
    for found in live_outcomes(case):
        if found.kind == "call" and found.step:
            if found.step.call == "cuInit":
                yield skip(found.subject, "cuInit fails: CD109")
            else:
                yield _refused(case, found, found.step, "CD606")


@rule(
    "CD607",
    title="Stream that cudnnGetStream gives back",
    severity="error",
    owner="environment",
    causes=("library-bug", "cudnn-sublibs-mixed"),
    explain="""cudnnSetStream succeeded, but cudnnGetStream gave another stream. Kernels then run where nobody
synchronises: results race without any error.""",
    source="cudnnSetStream and cudnnGetStream in the cuDNN API reference",
    examples=lambda: (
        ("ok", live()),
        ("problem", live(steps=with_note("stream kept", False))),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def stream(case: Case) -> Iterator[Outcome]:
    yield from _good(case, "cudnnGetStream gives back the stream that was set")
    for found in live_outcomes(case):
        if found.kind == "stream":
            yield problem(
                found.subject,
                "cudnnGetStream gives back another stream than cudnnSetStream was given",
                evidence=[Evidence(pointer=f"{found.place}/value", value="another stream", source="live check")],
                fixes=[
                    fix(
                        "Use another cuDNN release; look for a wrapper around cuDNN (LD_PRELOAD, a stub).",
                        "cudnn-doctor check --all-cudnn",
                        verify=again("CD607"),
                    )
                ],
            )


def with_note(name: str, value: object, detail: str = "") -> tuple[Step, ...]:
    return tuple(Step(call=name, value=value, detail=detail) if s.call == name else s for s in live_steps())


@rule(
    "CD608",
    title="Result of the convolution",
    severity="error",
    owner="node",
    causes=("hardware-or-power", "library-bug"),
    explain="""Every call succeeded and the numbers are wrong. The inputs are small integers, exact in every precision
that cuDNN may choose, so that rounding cannot explain it. Unstable clocks or failing memory can; a mixed or faulty
library can.""",
    source="scenarios/live_check.py",
    examples=lambda: (
        ("ok", live()),
        ("problem", live(steps=with_note("wrong values", 3, "y[17] is 0.0, not 72"))),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def result(case: Case) -> Iterator[Outcome]:
    yield from _good(case, "The convolution's result is right")
    for found in live_outcomes(case):
        if found.kind == "wrong" and found.step:
            yield problem(
                found.subject,
                f"The convolution is wrong in {found.step.value} of its values",
                detail=found.step.detail,
                evidence=[
                    Evidence(pointer=f"{found.place}/value", value=str(found.step.value), source="live check"),
                ],
                fixes=[
                    fix(
                        "Take overclocking back; look at ECC, Xid lines and temperature.",
                        "cudnn-doctor check --only gpu",
                        verify=again("CD608"),
                    ),
                    fix("Try another cuDNN.", "cudnn-doctor check --all-cudnn", verify=again("CD608")),
                ],
            )


@rule(
    "CD609",
    title="cuda.bindings of cudnn-doctor",
    severity="warning",
    owner="program",
    causes=("driver-too-old",),
    explain="""The live check calls the driver through cuda.bindings (the package cuda-bindings). Bindings that are
newer than the driver may look for functions that it lacks; then the live check cannot go on. This is a fault of
cudnn-doctor's own environment: cuInit and cudnnCreate were asked without the bindings.""",
    source="cuda.bindings 12.8 to 13.4 with a libcuda that lacks cuGetProcAddress_v2",
    examples=lambda: (
        ("ok", live()),
        (
            "problem",
            live(
                fate=Termination(
                    kind="completed", error="cuDeviceGet: RuntimeError: Failed to get cuGetProcAddress_v2"
                ),
                steps=live_steps()[:2],
            ),
        ),
        (
            "problem",
            live(
                steps=(
                    *live_steps()[:2],
                    Step(call="cuda.bindings", detail="ImportError: libcuda.so.1: undefined symbol"),
                )
            ),
        ),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def bindings(case: Case) -> Iterator[Outcome]:
    yield from _good(case, "cuda.bindings fits this driver")
    for found in live_outcomes(case):
        if found.kind != "bindings":
            continue
        error = found.step.detail if found.step else found.result.fate.error
        served = value_or(case.snapshot.driver.cuda, "")
        pin = (
            f"cuda-bindings=={served.partition('.')[0]}.*"
            if served.partition(".")[0] in ("12", "13")
            else "cuda-bindings==12.8.*"
        )
        yield problem(
            found.subject,
            f"cuda.bindings cannot be used with this driver: {error}",
            detail="The live check stopped there. What frameworks would meet is not known from it.",
            evidence=[
                Evidence(
                    pointer=f"{found.place}/detail" if found.place else f"{found.pointer}/fate/error",
                    value=error,
                    source="live check",
                )
            ],
            fixes=[
                fix(
                    "Install cudnn-doctor in an environment of its own, with bindings of the driver's CUDA major (in a "
                    "clone of its repository).",
                    f"python3 -m venv .venv && .venv/bin/pip install . '{pin}'",
                    verify=again("CD609"),
                )
            ],
        )


@rule(
    "CD610",
    title="What the libraries printed",
    severity="note",
    owner="environment",
    causes=("harmless-noise",),
    explain="""The live check went well, and a library printed something all the same. Mostly it is harmless; a
warning that cuDNN falls back to engines compiled at run time is not, because the precompiled ones are missing.""",
    source="output of the child process, capped",
    examples=lambda: (
        ("ok", live()),
        ("problem", live(fate=Termination(kind="completed", stderr="WARNING: something of the driver"))),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def noise(case: Case) -> Iterator[Outcome]:
    for found in live_outcomes(case):
        printed = found.result.fate.stderr
        if found.kind != "good":
            continue
        pointer = f"{found.pointer}/fate/stderr"
        if not printed:
            evidence = [Evidence(pointer=pointer, value="nothing", source="output of the child")]
            yield passed(found.subject, "The libraries printed nothing", evidence=evidence)
            continue
        yield _printed(case, found, pointer, printed.splitlines())


def _printed(case: Case, found: LiveOutcome, pointer: str, lines: list[str]) -> Outcome:
    """One line, whatever the length: what cuDNN logs because it was told to is no finding of its own."""
    own = [n for n in LOGGING if case.snapshot.host.environment.get(n, "0") not in ("", "0")]
    logged = own and any(line.startswith(LOG_LINE) for line in lines)
    title = f"cuDNN logs {plural(len(lines), 'line')}, as {own[0]} tells it to" if logged else None
    return problem(
        found.subject,
        title or f"A library printed: {lines[0]}",
        evidence=[
            Evidence(pointer=pointer, value=lines[0][:200], source="first line of the output of the child"),
            *(variable(case, n) for n in own if logged),
        ],
        fixes=[
            cure("Switch the log off, unless you want it.", unset(own[0]), verify=again("CD610"))
            if logged
            else fix("Nothing to do where programs work; explain tells known lines.", "cudnn-doctor explain LOG")
        ],
    )
