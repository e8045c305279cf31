"""Readings that the compatibility rules share: which cuDNN a framework loads, its CUDA, the GPUs, pip commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cudnn_doctor.matrix.compat import LABELS, Judgement, built_cudnn
from cudnn_doctor.matrix.requires import specifier_for
from cudnn_doctor.model.base import Absent, Known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Framework, Resolution
from cudnn_doctor.model.report import Evidence, Fix
from cudnn_doctor.model.versions import cuda_version, numbers
from cudnn_doctor.rules.base import Case, Outcome, shown, skip, unknown
from cudnn_doctor.rules.facts import copies, frameworks, gpus, in_wsl, searches

if TYPE_CHECKING:
    from cudnn_doctor.matrix.rows import FrameworkRow

NAMES = frozenset({"cuDNN", "cuda-compat", *LABELS})


class Loaded(NamedTuple):
    """A framework and the cuDNN that the loader would give it here."""

    name: str  # "torch 2.11.0"
    pointer: str  # of the framework
    framework: Framework
    search: Resolution
    copy_pointer: str
    copy: CudnnCopy
    version: str  # of the copy; "" where it could not be read and was not asked for

    def evidence(self) -> list[Evidence]:
        return [
            framework_version(self.pointer, self.framework),
            shown(self.copy.version, f"{self.copy_pointer}/version"),
        ]


def framework_version(pointer: str, framework: Framework) -> Evidence:
    return Evidence(pointer=f"{pointer}/version", value=framework.version, source=framework.location)


def loaded(case: Case, *, versions: bool = True) -> Iterator[Loaded | Outcome]:
    """Each framework with the copy that it would load; an outcome instead where that is not known. A framework whose
    search was not worked out (cuDNN linked in, or none named) is left out. `versions`: one whose version is absent is
    no answer."""
    places = {path: (p, c) for p, c in copies(case) for path in (c.real_path, c.path)}
    pointers = {id(framework): p for p, _, framework in frameworks(case)}
    for _, name, framework, search in searches(case):
        if isinstance(search.real_path, Absent):
            yield skip(name, f"no {search.wanted} would be found for it")
            continue
        place = places.get(search.real_path.value)
        if place is None:
            yield unknown(name, "", detail=f"{search.real_path.value} is not among the cuDNN copies examined")
            continue
        pointer, copy = place
        if versions and isinstance(copy.version, Absent):
            yield unknown(name, "", detail=f"the version of {copy.path} is absent ({copy.version.reason})")
            continue
        yield Loaded(name, pointers[id(framework)], framework, search, pointer, copy, value_or(copy.version, ""))


def known_row(case: Case, framework: Framework) -> FrameworkRow | None:
    """The matrix row of a framework release, when its build is the one of that row: the same CUDA minor (PyTorch's own
    index offers the same release for several)."""
    plugin = framework.distribution.removeprefix("jax-").removesuffix("-plugin") if framework.name == "jax" else ""
    row = case.matrix.framework(framework.name, framework.version, distribution=plugin)
    stated = value_or(framework.built_cuda, "")
    if row and row.cuda and stated and "." in stated and cuda_version(stated) != cuda_version(row.cuda):
        return None
    return row


def built_cuda(case: Case, framework: Framework) -> str:
    """CUDA major.minor that a wheel was built with; its first minor where it states the major alone, "" for unknown."""
    row = known_row(case, framework)
    stated = value_or(framework.built_cuda, row.cuda if row else "")
    if not stated:
        return ""
    cuda = cuda_version(stated)
    if "." in cuda:
        return cuda
    return row.cuda if row and row.cuda and numbers(row.cuda)[0] == int(cuda) else f"{cuda}.0"


def compiled_cudnn(case: Case, framework: Framework) -> str:
    """The cuDNN that a wheel was compiled with, as exactly as its files and the matrix tell; "" for unknown."""
    stated = value_or(framework.built_cudnn, "")
    if known_row(case, framework) is None:
        return stated
    return built_cudnn(case.matrix, framework.name, framework.version, stated)


def flavour(copy: CudnnCopy) -> int | None:
    """CUDA major that a cuDNN is for: what its package says, else what the library says."""
    if isinstance(copy.cuda_flavour, Known):
        return copy.cuda_flavour.value
    return numbers(copy.cudart.value)[0] if isinstance(copy.cudart, Known) else None


def build_flavour(case: Case, copy: CudnnCopy, version: str) -> int | None:
    """The CUDA major under which the matrix has that release: the package's, the library's (they differ in mixed
    copies), or None for any."""
    said = [flavour(copy), *([numbers(copy.cudart.value)[0]] if isinstance(copy.cudart, Known) else [])]
    return next((major for major in said if major and case.matrix.cudnn_row(version, major)), None)


def capabilities(case: Case) -> dict[str, tuple[str, str, Evidence]]:
    """Compute capability -> (GPU name, "GPU 0 (NVIDIA H200)", evidence), one GPU of each."""
    found: dict[str, tuple[str, str, Evidence]] = {}
    for pointer, label, gpu in gpus(case):
        fact = gpu.compute_capability
        if isinstance(fact, Known):
            entry = (value_or(gpu.name, ""), label, shown(fact, f"{pointer}/compute_capability"))
            found.setdefault(fact.value, entry)
    return found


def driver_system(case: Case) -> str:
    """Whose driver releases count: those of Windows under WSL too."""
    return "windows" if in_wsl(case) or "Windows" in value_or(case.snapshot.host.os, "") else "linux"


def cited(judgement: Judgement) -> str:
    """Where a judgement comes from: "[the sources, checked 2026-11-30]"."""
    checked = f", checked {judgement.checked_on}" if judgement.checked_on else ""
    return f"[{judgement.source}{checked}]"


def sentence(text: str) -> str:
    """A capital at the front, except before names that have none."""
    return text if text.split(maxsplit=1)[0] in NAMES else text[:1].upper() + text[1:]


def outcome(
    judgement: Judgement,
    subject: str,
    title: str,
    *,
    evidence: Sequence[Evidence],
    fixes: Sequence[Fix],
    causes: Sequence[str] | None = None,
) -> Outcome:
    """A judgement as an outcome: `title`, fixes and causes are for the case that it is a problem."""
    bad = judgement.verdict == "problem"
    text = sentence(judgement.text)
    return Outcome(
        status=judgement.verdict,
        subject=subject,
        title=title if bad else text if judgement.verdict == "ok" else "",
        detail=cited(judgement) if judgement.verdict == "ok" else f"{text}. {cited(judgement)}",
        evidence=tuple(evidence),
        fixes=tuple(fixes) if bad else (),
        severity=judgement.severity if bad else None,
        causes=tuple(causes) if bad and causes is not None else None,
        basis=judgement.rule,
    )


def requirement(case: Case, framework: Framework, distribution: str) -> tuple[str, bool]:
    """The version range that a wheel declares for a cuDNN distribution, and whether it is one exact version."""
    row = known_row(case, framework)
    specifier = specifier_for((*framework.requires, *([row.cudnn_pin] if row else ())), distribution)
    return specifier, "==" in specifier
