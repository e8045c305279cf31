"""CD406 to CD410: each framework against the cuDNN that it would load. The rest of CD4xx is imported at the top.

Three verdicts for each framework, told apart: what its loader accepts (CD406 to CD408), what its wheel
declares (CD409), what was officially tested (CD410).
"""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.matrix.compat import Judgement, declared_range, loader_rule, official_table
from cudnn_doctor.matrix.pins import fitting_cudnn
from cudnn_doctor.model.base import Known, known, value_or
from cudnn_doctor.model.report import Fix
from cudnn_doctor.model.versions import numbers
from cudnn_doctor.rules.base import Case, Outcome, passed, rule, shown
from cudnn_doctor.rules.compat_build import cpu_only, known_bad, one_cuda, runtime_only
from cudnn_doctor.rules.compat_cuda import gpu_cuda
from cudnn_doctor.rules.compat_facts import (
    Loaded,
    built_cuda,
    capabilities,
    compiled_cudnn,
    flavour,
    loaded,
    outcome,
    requirement,
)
from cudnn_doctor.rules.compat_gpu import cudnn_code, driver_cudnn, driver_framework, driver_ptx, wheel_code
from cudnn_doctor.rules.facts import copies, copy_name
from cudnn_doctor.rules.remedies import SHOW_PATH, again, cure, fix, pip, quoted, satisfied, unshadow, without_folders
from cudnn_doctor.rules.sample import EX, sample

__all__ = [  # the rules that are written elsewhere; `all_rules` finds them here
    "cpu_only",
    "cudnn_code",
    "driver_cudnn",
    "driver_framework",
    "driver_ptx",
    "gpu_cuda",
    "known_bad",
    "one_cuda",
    "runtime_only",
    "wheel_code",
]

WHEEL_928 = known("nvidia-cudnn-cu13 9.28.0.42", EX)
XLA = "https://github.com/openxla/xla (xla/stream_executor/cuda/cuda_dnn.cc, CudnnSupport::Init)"


def _loader(case: Case, *rules: str) -> Iterator[tuple[Loaded, Judgement] | Outcome]:
    """Each framework with what its loader would say, where that falls under one of `rules`. What hinders the answer
    is reported with the first of them."""
    for found in loaded(case):
        if not isinstance(found, Loaded):
            if "loader" in rules:
                yield found
            continue
        built = compiled_cudnn(case, found.framework)
        judgement = loader_rule(case.matrix, found.framework.name, found.framework.version, built, found.version)
        if judgement.rule in rules:
            yield found, judgement


def _suitable(case: Case, found: Loaded) -> list[Fix]:
    """How to get the framework a cuDNN that it accepts: one that is here already, else a wheel."""
    built = compiled_cudnn(case, found.framework)
    accepted = [
        copy
        for _, copy in copies(case)
        if copy is not found.copy
        and isinstance(copy.version, Known)
        and copy.kind == "full"
        and _accepts(case, found, built, copy.version.value)
    ]
    fixes = []
    if accepted:
        step = found.search.step
        text = f"{copy_name(accepted[0])} would do, but {found.copy.path} is found first ({step})"
        leave = without_folders(case, found.copy.directory, found.copy.path.rpartition("/")[0])
        show = SHOW_PATH if "LD_LIBRARY_PATH" in step else ""
        fixes.append(cure(text, leave, verify=again("CD406")) if leave else fix(text, show, verify=again("CD406")))
    cuda = numbers(built_cuda(case, found.framework) or str(flavour(found.copy) or 12))[0]
    distribution = f"nvidia-cudnn-cu{cuda}"
    declared, _ = requirement(case, found.framework, distribution)
    candidates = fitting_cudnn(
        case.matrix,
        distribution,
        specifier=declared,
        capabilities=tuple(capabilities(case)),
        framework=found.framework.name,
        version=found.framework.version,
        machine=case.snapshot.host.machine,
    )
    release = next((v for v in candidates if _accepts(case, found, built, v)), "")
    if release and fixes and satisfied(case, f"{distribution}=={release}"):
        return fixes  # installed already, and not the one that is found
    if release:
        text = f"Install cuDNN {release}, which {found.name} accepts, and let no other copy come first"
        fixes.append(fix(text, pip(case, "install", f"{distribution}=={release}"), verify=again("CD406")))
    elif not fixes:
        text = f"Install cuDNN {built} for CUDA {cuda} from NVIDIA's archive; PyPI has none that {found.name} accepts"
        fixes.append(fix(text, verify=again("CD406")))
    return fixes


def _installed(case: Case, distribution: str) -> str:
    return next((p.version for p in value_or(case.snapshot.packages, ()) if p.name == distribution), "")


def _accepts(case: Case, found: Loaded, built: str, version: str) -> bool:
    return loader_rule(case.matrix, found.framework.name, found.framework.version, built, version).verdict == "ok"


