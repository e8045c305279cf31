"""CD601 to CD604: did the live check run, and did its child live through it."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.live import Termination
from cudnn_doctor.model.report import Evidence, Fix
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, skip, unknown
from cudnn_doctor.rules.facts import gpu_present
from cudnn_doctor.rules.live_result import FOLLOWS, live_outcomes, loaded_by_someone, other_copies
from cudnn_doctor.rules.remedies import again, cure, fix, provide, reinstall, without_folders
from cudnn_doctor.rules.sample import live, sample

FATE = "how the child process ended"
CHILD = "live/parent.py: the call that had begun is written before it is made"


LIVE_CHECK = "CD601"


@rule(
    LIVE_CHECK,
    title="Live check",
    severity="error",
    owner="environment",
    causes=("insufficient-info",),
    explain="""A child process for each GPU opens the cuDNN that would win, makes context, stream and handle, sets and
gets the stream, runs a small convolution on it and compares the result with numbers computed on the CPU. Only this
shows that driver, cuDNN and its sub-libraries work together. Where it was not run there is no verdict, unless it was
left out on purpose (--no-live).""",
    source="scenarios/live_check.py",
    examples=lambda: (
        ("ok", live()),
        ("skipped", sample(live=())),
        ("unknown", live(fate=Termination(kind="not-started", error="no time left before the deadline"))),
        ("unknown", live(fate=Termination(kind="completed", error="KeyError: 'x'"))),
        ("problem", sample(live=(), required=("gpu",))),
    ),
    required=True,
)
def ran(case: Case) -> Iterator[Outcome]:
    outcomes = list(live_outcomes(case))
    tried = [o for o in outcomes if o.kind == "good" or loaded_by_someone(case, o)]
    for found in tried or outcomes:  # a broken copy that nobody loads takes no verdict away from the others
        fate, pointer = found.result.fate, found.pointer
        if found.kind == "good":
            yield passed(
                found.subject,
                f"Handle, stream and a convolution work ({found.result.ms:.0f} ms)",
                evidence=[Evidence(pointer=f"{found.place}/value", value="0 wrong values", source="live check")],
            )
        elif found.kind == "not-run":
            why = found.result.skipped or fate.error or "it was not started"
            evidence = [Evidence(pointer=f"{pointer}/fate", value=why, source=FATE)]
            yield unknown(found.subject, "The live check did not run", detail=why, evidence=evidence)
        elif found.kind == "unclear":
            why = fate.error or "it ended before its last step"
            evidence = [Evidence(pointer=f"{pointer}/fate/error", value=why, source=FATE)]
            yield unknown(found.subject, "The live check did not finish", detail=why, evidence=evidence)
        else:
            yield skip(found.subject, "it failed: see the finding below")
    if outcomes:
        return
    if not gpu_present(case):
        yield skip("", "no NVIDIA GPU on this machine")
    elif not case.snapshot.cudnn:
        yield skip("", "no cuDNN to try")
    elif "gpu" in case.required:
        yield problem(
            "machine",
            "No GPU could be tried",
            detail="--require gpu demands one, and the live check found none that it may use.",
            evidence=[Evidence(pointer="/scenarios", value="none", source="live check")],
            fixes=[fix("See what the driver and GPU findings say.", "cudnn-doctor check", verify=again("CD601"))],
        )
    else:
        yield skip("", "the live check was not run")


@rule(
    "CD602",
    title="Crash inside a library",
    severity="error",
    owner="environment",
    causes=("cudnn-sublibs-mixed", "driver-stack-bug", "library-bug"),
    explain="""The child was ended by a signal while a native call ran, and no message says that a library is missing.
Every program that makes this call here dies the same way. Mixed sub-libraries and a libcuda of another release are
the usual reasons; a defect of the library is the rare one.""",
    source=CHILD,
    examples=lambda: (
        ("ok", live()),
        ("problem", live(fate=Termination(kind="signal", signal="SIGSEGV", last_step="cudnnCreate"), steps=())),
        ("problem", live(fate=Termination(kind="exit", exit_code=1, last_step="cudnnCreate"), steps=())),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def crashed(case: Case) -> Iterator[Outcome]:
    for found in live_outcomes(case):
        fate, pointer = found.result.fate, found.pointer
        if found.kind == "good":
            evidence = [Evidence(pointer=f"{pointer}/fate/kind", value=fate.kind, source=FATE)]
            yield passed(found.subject, "No library crashed", evidence=evidence)
        elif found.kind == "crash":
            where = f"in {fate.last_step}" if fate.last_step else "between two calls"
            how = f"by {fate.signal}" if fate.kind == "signal" else f"with exit code {fate.exit_code}"
            printed = fate.stderr.splitlines()
            yield problem(
                found.subject,
                f"The process was ended {how} {where}",
                detail=f"It printed: {printed[0]}" if printed else "It printed nothing.",
                evidence=[
                    Evidence(pointer=f"{pointer}/fate", value=f"{how} {where}", source=FATE),
                    Evidence(pointer=f"{pointer}/cudnn", value=found.result.cudnn, source="opened by the live check"),
                ],
                fixes=[
                    fix(
                        "See whether its files are of one release and whole; install it again if not.",
                        "cudnn-doctor check --only cudnn",
                        verify=again("CD6"),
                    ),
                    *other_copies(case, found),
                ],
                severity=None if loaded_by_someone(case, found) else "note",
            )


@rule(
    "CD603",
    title="Libraries that cuDNN opens in the live check",
    severity="error",
    owner="environment",
    causes=("helper-library-missing",),
    explain="""cuDNN opens its sub-libraries, cuBLAS and NVRTC while it works. When one is missing or of another
