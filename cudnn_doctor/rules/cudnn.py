"""CD301 to CD305: is there a cuDNN, and does each framework get the one that it should."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from cudnn_doctor.model.base import Absent, known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Framework, Resolution
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, shown, skip, unknown
from cudnn_doctor.rules.cudnn_needs import BY_THE_USER, install_for, preload_call, stopped, weight
from cudnn_doctor.rules.facts import (
    copies,
    copy_at,
    copy_name,
    frameworks,
    numbers,
    plural,
    probe_error,
    same_version,
    searches,
    shortened,
    unanswered,
)
from cudnn_doctor.rules.remedies import (
    again,
    fix,
    in_front,
    pip,
    unshadow,
    with_folder,
)
from cudnn_doctor.rules.sample import ABSENT, CUDNN_DIR, EX, another_copy, sample

SEARCH_DOC = "ld.so(8) and dlopen(3); glibc elf/dl-load.c"
OWN = f"{CUDNN_DIR}/libcudnn.so.9"


def _old_first(step: str = "LD_LIBRARY_PATH", version: str = "9.1.0") -> Case:
    """The healthy machine with another copy before the wheel's own."""
    first = another_copy(version, "/opt/old")
    return sample(
        {
            "cudnn": (*sample().snapshot.cudnn, first),
            "resolutions.1.path": known(first.path, EX),
            "resolutions.1.real_path": known(first.real_path, EX),
            "resolutions.1.step": step,
            "resolutions.1.shadowed": (OWN,),
        }
    )


def _damaged() -> Case:
    """The healthy machine with an empty file in place of the wheel's libcudnn.so.9."""
    empty = Absent(reason="error", detail=f"{OWN}: file too short")
    changed = {f"resolutions.{i}.{name}": empty for i in (0, 1) for name in ("path", "real_path")}
    stopped = {f"resolutions.{i}.stopped_at": OWN for i in (0, 1)}
    package = {"cudnn.0.package": ABSENT, "cudnn.0.claimed_by": "nvidia-cudnn-cu13 9.19.0.56"}
    return sample({**changed, **stopped, **package})


def _older_than_build(framework: Framework, copy: CudnnCopy) -> bool | None:
    """By the rule of today's frameworks: another major, or an older minor than the build's. None: not stated."""
    built, mine = numbers(value_or(framework.built_cudnn, "")), numbers(value_or(copy.version, ""))
    if len(built) < 2 or len(mine) < 2:
        return None
    return mine[0] == built[0] and mine[1] < built[1]


def _better(case: Case, framework: Framework, resolution: Resolution) -> CudnnCopy | None:
    """A copy that loses the search and would do."""
    lost = [copy_at(case, path) for path in resolution.shadowed]
    return next((c for c in lost if c and c.major and _older_than_build(framework, c) is False), None)