def _shadowed(case: Case, found: Loaded, otherwise: str) -> tuple[str, ...]:
    built = compiled_cudnn(case, found.framework)
    others = [c for _, c in copies(case) if c is not found.copy and isinstance(c.version, Known) and c.kind == "full"]
    if any(_accepts(case, found, built, value_or(c.version, "0")) for c in others):
        return ("cudnn-shadowed", otherwise)
    return (otherwise,)


@rule(
    "CD406",
    title="Loaded cuDNN against the build: not older",
    severity="error",
    owner="environment",
    causes=("cudnn-runtime-too-old",),
    explain="""When it makes its first handle, a framework compares the cuDNN that it loaded with the one that it was
compiled with: TensorFlow from 1.8 on, JAX and PyTorch want the same major and the same or a newer minor; the patch
level does not count. "Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0" is this rule. It is
the one that decides: a version that differs from the official table is no fault by itself. Minor versions are whole
numbers, 9.10 is newer than 9.3.""",
    source=XLA + "; torch/backends/cudnn/__init__.py",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"cudnn.0.version": known("9.1.0", EX)})),
        ("ok", sample({"cudnn.0.version": known("9.28.0", EX), "frameworks.0.built_cudnn": known("9.3.0", EX)})),
        ("unknown", sample({"frameworks.0.version": "2.99.0", "cudnn.0.version": known("9.1.0", EX)})),
    ),
    follows=("CD303", "CD304", "CD308", "CD306", "CD305", "CD508"),
)
def loader_minor(case: Case) -> Iterator[Outcome]:
    for found in _loader(case, "loader", "loader:minor"):
        if isinstance(found, Outcome):
            yield found
            continue
        one, judgement = found
        yield outcome(
            judgement,
            one.name,
            f"{one.name} would load cuDNN {one.version}, older than it was compiled with",
            evidence=[*one.evidence(), shown(one.framework.built_cudnn, f"{one.pointer}/built_cudnn")],
            fixes=_suitable(case, one) if judgement.verdict == "problem" else (),
            causes=_shadowed(case, one, "cudnn-runtime-too-old"),
        )


@rule(
    "CD407",
    title="Loaded cuDNN against the build: exactly the same minor",
    severity="error",
    owner="environment",
    causes=("cudnn-exact-match-rule",),
    explain="""TensorFlow up to about 1.7, and every build for cuDNN 6 or older, wants the very minor that it was
compiled with: a newer one is refused as well ("Loaded runtime CuDNN library: 7102 (compatibility version 7100) but
source was compiled with 7005 (compatibility version 7000)").""",
    source="https://github.com/tensorflow/tensorflow/issues/36148",
    examples=lambda: (
        ("problem", sample(_tensorflow("1.7.0", "7.0", "7.1.2"))),
        ("ok", sample(_tensorflow("1.7.0", "7.0", "7.0.5"))),
        ("skipped", sample()),
    ),
    follows=("CD303", "CD304", "CD308", "CD306", "CD305", "CD508"),
)
def loader_exact(case: Case) -> Iterator[Outcome]:
    for found in _loader(case, "loader:exact"):
        if not isinstance(found, Outcome):
            one, judgement = found
            yield outcome(
                judgement,
                one.name,
                f"{one.name} accepts only the cuDNN minor that it was compiled with",
                evidence=[*one.evidence(), shown(one.framework.built_cudnn, f"{one.pointer}/built_cudnn")],
                fixes=_suitable(case, one) if judgement.verdict == "problem" else (),
                causes=_shadowed(case, one, "cudnn-exact-match-rule"),
            )


def _tensorflow(version: str, built: str, loaded_version: str, **more: object) -> dict[str, object]:
    """Changes to the healthy sample: TensorFlow compiled with one cuDNN, another one loaded."""
    return {
        "frameworks.0.name": "tensorflow",
        "frameworks.0.distribution": "tensorflow",
        "frameworks.0.version": version,
        "frameworks.0.built_cudnn": known(built, EX),
        "resolutions.1.consumer": "tensorflow",
        "cudnn.0.version": known(loaded_version, EX),
        **more,
    }


@rule(
    "CD408",
    title="Major of the loaded cuDNN",
    severity="error",
    owner="environment",
    causes=("cudnn-wrong-build",),
    explain="""No cuDNN serves a program compiled for another major: the interfaces differ, and cuDNN 9 renumbered its
status codes. The file name holds the major (libcudnn.so.8, libcudnn.so.9), so that this happens only where a link or
a renamed file leads to the wrong one.""",
    source="https://docs.nvidia.com/deeplearning/cudnn/latest/developer/forward-compatibility.html",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"cudnn.0.version": known("8.9.7", EX)})),
        ("skipped", sample({"resolutions": ()})),
    ),
    follows=("CD303", "CD304", "CD308", "CD306", "CD305", "CD508"),
)
def loader_major(case: Case) -> Iterator[Outcome]:
    for found in _loader(case, "loader:major", "loader:minor", "loader:exact"):
        if isinstance(found, Outcome):
            continue
        one, judgement = found
        evidence = [*one.evidence(), shown(one.framework.built_cudnn, f"{one.pointer}/built_cudnn")]
        if judgement.rule != "loader:major":
            yield passed(one.name, f"{one.name} would load cuDNN {one.version}, of its own major", evidence=evidence)
            continue
        yield outcome(
            judgement,
            one.name,
            f"{one.name} would load cuDNN {one.version}, of a major that it does not know",
            evidence=evidence,
            fixes=_suitable(case, one) if judgement.verdict == "problem" else (),
        )


