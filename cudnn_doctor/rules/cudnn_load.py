"""CD309 to CD311: does a copy of cuDNN find what it opens, say one version, and load at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudnn_doctor.model.base import Absent, Known, known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Resolution
from cudnn_doctor.model.report import Evidence, Fix
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, shown, skip, unknown
from cudnn_doctor.rules.facts import (
    copies,
    copy_name,
    frameworks,
    in_use,
    loaded_by,
    numbers,
    own_searches,
    same_version,
    unanswered,
)
from cudnn_doctor.rules.messages import loader_message
from cudnn_doctor.rules.remedies import again, bring, fix, in_front, provide, quoted, reinstall, wheel_of, with_folder
from cudnn_doctor.rules.sample import EX, SITE, sample, search, with_searches
from cudnn_doctor.rules.sublibraries import foreign_sublibraries

MEASURED = "measured with the wheels of 8.5, 8.9, 9.1 and 9.27: missing and foreign sub-libraries, 2026-11-30"


@rule(
    "CD309",
    title="Helper libraries that cuDNN opens",
    severity="error",
    owner="environment",
    causes=("helper-library-missing",),
    explain="""cuDNN opens cuBLAS, cuBLASLt and NVRTC itself, of its own CUDA major. cuDNN 8 ends the process with
"Could not load library libcublasLt.so.12" when it does not find them; 9 misses the engines that need them. A
framework that loads its own cuBLAS before hides this, a plain program does not.""",
    source="readelf and strings of the wheels; on an H200 8.9.7 without cuBLAS 12 aborted in cudnnCreate",
    examples=lambda: (
        ("ok", with_searches(search("libcublasLt.so.13", f"{SITE}/nvidia/cu13/lib/libcublasLt.so.13"))),
        ("problem", with_searches(search("libcublasLt.so.12"))),
        ("ok", with_searches(search("libcublasLt.so.13"))),
        ("skipped", sample()),
    ),
)
def helpers(case: Case) -> Iterator[Outcome]:
    for _, copy in copies(case):
        name = copy_name(copy)
        searches = [(p, r) for p, r in own_searches(case, copy) if not r.wanted.startswith(("libcudnn", "libcuda.so"))]
        if not searches:
            continue
        used = loaded_by(case, copy)
        by_framework = [f.name for _, _, f in frameworks(case) if f.name in used.split(", ")]
        evidence: list[Evidence] = []
        missing: list[tuple[str, str]] = []
        provided: list[tuple[str, str]] = []
        for pointer, resolution in searches:
            evidence.append(shown(resolution.path, f"{pointer}/path", _place(resolution)))
            if isinstance(resolution.path, Known):
                continue
            at = _on_disk(case, resolution.wanted)
            (provided if at and by_framework else missing).append((resolution.wanted, at))
        if not missing:
            text = "Finds the libraries that it opens"
            if provided:
                names = ", ".join(w for w, _ in provided)
                text = f"{by_framework[0]} loads {names} from its own folders before cuDNN"
            yield passed(name, text, evidence=evidence)
            continue
        names = ", ".join(w for w, _ in missing)
        fatal = copy.major <= 8 and any(w.startswith("libcublas") for w, _ in missing)
        yield problem(
            name,
            f"{names} not found by the search of this cuDNN",
            detail=(
                "It ends the process at the first call that needs them."
                if fatal
                else "Engines that need them are left out or fail."
            )
            + (f" Loaded by: {used}." if used else " Nobody loads this copy as things are."),
            evidence=evidence,
            fixes=_bring_helpers(case, copy, missing),
            severity=("error" if fatal else "warning") if in_use(case, copy) else "note",
        )


def _bring_helpers(case: Case, copy: CudnnCopy, missing: Sequence[tuple[str, str]]) -> list[Fix]:
    """For helper libraries with the place where each lies ("" where it is nowhere): the folders onto the path, the
    wheels of the others."""
    folders = list(dict.fromkeys(at.rpartition("/")[0] for _, at in missing if at))
    wheels = [wheel_of(name) for name, at in missing if not at]
    fixes = []
    if folders:
        text = f"{', '.join(n for n, at in missing if at)}: in {' and '.join(folders)}. Put that on the path."
        path = ":".join(folders)
        fixes.append(fix(text, with_folder(path), verify=again("CD309"), change=in_front(case, path)))
    if named := list(dict.fromkeys(filter(None, wheels))):
        text = f"Install {' and '.join(named)} of the CUDA that this cuDNN was built for."
        fixes.append(fix(text, bring(case, copy.real_path, _cuda(copy), *named), verify=again("CD309")))
    if not fixes:
        text = f"Install what provides {', '.join(n for n, _ in missing)}, or put its folder on LD_LIBRARY_PATH."
        fixes.append(fix(text, f"ldconfig -p | grep {quoted(missing[0][0].partition('.')[0])}", verify=again("CD309")))
    return fixes


def _place(resolution: Resolution) -> str:
    return f"{resolution.wanted}: {value_or(resolution.path, 'not found')}"


def _on_disk(case: Case, soname: str) -> str:
    """A file of that soname anywhere on this machine."""
    name, _, major = soname.partition(".so.")
    found = (lib.path for lib in case.snapshot.cuda.libraries if lib.name == name and str(lib.major) == major)
    return next(found, "")


def _cuda(copy: CudnnCopy) -> int:
    major = value_or(copy.cuda_flavour, 0)
    if not major and isinstance(copy.cudart, Known):
        major = next(iter(numbers(copy.cudart.value)), 0)
    return major or 12


@rule(
    "CD310",
    title="What a copy says of its version",
    severity="warning",
    owner="environment",
    causes=("cudnn-sublibs-mixed", "cudnn-wrong-build"),
    explain="""The version of a copy is read in several ways: asked of the library, from the file name, from the wheel
