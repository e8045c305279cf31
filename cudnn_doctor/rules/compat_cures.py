"""What to install or change: the matrix solver asked with the Python, machine, GPUs and driver of the patient."""

from __future__ import annotations

from cudnn_doctor.matrix.builds import Catalog
from cudnn_doctor.matrix.fits import what
from cudnn_doctor.matrix.solve import Driver, Option, Solver, driver_for
from cudnn_doctor.matrix.target import target_of
from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.facts import Framework
from cudnn_doctor.model.report import Fix
from cudnn_doctor.model.versions import numbers
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.facts import in_container, in_wsl
from cudnn_doctor.rules.remedies import again, fix, pip

SHOW_DRIVER = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
OPEN_ONLY = (10,)  # Blackwell and newer have open kernel modules alone
CLOSED_ONLY = (7, 5)  # before Turing there are none


def cures(case: Case, framework: Framework, code: str) -> list[Fix]:
    """What makes a framework run here, the cheapest change first; [] where the matrix does not know the release or
    nothing fits."""
    target = target_of(case.snapshot)
    solver = Solver(Catalog(case.matrix, target.wheels, target.machine))
    release = framework.version.partition("+")[0]
    if not solver.catalog.of_release(framework.name, release):
        return []
    found = solver.solve(framework.name, target, release=release, variant=_variant(solver, framework, release))
    return [one for option in found.options for one in _fixes(case, framework, option, code)]


def _variant(solver: Solver, framework: Framework, release: str) -> str | None:
    """The build that is installed, as far as its name tells."""
    local = framework.version.partition("+")[2]
    if framework.name == "jax":
        local = framework.distribution.removeprefix("jax-").removesuffix("-plugin")
    builds = solver.catalog.of_release(framework.name, release)
    return local if any(b.variant == local for b in builds) else None


def _fixes(case: Case, framework: Framework, option: Option, code: str) -> list[Fix]:
    steps = []
    if "driver" in option.changes and option.driver:
        steps.append(newer_driver(case, option.driver, code))
        if not set(option.changes) - {"driver"}:
            return steps
    wanted = what(option.build)
    if "python" in option.changes:
        text = f"Make an environment with Python {option.python}, and install {' '.join(option.fit.line.requirements)}"
        return [*steps, fix(text, verify=again(code))]
    text = (
        f"Install {wanted}" if "release" in option.changes else f"Install another build of {framework.name}: {wanted}"
    )
    if option.changes == ("pin",):
        text = f"Install {option.fit.line.cudnn_wanted} with {wanted}"
    words = pip(case, "install", *option.fit.line.arguments)
    return [*steps, fix(f"{text}, which fits this machine", words, verify=again(code))]


def newer_driver(case: Case, need: Driver, code: str) -> Fix:
    """Words, not a command: how a driver is installed is the machine's own affair."""
    if not need.branch:
        text = "No driver that serves this CUDA knows this GPU: use a build for an older CUDA"
        return fix(text, verify=again(code))
    least = f" (at least {need.least})" if need.least and numbers(need.least)[0] != int(need.branch) else ""
    if in_wsl(case):
        text = (
            f"Install NVIDIA driver branch {need.branch} or newer{least} in Windows; nothing is to be installed in WSL"
        )
        return fix(text, verify=SHOW_DRIVER)
    where = "on the host, not in the container" if in_container(case) else "and restart the machine"
    return fix(f"Install driver branch {need.branch} or newer{least} {where}{_modules(case)}", verify=SHOW_DRIVER)


def _modules(case: Case) -> str:
    capabilities = [numbers(cc) for cc in target_of(case.snapshot).capabilities]
    if any(cc >= OPEN_ONLY for cc in capabilities):
        return "; this GPU needs the open kernel modules (nvidia-open, or the package with -open in its name)"
    if any(cc < CLOSED_ONLY for cc in capabilities):
        return "; this GPU needs the proprietary kernel modules (the package without -open in its name)"
    return ""


def needed_driver(case: Case, cuda: str, *, ptx: bool = False) -> Driver:
    """The driver that programs of a CUDA need with the GPUs here; `ptx`: that must compile PTX."""
    return driver_for(case.matrix, cuda, target_of(case.snapshot), ptx=ptx)


def gpu_build(case: Case, framework: Framework, code: str) -> list[Fix]:
    """The GPU build in place of a CPU-only one. Both keep their files in one folder: the old one goes first."""
    target = target_of(case.snapshot)
    solver = Solver(Catalog(case.matrix, target.wheels, target.machine))
    release = framework.version.partition("+")[0]
    if not solver.catalog.of_release(framework.name, release):
        return []
    found = solver.solve(framework.name, target, release=release)
    fixes = []
    for option in found.options:
        if "python" in option.changes or "driver" in option.changes:
            fixes += _fixes(case, framework, option, code)
            continue
        words = pip(case, "install", *option.fit.line.arguments)
        if value_or(framework.cuda_build, True) is False and not option.build.index:
            words = f"{pip(case, 'uninstall', framework.distribution)} && {words}"
        fixes.append(fix(f"Install the GPU build {what(option.build)} in its place", words, verify=again(code)))
    return fixes