@rule(
    "CD301",
    title="cuDNN",
    severity="error",
    owner="environment",
    causes=("cudnn-not-found",),
    explain="""Searched are LD_LIBRARY_PATH, LD_PRELOAD, the loader's cache, CUDA toolkits, the conda prefix, the
site-packages of the environment and the folders that installed frameworks name. When nothing is found although a
framework wants cuDNN, that framework runs without GPU or stops. When nobody wants it there is nothing to examine,
which is no pass either.""",
    source="https://docs.nvidia.com/deeplearning/cudnn/installation/latest/linux.html",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"cudnn": ()})),
        ("unknown", sample({"cudnn": (), "frameworks": ()})),
        ("problem", sample({"cudnn": (), "frameworks": ()}, required=("cudnn",))),
    ),
    required=True,
    requirements=("cudnn",),
)
def found(case: Case) -> Iterator[Outcome]:
    all_copies = list(copies(case))
    if all_copies:
        names = ", ".join(copy_name(c) for _, c in all_copies)
        evidence = [Evidence(pointer=p, value=copy_name(c), source=", ".join(c.found_by)) for p, c in all_copies]
        yield passed("machine", f"{plural(len(all_copies), 'copy')}: {names}", evidence=evidence)
        return
    failed = probe_error(case, "cuDNN copies") or probe_error(case, "frameworks")
    if failed:
        yield unknown("machine", "Whether there is a cuDNN", detail=failed)
        return
    nothing = Evidence(pointer="/snapshot/cudnn", value="none found", source="all places of the search")
    wanting = [(p, name, f) for p, name, f in frameworks(case) if not isinstance(f.cudnn_soname, Absent)]
    if wanting:
        names = ", ".join(name for _, name, _ in wanting)
        weights = [weight(case, f) for _, _, f in wanting]
        yield problem(
            names,
            "No cuDNN anywhere on this machine",
            detail=f"{names} would load {value_or(wanting[0][2].cudnn_soname, 'libcudnn')}.",
            evidence=[nothing, *(shown(f.cudnn_soname, f"{p}/cudnn_soname") for p, _, f in wanting)],
            fixes=[install_for(case, wanting[0][2], "CD301")],
            severity=None if None in weights else "note",
        )
    elif "cudnn" in case.required:
        yield problem(
            "machine",
            "No cuDNN anywhere on this machine",
            detail="--require cudnn demands one.",
            evidence=[nothing],
            fixes=[fix("Install one for your CUDA.", pip(case, "install", _for_driver(case)), verify=again("CD301"))],
        )
    else:
        detail = "No cuDNN was found, and no framework that would load one: there is nothing to examine."
        if case.snapshot.patient.not_followed:
            detail += f" Not followed: {'; '.join(case.snapshot.patient.not_followed)}."
        yield unknown("machine", "No cuDNN on this machine", detail=detail, evidence=[nothing])


def _for_driver(case: Case) -> str:
    """The cuDNN wheel for the CUDA that the driver serves."""
    served = numbers(value_or(case.snapshot.driver.cuda, ""))[:1]
    return f"nvidia-cudnn-cu{served[0] if served and served[0] in (11, 12, 13) else 12}"


@rule(
    "CD302",
    title="The cuDNN that each framework loads",
    severity="error",
    owner="environment",
    causes=("cudnn-not-found",),
    explain="""A framework names one file, such as libcudnn.so.9, and the loader looks for it: what is loaded already,
DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache, the default folders. A cuDNN of another major has another name and
does not count; nor does one in a folder where this framework does not look.""",
    source=SEARCH_DOC,
    examples=lambda: (
        ("ok", sample()),
        (
            "problem",
            sample({"resolutions.1.path": ABSENT, "resolutions.1.real_path": ABSENT, "resolutions.1.step": ""}),
        ),
        ("problem", _damaged()),
        ("skipped", sample({"frameworks": ()})),
    ),
    follows=("CD312", "CD508"),
)
def winner(case: Case) -> Iterator[Outcome]:
    failed = probe_error(case, "loader") or probe_error(case, "frameworks")
    if failed:
        yield unknown("", "Which cuDNN the frameworks load", detail=failed)
    if not case.snapshot.cudnn:
        yield skip("", "there is no cuDNN: CD301")
        return
    for pointer, name, framework, resolution in searches(case):
        path, wanted = resolution.path, resolution.wanted
        if not isinstance(path, Absent):
            copy = copy_at(case, value_or(resolution.real_path, path.value))
            how = resolution.step if resolution.step.startswith("preloaded") else f"found by {resolution.step}"
            title = f"loads cuDNN {value_or(copy.version, '?') if copy else '?'}, {how}"
            yield passed(name, title, evidence=[shown(path, f"{pointer}/path")])
            continue
        if resolution.stopped_at:
            yield stopped(case, pointer, name, resolution)
            continue
        if path.reason != "not-found":
            yield unknown(name, f"Which {wanted} it loads", detail=f"{path.reason}: {path.detail}")
            continue
        usable = [c for _, c in copies(case) if c.soname == wanted and c.kind != "shimless"]
        others = ", ".join(copy_name(c) for _, c in copies(case))
        folders = list(dict.fromkeys(s.directory or s.step for s in resolution.steps))
        searched = shortened(folders, "folder")
        every = Evidence(pointer=f"{pointer}/steps", value=", ".join(folders) or "none", source="search of the loader")
        yield problem(
            name,
            f"{wanted} is not found",
            detail=f"It was looked for in {searched or 'no folder'}. On this machine there is {others}.",
            evidence=[shown(path, f"{pointer}/path"), every, *(_cite_copy(p, c) for p, c in copies(case))],
            fixes=[
                *preload_call(framework, usable),
                install_for(case, framework, "CD302"),
                *(
                    fix(
                        "Or show it the copy that is here.",
                        with_folder(c.directory),
                        verify=again("CD302"),
                        change=in_front(case, c.directory),
                    )
                    for c in usable[:1]
                ),
            ],
            causes=("cudnn-not-found",) if usable else ("cudnn-not-found", "cudnn-wrong-build"),
            severity=weight(case, framework) or ("warning" if preload_call(framework, usable) else None),
        )


