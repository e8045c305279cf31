"""CD306 to CD308: is each copy of cuDNN of one version, whole, and alone in its folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cudnn_doctor.model.base import Absent, known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Overwrite, SubLibrary
from cudnn_doctor.model.report import Evidence, Fix
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip, unknown
from cudnn_doctor.rules.facts import (
    copies,
    copy_name,
    frameworks,
    in_use,
    loaded_by,
    own_searches,
    probe_error,
    requirement_name,
    unanswered,
    used_by,
)
from cudnn_doctor.rules.remedies import (
    again,
    cure,
    fix,
    pip,
    quoted,
    reinstall,
    wheel_of_release,
    with_folder,
    without_folders,
)
from cudnn_doctor.rules.sample import ABSENT, CUDNN_DIR, EX, sample, search, with_searches
from cudnn_doctor.rules.sublibraries import Foreign, foreign_sublibraries, own_version

MEASURED = "measured with the wheels of 8.5, 8.9, 9.1 and 9.27: missing and foreign sub-libraries, 2026-11-30"

NO_VERSIONS = {f"cudnn.0.sublibraries.{i}.version": ABSENT for i in range(7)}


@rule(
    "CD306",
    title="Sub-libraries of one version",
    severity="error",
    owner="environment",
    causes=("cudnn-sublibs-mixed",),
    explain="""cuDNN 8 and 9 are one thin libcudnn.so.N and several sub-libraries that it opens itself; all must be of
one release. A half-done update, a copied file or LD_LIBRARY_PATH mixes them. What follows depends on the file: status
14 (8.x), 1002, 1008 or 3009 (9.x), NOT_INITIALIZED that looks like a driver fault (9.1), an abort, or nothing but
slower engines.""",
    source=MEASURED,
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"cudnn.0.sublibraries.2.version": known("9.1.0", EX)})),
        ("problem", sample({"cudnn.0.sublibraries.2.version": ABSENT})),
        ("problem", with_searches(search("libcudnn_ops.so.9", "/opt/old/libcudnn_ops.so.9"))),
        ("problem", sample({**NO_VERSIONS, "cudnn.0.sublibraries.4.real_path": "/opt/mixed/libcudnn_graph.so.9"})),
        ("unknown", sample(NO_VERSIONS)),
    ),
    follows=("CD312", "CD307", "CD308", "CD508", "CD303", "CD304"),
)
def mixed(case: Case) -> Iterator[Outcome]:
    for pointer, copy in copies(case):
        name, main = copy_name(copy), own_version(copy)
        foreign = foreign_sublibraries(case, pointer, copy)
        if not foreign and not main:
            yield unknown(name, "Versions of the sub-libraries", detail="none of them could be read")
            continue
        if not foreign:
            text = f"All {len(copy.sublibraries)} sub-libraries are of {main}"
            yield passed(name, text, evidence=[shown(copy.version, f"{pointer}/version")])
            continue
        used = loaded_by(case, copy)
        on_disk = [f for f in foreign if not f.found]
        others = f", the others are of {main}" if main else f", the others are in {copy.directory}"
        everything = len(foreign) >= len(copy.sublibraries) and not on_disk
        yield problem(
            name,
            f"Mixed: {_told(foreign)}" + (f", its own are of {main or 'another'}" if everything else others),
            detail=f"Loaded by: {used}." if used else "Nobody loads this copy as things are.",
            evidence=[f.evidence for f in foreign],
            fixes=reinstall(case, copy, "CD306") if on_disk and main else _leave(case, copy, foreign[0]),
            severity=None if in_use(case, copy) else "note",
        )


def _told(foreign: Sequence[Foreign]) -> str:
    """ "libcudnn_cnn.so.9 is of 9.1.0, libcudnn_graph.so.9 and 6 more come from /usr/lib (9.14.0)"."""
    told = [
        f"{f.name} is of {f.version}" if f.version else f"{f.name} is not of this release ({f.folder})"
        for f in foreign
        if not f.found
    ]
    by_folder: dict[tuple[str, str], list[str]] = {}
    for f in foreign:
        if f.found:
            by_folder.setdefault((f.folder, f.version), []).append(f.name)
    for (folder, version), names in by_folder.items():
        more = f" and {len(names) - 1} more come" if len(names) > 1 else " comes"
        told.append(f"{names[0]}{more} from {folder}{f' ({version})' if version else ''}")
    return ", ".join(told)


def _leave(case: Case, copy: CudnnCopy, foreign: Foreign) -> tuple[Fix, ...]:
    """For a file that the loader finds elsewhere, or that a link leads to."""
    folder, verify = foreign.folder, again("CD306")
    if leave := without_folders(case, folder, foreign.searched):
        text = f"Take {foreign.searched or folder} out of LD_LIBRARY_PATH, so that this copy finds its own files."
        return (cure(text, leave, verify=verify),)
    if not foreign.found:
        return reinstall(case, copy, "CD306")
    file = quoted(f"{folder}/{foreign.name}")
    text = f"{foreign.name} in {folder} is found by {foreign.evidence.source}: update or remove what put it there."
    return (fix(text, f"dpkg -S {file}; rpm -qf {file}; ls -l {file}", verify=verify),)


@rule(
    "CD307",
    title="All files of a copy",
    severity="error",
    owner="environment",
    causes=("cudnn-sublibs-mixed", "cudnn-not-found"),
    explain="""Which sub-libraries a cuDNN must have depends on its version: six in 8.x, seven in 9.0 to 9.20, more
