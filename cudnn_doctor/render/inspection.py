"""A live process as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.inspection import InspectedProcess, Inspection, MappedLibrary
from cudnn_doctor.model.report import Finding
from cudnn_doctor.render.clean import disarmed, encodable, one_line

_WORDS = {"ok": "OK", "problem": "PROBLEM", "no-verdict": "NO VERDICT"}
_SHOWN = ("libcudnn", "libcublas", "libcudart", "libcuda", "libnccl", "libnvrtc")


def render_inspection(answer: Inspection, *, width: int = 100, color: bool = False, encoding: str = "utf-8") -> str:
    """Every process, its findings, the verdict. Lines are not wrapped: a path is copied whole."""
    del width, color
    lines = [line for process in answer.processes for line in _process(process, answer.findings)]
    lines += [f"Note: {note}" for note in answer.notes]
    lines.append(f"{_WORDS[answer.verdict]} (exit code {answer.exit_code}): {answer.reason}")
    return "".join(f"{_indent(line)}{encodable(disarmed(one_line(line)), encoding)}\n" for line in lines)


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip(" ")))


def _process(process: InspectedProcess, findings: tuple[Finding, ...]) -> Iterator[str]:
    user = f"uid {process.user.value}" if isinstance(process.user, Known) else "user not known"
    yield f"Process {process.pid} {process.name}: {user}, {process.threads} threads, for {process.seconds:.0f} s"
    if process.namespaces:
        yield f"  in other namespaces: {', '.join(process.namespaces)} (a container)"
    if isinstance(process.libraries, Absent):
        yield f"  libraries: {process.libraries.detail or process.libraries.reason}"
    else:
        for library in process.libraries.value:
            if library.name.partition("_")[0] in _SHOWN:
                yield f"  {_library(library)}"
        if not process.libraries.value:
            yield "  no library of CUDA is loaded"
    yield from _gpu(process)
    if isinstance(process.memory_limit, Known) and process.memory_limit.value >= 0:
        yield f"  main memory: limited to {process.memory_limit.value / (1 << 30):.1f} GiB by its cgroup"
    if isinstance(process.stacks, Known):
        yield from (f"  | {line}" for line in process.stacks.value.splitlines() if line.strip())
    elif process.stacks.reason != "not-examined":
        yield f"  stacks: {process.stacks.detail}"
    subject = f"process {process.pid} ({process.name})"
    for finding in findings:
        if finding.subject == subject:
            yield from _finding(finding)


def _library(library: MappedLibrary) -> str:
    version = library.version.value if isinstance(library.version, Known) else "version not known"
    return f"{library.name} {version}  {library.path}{' (deleted)' if library.deleted else ''}"


def _gpu(process: InspectedProcess) -> Iterator[str]:
    devices = process.devices
    if isinstance(devices, Known):
        held = ", ".join(map(str, devices.value)) or "none"
    else:
        held = devices.detail or devices.reason
    visible = process.visible_devices
    told = f"; CUDA_VISIBLE_DEVICES was {visible.value!r}" if isinstance(visible, Known) else ""
    mps = "; MPS" if isinstance(process.mps, Known) and process.mps.value else ""
    yield f"  GPU files open: {held}{told}{mps}"
    if isinstance(process.gpu_memory, Known):
        for use in process.gpu_memory.value:
            memory = f"{use.memory.value / (1 << 20):.0f} MiB" if isinstance(use.memory, Known) else "not told"
            yield f"  GPU {use.gpu}: {memory}"


def _finding(finding: Finding) -> Iterator[str]:
    mark = {"error": "x", "warning": "!", "note": "i"}[finding.severity]
    yield f"  [{mark}] {finding.title}"
    if finding.detail:
        yield f"      {finding.detail}"
    yield from (f"      seen: {e.value}" for e in finding.evidence)
    yield from (f"      fix: {fix.text}" for fix in finding.fixes)
