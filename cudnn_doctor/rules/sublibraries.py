"""Which sub-libraries of a copy of cuDNN are not its own: replaced on disk, lying elsewhere, or found elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.facts import CudnnCopy
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.rules.base import Case, shown
from cudnn_doctor.rules.facts import copies, own_searches, same_version


class Foreign(NamedTuple):
    """One sub-library that is not of the copy's release, or may not be."""

    name: str
    version: str  # "" where it is not known
    folder: str  # where it comes from
    found: bool  # the loader takes it from there; otherwise it lies in the copy's own folder
    evidence: Evidence
    searched: str = ""  # the same folder as the search names it, links and all


def own_version(copy: CudnnCopy) -> str:
    """The release of most of its sub-libraries, by their names or the package that owns them; "" when none says."""
    versions = [s.version.value for s in copy.sublibraries if isinstance(s.version, Known)]
    return max(versions, key=versions.count, default="")


def foreign_sublibraries(case: Case, pointer: str, copy: CudnnCopy) -> tuple[Foreign, ...]:
    """All of them. A link farm whose links all lead into one folder is one copy; a file of it that lies elsewhere is
    not."""
    main = own_version(copy)
    on_disk: list[Foreign] = []
    opened = {s.wanted for _, s in own_searches(case, copy)}
    for i, sub in enumerate(copy.sublibraries):
        if opened and sub.name not in opened:
            continue  # a leftover of another release, which this one never opens
        place = f"{pointer}/sublibraries/{i}"
        folder = _folder(sub.real_path)
        if isinstance(sub.version, Known):
            if not same_version(sub.version.value, main):
                evidence = shown(sub.version, f"{place}/version", f"{sub.name} {sub.version.value}")
                on_disk.append(Foreign(sub.name, sub.version.value, folder, False, evidence))
        elif main and isinstance(copy.package, Known):  # which put the others there, but not this one
            on_disk.append(Foreign(sub.name, "", folder, False, shown(sub.version, f"{place}/version")))
        elif folder != copy.directory:
            evidence = Evidence(pointer=f"{place}/real_path", value=sub.real_path, source="symbolic link")
            on_disk.append(Foreign(sub.name, "", folder, False, evidence))
    return (*on_disk, *_found_elsewhere(case, copy, main))


def _found_elsewhere(case: Case, copy: CudnnCopy, main: str) -> tuple[Foreign, ...]:
    own = {p for s in copy.sublibraries for p in (s.path, s.real_path)}
    elsewhere = []
    for pointer, wish in own_searches(case, copy):
        path = value_or(wish.real_path, "")
        if wish.wanted.startswith("libcudnn_") and path and path not in own:
            version, other = _version_at(case, path), _flavour_at(case, path)
            mine = main or ("" if copy.sublibraries else value_or(copy.version, ""))  # a bundled shim has no parts
            flavour = value_or(copy.cuda_flavour, 0)
            if not (version and mine and same_version(version, mine)) or (flavour and other and other != flavour):
                evidence = shown(wish.real_path, f"{pointer}/real_path", f"{wish.wanted}: {path}")
                searched = _folder(value_or(wish.path, ""))
                elsewhere.append(Foreign(wish.wanted, version, _folder(path), True, evidence, searched))
    return tuple(elsewhere)


def _version_at(case: Case, real_path: str) -> str:
    """The release of a sub-library that belongs to another copy; "" when it is not known."""
    for _, copy in copies(case):
        for sub in copy.sublibraries:
            if sub.real_path == real_path:
                return value_or(sub.version, "") or ("" if isinstance(copy.version, Absent) else copy.version.value)
    return ""


def _flavour_at(case: Case, real_path: str) -> int:
    """The CUDA major of the copy that a sub-library belongs to; 0 where it is not known."""
    for _, copy in copies(case):
        if any(sub.real_path == real_path for sub in copy.sublibraries):
            return value_or(copy.cuda_flavour, 0)
    return 0


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