@rule(
    "CD409",
    title="Loaded cuDNN against the range that the wheel declares",
    severity="warning",
    owner="environment",
    causes=("cudnn-runtime-too-old", "cudnn-shadowed"),
    explain="""A wheel says in its own metadata (Requires-Dist) which cuDNN wheel belongs to it: an exact version in
most, a range in tensorflow[and-cuda] from 2.20 on and in JAX. pip checks it at installation only; a later
installation, another cuDNN wheel in the same folder or a copy found first may lead elsewhere. The framework may still
accept what it loads (CD406 tells), but nobody tested it.""",
    source="METADATA of the installed wheel",
    examples=lambda: (
        ("ok", sample()),
        ("problem", sample({"cudnn.0.version": known("9.28.0", EX), "cudnn.0.package": WHEEL_928})),
        ("skipped", sample({"frameworks.0.requires": ()})),
    ),
    follows=("CD303", "CD304", "CD308", "CD306", "CD305", "CD508"),
)
def declared(case: Case) -> Iterator[Outcome]:
    for found in loaded(case):
        if not isinstance(found, Loaded):
            continue
        installed = {p.name for p in value_or(case.snapshot.packages, ())}
        owner, _, version = value_or(found.copy.package, "").partition(" ")
        judgements = declared_range(
            found.framework.requires,
            {owner: version} if version else {},
            other=found.version,
            installed=installed,
            python=value_or(case.snapshot.patient.python_version, ""),
            machine=case.snapshot.host.machine,
            system="windows" if "Windows" in value_or(case.snapshot.host.os, "") else "linux",
        )
        for judgement in judgements:
            name = judgement.text.removeprefix("requires ").rpartition(", found ")[0]
            yield outcome(
                judgement,
                found.name,
                f"{found.name} would load cuDNN {found.version}, outside the range that its wheel declares",
                evidence=[*found.evidence(), shown(found.copy.package, f"{found.copy_pointer}/package")],
                fixes=[
                    unshadow(case, found.copy, found.search, "CD409")
                    if satisfied(case, name)
                    else fix("Install what the wheel asks for", pip(case, "install", name), verify=again("CD409"))
                ],
            )


@rule(
    "CD410",
    title="Official table of tested builds",
    severity="note",
    owner="environment",
    causes=(),
    explain="""TensorFlow's web page names one CUDA and one cuDNN for each release. That pair was tested, no more:
newer minors work (CD406), the wheels ask for others, and the table itself has been wrong (2.5 once said 8.0 with 11.0
where 8.1 with 11.2 was built, 2.15 said 8.8 where 8.9 was). It helps as a known good state when everything else has
failed.""",
    source="https://www.tensorflow.org/install/source#gpu",
    examples=lambda: (
        ("ok", sample(_tensorflow("2.18.0", "9", "9.3.0", **{"frameworks.0.built_cuda": known("12.5.1", EX)}))),
        ("problem", sample(_tensorflow("2.21.0", "9", "9.28.0", **{"frameworks.0.built_cuda": known("12.5.1", EX)}))),
        ("unknown", sample(_tensorflow("2.99.0", "9", "9.28.0"))),
        ("skipped", sample()),
    ),
    follows=("CD303", "CD304", "CD308", "CD306", "CD305", "CD508"),
)
def tested(case: Case) -> Iterator[Outcome]:
    for found in loaded(case):
        if not isinstance(found, Loaded) or found.framework.name != "tensorflow":
            continue
        cuda = built_cuda(case, found.framework)
        judgement = official_table(
            case.matrix,
            found.framework.version,
            cuda=cuda,
            cudnn=found.version,
            system="windows" if "Windows" in value_or(case.snapshot.host.os, "") else "linux",
        )
        text = "Nothing needs to be done while CD406 is content; the tested pair is a known good state to compare with"
        yield outcome(
            judgement,
            found.name,
            f"{found.name} runs with other versions than the tested ones",
            evidence=[*found.evidence(), shown(found.framework.built_cuda, f"{found.pointer}/built_cuda")],
            fixes=[
                fix(text, f"cudnn-doctor matrix tensorflow {quoted(found.framework.version)}", verify=again("CD406"))
            ],
        )