since. With one missing, cuDNN aborts the process at the first call that needs it, or answers 1001 or 1008, or falls
back to engines compiled at run time without a word.""",
    source="file lists of the PyPI wheels (compat_matrix.yaml, cudnn_files); " + MEASURED,
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"cudnn.0.sublibraries": sample().snapshot.cudnn[0].sublibraries[:4]})),
        ("problem", sample({"cudnn.0.kind": "shimless"})),
        ("unknown", sample({"cudnn.0.version": ABSENT})),
        ("unknown", sample({"cudnn.0.version": known("99.1.0", EX)})),
    ),
    follows=("CD312", "CD308"),
)
def complete(case: Case) -> Iterator[Outcome]:
    from cudnn_doctor.matrix.compat import expected_files

    for pointer, copy in copies(case):
        name = copy_name(copy)
        if isinstance(copy.version, Absent):
            yield unanswered(name, "Whether it is complete: its version is not known", copy.version)
            continue
        expected = expected_files(case.matrix, copy.version.value, "jit" if copy.kind == "jit" else "full")
        if expected is None:
            detail = f"which files cuDNN {copy.version.value} must have is not in the matrix"
            yield unknown(name, "Whether it is complete", detail=detail)
            continue
        there = {s.name for s in copy.sublibraries}
        elsewhere = {s.wanted for _, s in own_searches(case, copy) if not isinstance(s.path, Absent)}
        bundled = copy.soname.startswith("libcudnn-")  # in another package's wheel, which may leave the parts to others
        missing = [f for f in expected if f not in there and not (bundled and f in elsewhere)]
        if copy.kind == "shimless":
            missing.insert(0, copy.soname)
        listing = f"{pointer}/sublibraries"
        evidence = [
            shown(copy.version, f"{pointer}/version"),
            Evidence(pointer=listing, value=", ".join(sorted(there)) or "none", source=copy.directory),
        ]
        if not missing:
            yield passed(name, f"All {len(expected)} sub-libraries are there", evidence=evidence)
            continue
        used = used_by(case, copy)
        yield problem(
            name,
            f"Incomplete: {', '.join(missing)} missing in {copy.directory}",
            detail=_use(copy, used),
            evidence=evidence,
            fixes=_parts_for_bundled(case, copy) if bundled else reinstall(case, copy, "CD307"),
            severity=None if in_use(case, copy) else "note",
        )


def _parts_for_bundled(case: Case, copy: CudnnCopy) -> tuple[Fix, ...]:
    """A wheel that carries libcudnn alone (CTranslate2): its parts come from a cuDNN of that release on the path."""
    release = wheel_of_release(case, copy, value_or(copy.version, ""))
    patient = case.snapshot.patient
    site = next((s for s in patient.site_packages if s.startswith(patient.prefix)), "")
    if not (release and site):
        return reinstall(case, copy, "CD307")
    path = with_folder(f"{site}/nvidia/cudnn/lib")
    text = f"{value_or(copy.package, 'This wheel')} carries {copy.soname} alone: give it the parts of the same release."
    return (fix(text, f"{pip(case, 'install', '--no-deps', release)} && {path}", verify=again("CD307")),)


def _use(copy: CudnnCopy, used: str) -> str:
    leads = " LD_LIBRARY_PATH leads to it." if "LD_LIBRARY_PATH" in copy.found_by else ""
    return f"Loaded by: {used}.{leads}" if used else f"Nobody loads this copy as things are.{leads}"


def _overwrite(on_disk: str) -> Overwrite:
    packages = ("nvidia-cudnn-cu12 9.1.0.70", "nvidia-cudnn-cu13 9.19.0.56")
    return Overwrite(packages=packages, directory=CUDNN_DIR, files=8, on_disk=known(on_disk, EX))


@rule(
    "CD308",
    title="Wheels that overwrite each other",
    severity="error",
    owner="environment",
    causes=("cudnn-wrong-build", "cudnn-sublibs-mixed"),
    explain="""nvidia-cudnn-cu11, -cu12 and -cu13 put their files into the same folder. With two of them installed the