def _cite_copy(pointer: str, copy: CudnnCopy) -> Evidence:
    return Evidence(pointer=pointer, value=copy_name(copy), source=", ".join(copy.found_by))


@rule(
    "CD303",
    title="A too-old cuDNN before a good one",
    severity="error",
    owner="environment",
    causes=("cudnn-shadowed",),
    explain="""Frameworks accept a cuDNN of the build's major whose minor is not older than the build's. When an older
copy is found first (LD_LIBRARY_PATH, an apt package, conda) the good one lies there unused, and the framework prints
"Loaded runtime CuDNN library: ... but source was compiled with: ..." or "cuDNN version incompatibility".""",
    source="IsSourceCompatibleWithCudnnLibrary in XLA and TensorFlow; torch/backends/cudnn/__init__.py",
    examples=lambda: (
        ("ok", sample()),
        ("problem", _old_first()),
        (
            "unknown",
            sample({"resolutions.1.shadowed": ("/opt/old/libcudnn.so.9",), "frameworks.0.built_cudnn": ABSENT}),
        ),
    ),
    follows=("CD508",),
)
def too_old_first(case: Case) -> Iterator[Outcome]:
    for pointer, name, framework, resolution in searches(case):
        copy = copy_at(case, value_or(resolution.real_path, ""))
        if copy is None:
            continue
        built = f"/snapshot/frameworks/{case.snapshot.frameworks.index(framework)}/built_cudnn"
        evidence = [_cite_copy(f"{pointer}/real_path", copy), shown(framework.built_cudnn, built)]
        older = _older_than_build(framework, copy)
        better = _better(case, framework, resolution)
        if not resolution.shadowed:
            yield passed(name, "No other copy lies behind the one that it loads", evidence=evidence[:1])
        elif older is None:
            absent = next((a for a in (framework.built_cudnn, copy.version) if isinstance(a, Absent)), None)
            yield (
                unanswered(name, "Whether what it loads is older than its build", absent)
                if absent
                else skip(name, "only the major of its build's cuDNN is stated")
            )
        elif older and better:
            yield problem(
                name,
                f"finds cuDNN {value_or(copy.version, '?')} first, which is older than its build's "
                f"{value_or(framework.built_cudnn, '?')}; {value_or(better.version, '?')} is there unused",
                detail=f"{copy.path} wins by {resolution.step}; {better.path} would do.",
                evidence=[*evidence, _cite_copy(f"{pointer}/shadowed", better)],
                fixes=[unshadow(case, copy, resolution, "CD303")],
            )
        else:
            yield passed(name, "What it loads is not older than its build", evidence=evidence)