release it prints one line and, in 8.x and early 9.x, aborts the process. The file named first in that line is the
victim; the one after "Error:" is missing.""",
    source="lines of 8.5, 8.9, 9.1 and 9.27 measured with their wheels; 8.9.7 without cuBLAS 12 on an H200",
    examples=lambda: (
        ("ok", live()),
        (
            "problem",
            live(
                fate=Termination(
                    kind="signal",
                    signal="SIGABRT",
                    last_step="cudnnCreate",
                    stderr="Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: cannot open shared "
                    "object file: No such file or directory",
                ),
                steps=(),
            ),
        ),
        (
            "problem",
            live(
                fate=Termination(
                    kind="signal",
                    signal="SIGABRT",
                    last_step="cudnnCreateTensorDescriptor",
                    stderr="Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, "
                    "libcudnn_ops.so}\nInvalid handle. Cannot load symbol cudnnCreateTensorDescriptor",
                ),
                steps=(),
            ),
        ),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def libraries(case: Case) -> Iterator[Outcome]:
    for found in live_outcomes(case):
        fate, pointer = found.result.fate, found.pointer
        if found.kind == "good":
            evidence = [Evidence(pointer=f"{pointer}/fate/kind", value=fate.kind, source=FATE)]
            yield passed(found.subject, "Everything that it opens is there", evidence=evidence)
        elif found.kind == "library":
            message = found.message
            missing = message.missing if message else ""
            line = message.line if message else (found.step.detail if found.step else "")
            own = missing.startswith("libcudnn_")
            misfit = message.misfit if message else ""
            title = (
                f"{misfit} does not fit cuDNN's other libraries: it is of another release"
                if misfit
                else f"{missing} is missing or of another release"
                if own
                else f"{missing} is missing"
                if missing
                else "cuDNN's libraries do not fit together"
            )
            ended = f" The process was ended by {fate.signal} in {fate.last_step}." if fate.signal else ""
            yield problem(
                found.subject,
                title,
                detail=f"{line}.{ended}",
                evidence=[
                    Evidence(
                        pointer=f"{found.place}/detail" if found.place else f"{pointer}/fate/stderr",
                        value=line,
                        source="printed by the library",
                    ),
                    Evidence(pointer=f"{pointer}/cudnn", value=found.result.cudnn, source="opened by the live check"),
                ],
                fixes=provide(case, missing, found.result.cudnn, "CD603")
                or _of_one_release(case, misfit or found.result.cudnn),
                causes=("cudnn-sublibs-mixed",) if own or not missing else None,
                severity=None if loaded_by_someone(case, found) else "note",
            )


def _of_one_release(case: Case, file: str) -> tuple[Fix, ...]:
    """What makes cuDNN's own files fit each other: no copy on LD_LIBRARY_PATH, else this one installed anew."""
    folder = file.rpartition("/")[0]
    if leave := without_folders(case, *(c.directory for c in case.snapshot.cudnn), folder):
        text = "Take the folders of cuDNN out of LD_LIBRARY_PATH, so that each copy finds its own files."
        return (cure(text, leave, verify=again("CD603")),)
    for copy in case.snapshot.cudnn:
        if file in (copy.path, copy.real_path):
            return reinstall(case, copy, "CD603")[:1]
    return (fix(f"Install what is in {folder} again as a whole, from one release.", verify=again("CD603")),)


@rule(
    "CD604",
    title="Hang in the live check",
    severity="error",
    owner="node",
    causes=("driver-stack-bug", "hardware-or-power"),
    explain="""A native call did not return before the deadline and the child was killed. A GPU that waits for a
reset, a driver that hangs, a first start without persistence mode on a machine with many GPUs, or a file system that
needs long to deliver half a gigabyte of libraries look like this.""",
    source=CHILD,
    examples=lambda: (
        ("ok", live()),
        ("problem", live(fate=Termination(kind="timeout", last_step="cuDevicePrimaryCtxRetain"), steps=(), ms=20000.0)),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def hung(case: Case) -> Iterator[Outcome]:
    for found in live_outcomes(case):
        fate, pointer = found.result.fate, found.pointer
        if found.kind == "good":
            evidence = [Evidence(pointer=f"{pointer}/ms", value=f"{found.result.ms:.0f} ms", source="live check")]
            yield passed(found.subject, "Every call returned", evidence=evidence)
        elif found.kind == "hang":
            where = fate.last_step or "the start of the child"
            slow = value_or(case.snapshot.driver.kernel_module, "")
            yield problem(
                found.subject,
                f"{where} did not return in {found.result.ms / 1000:.0f} s",
                detail=f"The child was killed. Driver {slow}." if slow else "The child was killed.",
                evidence=[Evidence(pointer=f"{pointer}/fate/last_step", value=where, source=FATE)],
                fixes=[
                    fix("Give it more time, to tell slow from stuck.", "cudnn-doctor check --timeout 120"),
                    fix("Look for what the driver says.", "sudo dmesg | grep -E 'NVRM|Xid'", verify=again("CD604")),
                ],
            )