one installed last has won, pip list shows both, and removing one takes the other's files away. It is a warning while
the files on disk are those that the framework asks for.""",
    source="RECORD files of the wheels on PyPI",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"overwrites": (_overwrite("nvidia-cudnn-cu12 9.1.0.70"),)})),
        ("problem", sample({"overwrites": (_overwrite("nvidia-cudnn-cu13 9.19.0.56"),)})),
        ("unknown", sample({"packages": ABSENT})),
    ),
)
def overwritten(case: Case) -> Iterator[Outcome]:
    see(case, lambda s: s.packages).need()
    failed = probe_error(case, "overwrites")
    if failed:
        yield unknown("environment", "Whether wheels overwrite each other", detail=failed)
        return
    if not case.snapshot.overwrites:
        evidence = [Evidence(pointer="/snapshot/overwrites", value="none", source="RECORD files")]
        yield passed("environment", "No installed packages share files", evidence=evidence)
    asked = {requirement_name(r) for _, _, framework in frameworks(case) for r in framework.requires}
    for i, shared in enumerate(case.snapshot.overwrites):
        pointer = f"/snapshot/overwrites/{i}"
        names = [p.partition(" ")[0] for p in shared.packages]
        wanted = [n for n in names if n in asked]
        on_disk = value_or(shared.on_disk, "")
        right = wanted == [on_disk.partition(" ")[0]] or not any(n.startswith("nvidia-cudnn") for n in names)
        keep = next((p for p in shared.packages if p.partition(" ")[0] in wanted[:1]), on_disk)
        others = [n for n in names if n != keep.partition(" ")[0]]
        yield problem(
            " and ".join(shared.packages),
            f"share {shared.files} files in {shared.directory}; on disk are those of {on_disk or 'an unknown one'}",
            evidence=[
                Evidence(pointer=f"{pointer}/packages", value=", ".join(shared.packages), source="RECORD files"),
                shown(shared.on_disk, f"{pointer}/on_disk"),
            ],
            fixes=[_keep(case, keep.replace(" ", "=="), others)],
            severity="warning" if right else None,
        )


def _keep(case: Case, keep: str, others: Sequence[str]) -> Fix:
    """Removing one takes the shared files of the other away, so that it has to be put back; pip asks before."""
    if not keep:
        text = "Keep the one that your framework was built for: uninstall the others, then install it again."
        return fix(text, pip(case, "list"), verify=again("CD308"))
    put_back = pip(case, "install", "--force-reinstall", "--no-deps", keep)
    text = f"Keep {keep}: remove {' and '.join(others)}, which takes the shared files away, and put it back."
    return fix(text, f"{pip(case, 'uninstall', *others)} && {put_back}", verify=again("CD308"))


@rule(
    "CD312",
    title="Whole files of a copy",
    severity="error",
    owner="environment",
    causes=("cudnn-sublibs-mixed",),
    explain="""A library that was cut off (a full disk, a broken download or copy) still has a good beginning, so that
the loader maps it; the process then ends with SIGBUS at the first page that is not there, or cuDNN says that a
sub-library is missing. The size on disk is held against what the file's own ELF headers speak of.""",
    source="System V ABI, chapters 4 and 5: the last segment and the section table lie inside the file",
    examples=lambda: (
        ("ok", sample({"cudnn.0.sublibraries": _sized(1000000)})),
        ("problem", sample({"cudnn.0.sublibraries": _sized(20000)})),
        ("skipped", sample()),
    ),
    follows=("CD308",),
)
def whole(case: Case) -> Iterator[Outcome]:
    for pointer, copy in copies(case):
        name = copy_name(copy)
        files = [
            (f"{pointer}/sublibraries/{i}/size", s.name, s.size, s.needed) for i, s in enumerate(copy.sublibraries)
        ]
        files = [f for f in [(f"{pointer}/size", copy.soname, copy.size, copy.needed), *files] if f[3]]
        cut = [f for f in files if f[2] < f[3]]
        if not files:
            yield skip(name, "nobody looked at the sizes that its files must have")
        elif not cut:
            at, file, size, needed = files[-1]
            evidence = [Evidence(pointer=at, value=f"{file}: {size} bytes, needed {needed}", source="ELF headers")]
            yield passed(name, f"None of its {len(files)} files is cut off", evidence=evidence)
        else:
            yield problem(
                name,
                f"{cut[0][1]} is cut off: {cut[0][2]} bytes, and its ELF headers need {cut[0][3]}"
                + (f" (and {len(cut) - 1} more files)" if len(cut) > 1 else ""),
                detail=_use(copy, used_by(case, copy)),
                evidence=[
                    Evidence(pointer=at, value=f"{file}: {size} bytes, needed {needed}", source="ELF headers")
                    for at, file, size, needed in cut
                ],
                fixes=reinstall(case, copy, "CD312"),
                severity=None if in_use(case, copy) else "note",
            )


def _sized(size: int) -> tuple[SubLibrary, ...]:
    mine = sample().snapshot.cudnn[0].sublibraries
    return tuple(replace(s, size=size if i == 1 else 1000000, needed=1000000) for i, s in enumerate(mine))
