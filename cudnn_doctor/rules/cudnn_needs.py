"""CD313, and what CD301 and CD302 say of a cuDNN that a framework does not get: how heavy that is and what mends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cudnn_doctor.model.base import Absent, known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Framework, Resolution
from cudnn_doctor.model.report import Fix, Severity
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, shown
from cudnn_doctor.rules.facts import copy_at, frameworks, gpu_present, is_libcudnn, resolutions
from cudnn_doctor.rules.remedies import (
    again,
    cure,
    fix,
    in_front,
    install,
    pip,
    quoted,
    reinstall,
    with_folder,
    without_folders,
)
from cudnn_doctor.rules.sample import sample

BY_THE_USER = ("LD_LIBRARY_PATH", "LD_PRELOAD")


def weight(case: Case, framework: Framework) -> Severity | None:
    """How heavy a missing cuDNN is: nothing fails of a framework that does without it, nor, without a GPU, of one that
    opens it only when it first uses one."""
    if framework.cudnn_need == "optional" or (framework.cudnn_need == "opened" and not gpu_present(case)):
        return "note"
    return None


def install_for(case: Case, framework: Framework, code: str) -> Fix:
    """Brings the wheel that a framework asks for, to where it looks: ONNX Runtime by itself looks into no package."""
    command, text = install(case, framework), "Install the cuDNN that it asks for."
    call = framework.call_before
    if call:
        text = f"Install the cuDNN that it asks for, and call {call} in the program before the first session."
    verify = f"{again('CD301')} --only CD302" if code == "CD301" else again(code)
    return fix(text, command, verify=verify)


def preload_call(framework: Framework, usable: Sequence[CudnnCopy]) -> list[Fix]:
    """For a framework that does not look into site-packages unless its program asks it to, while a copy lies there."""
    mine = [c for c in usable if "site-packages" in c.found_by]
    if not (framework.call_before and mine):
        return []
    text = f"In the program, call {framework.call_before} before the first session: it opens {mine[0].path}."
    return [fix(text, verify=again("CD302"))]


def stopped(case: Case, pointer: str, name: str, resolution: Resolution) -> Outcome:
    """A file of the right name that cannot be opened: the loader goes no further, whatever lies behind it."""
    at = resolution.stopped_at
    why = value_or(resolution.path, "") or getattr(resolution.path, "detail", "")
    copy = copy_at(case, at)
    fixes = list(reinstall(case, copy, "CD302")) if copy and (copy.claimed_by or value_or(copy.package, "")) else []
    if resolution.step.startswith(BY_THE_USER) or not fixes:
        leave = without_folders(case, at.rpartition("/")[0])
        text = f"Remove {at} or put a whole one in its place" + (", or leave its folder out." if leave else ".")
        verify = again("CD302")
        fixes.insert(0, cure(text, leave, verify=verify) if leave else fix(text, f"ls -l {quoted(at)}", verify=verify))
    return problem(
        name,
        f"{resolution.wanted} cannot be opened: {why.rpartition(': ')[2]}",
        detail=f"The search ends at {at}, found by {resolution.step}; a copy behind it does not count.",
        evidence=[shown(resolution.path, f"{pointer}/path", why)],
        fixes=fixes,
    )


def _without(soname: str) -> Case:
    """The healthy machine where a library that torch links is nowhere."""
    base = sample().snapshot
    gone = Absent(reason="not-found", detail=f"{soname} is in none of 24 places")
    search = replace(base.resolutions[1], wanted=soname, path=gone, real_path=gone, step="", shadowed=())
    return sample({"resolutions": (*base.resolutions, search)})


@rule(
    "CD313",
    title="CUDA libraries that a framework links",
    severity="error",
    owner="environment",
    causes=("helper-library-missing",),
    explain="""The libraries of a framework name other libraries of CUDA (cuBLAS, cuSPARSE, NCCL, nvJitLink ...), which
come as wheels of their own. With one of them nowhere, PyTorch cannot be imported and ONNX Runtime's CUDA provider is
left out. Where the wheels lie in a folder each (Bazel, PEX, PDM's cache) PyTorch finds only those that it lists itself,
along sys.path.""",
    source="DT_NEEDED of the installed libraries; torch/__init__.py; held against torch 2.6.0 and 2.8.0, 2026-12-01",
    examples=lambda: (
        ("ok", sample()),
        ("problem", _without("libcusparseLt.so.0")),
        ("skipped", sample({"frameworks": ()})),
    ),
)
def links(case: Case) -> Iterator[Outcome]:
    for pointer, name, framework in frameworks(case):
        searches = [(p, r) for p, r in resolutions(case) if r.consumer == framework.name]
        missing = [(p, r) for p, r in searches if not is_libcudnn(r.wanted) and isinstance(r.path, Absent)]
        if not missing:
            if searches:
                evidence = [shown(known(framework.location, "its folder"), f"{pointer}/location")]
                yield passed(name, "What it links of CUDA is found", evidence=evidence)
            continue
        names = ", ".join(r.wanted for _, r in missing)
        needs_gpu = framework.cudnn_need != "linked"
        yield problem(
            name,
            f"{names} not found",
            detail=f"{framework.name} cannot be imported." if not needs_gpu else "Its CUDA part cannot be opened.",
            evidence=[shown(r.path, f"{p}/path", f"{r.wanted}: not found") for p, r in missing],
            fixes=_bring(case, framework, [r for _, r in missing]),
            severity="note" if needs_gpu and not gpu_present(case) else None,
        )


def _bring(case: Case, framework: Framework, missing: Sequence[Resolution]) -> list[Fix]:
    """The folders that have them, onto the path; else the framework's own requirements, put back."""
    by_name = {f"{x.name}.so.{x.major}": x.path for x in case.snapshot.cuda.libraries}
    there = list(dict.fromkeys(by_name[r.wanted].rpartition("/")[0] for r in missing if r.wanted in by_name))
    fixes = []
    if there:
        text = f"Put {' and '.join(there)} on the path."
        path = ":".join(there)
        fixes.append(fix(text, with_folder(path), verify=again("CD313"), change=in_front(case, path)))
    if len(there) < len({r.wanted for r in missing}):
        text = f"Bring in what {framework.distribution} {framework.version} requires."
        fixes.append(
            fix(text, pip(case, "install", f"{framework.distribution}=={framework.version}"), verify=again("CD313"))
        )
    return fixes