@rule(
    "CD304",
    title="LD_LIBRARY_PATH against the wheel's own cuDNN",
    severity="warning",
    owner="environment",
    causes=("cudnn-shadowed",),
    explain="""A framework's wheel brings the cuDNN that it was tested with. LD_LIBRARY_PATH and LD_PRELOAD come
before it (unless the framework's library has a DT_RPATH), so that a line in .bashrc or a module of the cluster
replaces it by another version. Sub-libraries can then come from both.""",
    source=SEARCH_DOC,
    examples=lambda: (("ok", sample()), ("problem", _old_first(version="9.21.0")), ("skipped", _old_first())),
    follows=("CD508",),
)
def overridden(case: Case) -> Iterator[Outcome]:
    for pointer, name, framework, resolution in searches(case):
        copy = copy_at(case, value_or(resolution.real_path, ""))
        if copy is None:
            continue
        mine = [c for c in (copy_at(case, p) for p in resolution.shadowed) if c and "site-packages" in c.found_by]
        by_user = resolution.step.startswith(BY_THE_USER)
        unread = [v for v in (copy.version, *(c.version for c in mine)) if isinstance(v, Absent)]
        version = value_or(copy.version, "?")
        differs = [c for c in mine if not same_version(value_or(c.version, ""), version)]
        if by_user and mine and unread:
            yield unanswered(name, f"Whether {resolution.step} brings in another cuDNN than its own", unread[0])
        elif not by_user or not differs:
            evidence = [_cite_copy(f"{pointer}/real_path", copy)]
            yield passed(name, "No variable replaces its own cuDNN", evidence=evidence)
        elif _older_than_build(framework, copy) and _better(case, framework, resolution):
            yield skip(name, "what comes first is too old: CD303")
        else:
            yield problem(
                name,
                f"{resolution.step} brings in cuDNN {version} instead of its own {value_or(differs[0].version, '?')}",
                detail=f"{copy.path} wins over {differs[0].path}.",
                evidence=[
                    _cite_copy(f"{pointer}/real_path", copy),
                    Evidence(pointer=f"{pointer}/step", value=resolution.step, source="search of the loader"),
                    _cite_copy(f"{pointer}/shadowed", differs[0]),
                ],
                fixes=[unshadow(case, copy, resolution, "CD304")],
            )


@rule(
    "CD305",
    title="Frameworks that load different cuDNN copies",
    severity="warning",
    owner="environment",
    causes=("cudnn-shadowed", "cudnn-sublibs-mixed"),
    explain="""Two frameworks of one environment that name the same libcudnn.so.N but would load different files work
alone. In one process the first import decides for both: the second may then stop with a version error, or mix
sub-libraries of two versions.""",
    source=SEARCH_DOC + ": a library with that soname that is already loaded is not searched for again",
    examples=lambda: (
        ("skipped", sample()),
        ("problem", _two_frameworks("9.1.0")),
        ("ok", _two_frameworks("")),
    ),
    follows=("CD303", "CD304", "CD508"),
)
def torn(case: Case) -> Iterator[Outcome]:
    found_by: dict[str, list[tuple[str, str, CudnnCopy]]] = {}
    for pointer, name, _, resolution in searches(case):
        copy = copy_at(case, value_or(resolution.real_path, ""))
        if copy:
            found_by.setdefault(resolution.wanted, []).append((pointer, name, copy))
    for wanted, users in found_by.items():
        if len(users) < 2:
            continue
        evidence = [_cite_copy(f"{pointer}/real_path", copy) for pointer, _, copy in users]
        names = " and ".join(name for _, name, _ in users)
        if len({copy.real_path for _, _, copy in users}) == 1:
            yield passed(names, f"load the same {wanted}", evidence=evidence)
            continue
        versions = {value_or(copy.version, "?") for _, _, copy in users}
        yield problem(
            names,
            f"load different files for {wanted}: {' and '.join(copy_name(c) for _, _, c in users)}",
            detail="In one process the one imported first decides for both.",
            evidence=evidence,
            fixes=[
                fix("Keep them in separate environments, or bring both to one cuDNN version.", verify=again("CD305"))
            ],
            severity=None if len(versions) > 1 else "note",
        )


def _two_frameworks(version: str) -> Case:
    """The healthy machine with TensorFlow beside torch; `version` is of a copy of its own, "" for the same one."""
    base = sample().snapshot
    copy = another_copy(version, "/opt/old") if version else base.cudnn[0]
    tensorflow = replace(base.frameworks[0], name="tensorflow", distribution="tensorflow", version="2.20.0")
    search = replace(
        base.resolutions[1],
        consumer="tensorflow",
        path=known(copy.path, EX),
        real_path=known(copy.real_path, EX),
    )
    return sample(
        {
            "cudnn": (*base.cudnn, copy) if version else base.cudnn,
            "frameworks": (*base.frameworks, tensorflow),
            "resolutions": (*base.resolutions, search),
        }
    )
