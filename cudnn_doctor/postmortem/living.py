"""What is wrong with a process that lives: pure judgement of what `inspect` read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.inspection import InspectedProcess, Inspection, MappedLibrary
from cudnn_doctor.model.report import Evidence, Finding, Fix, Severity, Verdict


def judge_processes(processes: Sequence[InspectedProcess], notes: Sequence[str] = ()) -> Inspection:
    """The findings of all processes, verdict and exit code: 0 nothing wrong, 1 a problem, 2 nothing could be read."""
    findings = tuple(f for p in processes for f in _judge(p))
    errors = [f for f in findings if f.status == "problem" and f.severity == "error"]
    unread = [p for p in processes if isinstance(p.libraries, Absent)]
    verdict: Verdict
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        verdict, reason = "problem", f"{errors[0].subject}: {errors[0].title}{more}"
    elif not processes:
        verdict, reason = "no-verdict", notes[0] if notes else "no process was looked at"
    elif unread:
        verdict, reason = (
            "no-verdict",
            f"process {unread[0].pid}: {value_or(unread[0].libraries, ()) or _why(unread[0])}",
        )
    else:
        verdict, reason = "ok", "looked at, nothing wrong"
    code = {"ok": 0, "problem": 1, "no-verdict": 2}[verdict]
    return Inspection(processes=tuple(processes), findings=findings, verdict=verdict, reason=reason, exit_code=code,
                      notes=tuple(notes))  # fmt: skip


def _why(process: InspectedProcess) -> str:
    return process.libraries.detail if isinstance(process.libraries, Absent) else ""


def _judge(process: InspectedProcess) -> Iterator[Finding]:
    if isinstance(process.libraries, Absent):
        yield _finding(process, "note", "unknown", "Its libraries could not be read", process.libraries.detail)
        return
    cudnn = [lib for lib in process.libraries.value if lib.name.startswith("libcudnn")]
    yield from _copies(process, cudnn)
    yield from _parts(process, cudnn)
    yield from _deleted(process, process.libraries.value)
    if isinstance(process.forked_from, Known) and process.forked_from.value:
        yield _finding(
            process, "warning", "problem",
            f"It was forked from process {process.forked_from.value} after CUDA was opened",
            "CUDA cannot be used in such a child; one that only reads data is not harmed.",
            causes=("fork-after-init",),
            fixes=(Fix(text="Start workers by spawn or forkserver, or before CUDA is first used"),),
        )  # fmt: skip
    if isinstance(process.would_load, Known):
        yield from _other_now(process, cudnn, process.would_load)


def _copies(process: InspectedProcess, cudnn: Sequence[MappedLibrary]) -> Iterator[Finding]:
    cores = [lib for lib in cudnn if lib.name == "libcudnn"]
    if len(cores) > 1:
        yield _finding(
            process, "error", "problem", "Two copies of cuDNN are loaded in one process",
            "Whichever is called, the other's sub-libraries may answer.",
            evidence=cores, causes=("cudnn-shadowed", "cudnn-sublibs-mixed"),
            fixes=(Fix(text="Take one of the two folders out of LD_LIBRARY_PATH or uninstall one of the packages"),),
        )  # fmt: skip


def _parts(process: InspectedProcess, cudnn: Sequence[MappedLibrary]) -> Iterator[Finding]:
    folders = {lib.path.rpartition("/")[0] for lib in cudnn}
    versions = {lib.version.value for lib in cudnn if isinstance(lib.version, Known)}
    if len([lib for lib in cudnn if lib.name == "libcudnn"]) <= 1 and len(folders) > 1 and len(versions) > 1:
        yield _finding(
            process, "error", "problem", "Its parts of cuDNN come from two installs",
            f"Versions {' and '.join(sorted(versions))} in {' and '.join(sorted(folders))}.",
            evidence=cudnn, causes=("cudnn-sublibs-mixed",),
            fixes=(Fix(text="Keep one of the two folders on the loader's path"),),
        )  # fmt: skip


def _deleted(process: InspectedProcess, libraries: Sequence[MappedLibrary]) -> Iterator[Finding]:
    gone = [lib for lib in libraries if lib.deleted]
    if gone:
        driver = any(lib.name in ("libcuda", "libnvidia-ml") for lib in gone)
        severity: Severity = "error" if driver else "warning"
        yield _finding(
            process, severity, "problem", f"{len(gone)} of its libraries were replaced or removed while it runs",
            "It goes on with the old ones; what it opens from now on is new, and the two do not fit.",
            evidence=gone, causes=("driver-lib-skew",) if driver else ("cudnn-sublibs-mixed",),
            fixes=(Fix(text="Start it again"),),
        )  # fmt: skip


def _other_now(process: InspectedProcess, cudnn: Sequence[MappedLibrary], now: Known[str]) -> Iterator[Finding]:
    core = next((lib for lib in cudnn if lib.name == "libcudnn"), None)
    if core is not None and core.path != now.value:
        yield _finding(
            process, "note", "problem", "Started again it would load another cuDNN",
            f"It has {core.path}; `check` finds that {now.value} would be loaded now ({now.source}).", evidence=[core],
        )  # fmt: skip


def _finding(
    process: InspectedProcess, severity: Severity, status: str, title: str, detail: str, *,
    evidence: Sequence[MappedLibrary] = (), causes: tuple[str, ...] = (), fixes: tuple[Fix, ...] = (),
) -> Finding:  # fmt: skip
    return Finding(
        code="",
        status="unknown" if status == "unknown" else "problem",
        severity=severity,
        owner="environment" if severity == "error" else "program",
        subject=f"process {process.pid} ({process.name})",
        title=title,
        detail=detail,
        evidence=tuple(
            Evidence(pointer="/libraries", value=f"{lib.path} {value_or(lib.version, 'version not known')}"
                     + (" (deleted)" if lib.deleted else ""), source=f"/proc/{process.pid}/maps")
            for lib in evidence
        ),
        causes=causes,
        fixes=fixes,
    )  # fmt: skip