that owns it. When they differ the files were replaced behind the package manager's back, or the library in front
found the sub-libraries of another install (cudnnGetVersion answers for those).""",
    source="cudnnGetVersion answers for libcudnn_graph (9) or libcudnn_ops_infer (8): " + MEASURED,
    examples=lambda: (
        ("ok", sample()),
        (
            "problem",
            sample({"cudnn.0.version_readings": (known("9.19.0", EX), known("9.1.0", "cudnnGetVersion"))}),
        ),
        ("unknown", sample({"cudnn.0.version_readings": ()})),
    ),
    follows=("CD306", "CD307", "CD308", "CD312"),
)
def readings(case: Case) -> Iterator[Outcome]:
    for pointer, copy in copies(case):
        name = copy_name(copy)
        found = copy.version_readings
        if not found:
            yield unknown(name, "Its version", detail=value_or(copy.version, "no reading") or "no reading")
            continue
        evidence = [shown(r, f"{pointer}/version_readings/{i}") for i, r in enumerate(found)]
        differing = [r for r in found if not same_version(r.value, found[0].value)]
        if differing and foreign_sublibraries(case, pointer, copy):
            yield skip(name, "its sub-libraries are not its own: CD306")
        elif not differing:
            yield passed(name, f"Its version is {found[0].value} by every reading ({len(found)})", evidence=evidence)
        else:
            said = ", ".join(f"{r.value} ({r.source})" for r in (found[0], *differing))
            yield problem(
                name,
                f"Readings of its version differ: {said}",
                evidence=evidence,
                fixes=reinstall(case, copy, "CD310"),
                severity=None if in_use(case, copy) else "note",
            )


@rule(
    "CD311",
    title="Loading a copy",
    severity="error",
    owner="environment",
    causes=("cudnn-sublibs-mixed", "helper-library-missing"),
    explain="""Each copy is loaded and asked its version in a child process, which needs no GPU. A copy that dies,
hangs or cannot be loaded there does the same to every program that gets it.""",
    source="cudnnGetVersion in a child process; " + MEASURED,
    examples=lambda: (
        ("ok", sample()),
        (
            "problem",
            sample(
                {
                    "cudnn.0.asked": known(
                        "killed by SIGABRT in cudnnGetVersion: Could not load library libcudnn_ops_infer.so.8. "
                        "Error: libcublas.so.11: cannot open shared object file: No such file or directory",
                        EX,
                    )
                }
            ),
        ),
        ("problem", sample({"cudnn.0.asked": known("no answer before the deadline in cudnnGetVersion", EX)})),
        ("unknown", sample({"cudnn.0.asked": known("not started: OSError: [Errno 24] Too many open files", EX)})),
        ("unknown", sample({"cudnn.0.asked": Absent(reason="not-examined")})),
    ),
    follows=("CD507", "CD514", "CD312", "CD306", "CD307", "CD308", "CD309"),
)
def loads(case: Case) -> Iterator[Outcome]:
    for pointer, copy in copies(case):
        name, asked = copy_name(copy), copy.asked
        if copy.kind == "shimless":
            yield skip(name, "there is no libcudnn to load: CD307")
        elif isinstance(asked, Absent):
            yield unanswered(name, "Whether it can be loaded", asked)
        elif asked.value == "ok":
            yield passed(name, "It loads and answers", evidence=[shown(asked, f"{pointer}/asked")])
        elif asked.value.startswith("not started"):  # no process, no descriptor was left: nothing against the copy
            yield unknown(name, "Whether it can be loaded", detail=f"The child was {asked.value}")
        else:
            message = loader_message(asked.value)
            missing = message.missing if message else ""
            yield problem(
                name,
                f"It cannot be loaded: {missing} is missing" if missing else _what_happened(asked.value),
                detail=asked.value,
                evidence=[shown(asked, f"{pointer}/asked")],
                fixes=provide(case, missing, copy.real_path, "CD311") or reinstall(case, copy, "CD311"),
                severity=None if in_use(case, copy) else "note",
                causes=("helper-library-missing",)
                if missing and not missing.startswith("libcudnn")
                else ("cudnn-sublibs-mixed",),
            )


def _what_happened(asked: str) -> str:
    if asked.startswith("no answer"):
        return "It does not answer within the time limit"
    return "It ends the process that loads it" if asked.startswith(("killed", "ended")) else "It cannot be loaded"
