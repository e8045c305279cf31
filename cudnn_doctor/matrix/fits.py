"""The one predicate: does this build run on that machine?

It joins what the tables hold apart: the wheel's Pythons and machine, its code and the GPU, its CUDA and the GPU's first
and last, the cuDNN that pip installs with it, the driver's branch and the driver's knowledge of the GPU. Three answers:
"fits", "does not" (a judgement says which fact and its source), "undecided". What was not said of the machine is not
judged: without a GPU no GPU is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import cache
from typing import Literal

import msgspec

from cudnn_doctor.matrix.builds import Build
from cudnn_doctor.matrix.compat import (
    LABELS,
    cautions,
    cudnn_for_gpu,
    driver_for_cuda,
    driver_for_gpu,
    loader_rule,
    service,
    wheel_for_gpu,
)
from cudnn_doctor.matrix.judgement import Judgement, judged, undecided
from cudnn_doctor.matrix.pins import fitting_cudnn, pin
from cudnn_doctor.matrix.rows import JaxRow
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.matrix.target import Target
from cudnn_doctor.model.versions import below, in_python_range, numbers, within

Verdict = Literal["fits", "does not", "undecided"]
AXES = {"wheel": "python", "driver": "driver", "driver-gpu": "driver"}  # rule -> what of the machine it is about
NEWEST = "999"  # some release of a branch
JETSON_BEFORE_THOR = ("5.3", "6.2", "7.2", "8.7")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A build with the pins that belong to it: what pip is asked for."""

    build: Build
    cudnn: str = ""  # the cuDNN that pip then installs; "" when it installs none
    cudnn_wanted: str = ""  # the requirement that brings that about, where the framework's own does not

    @property
    def requirements(self) -> tuple[str, ...]:
        extra = (self.cudnn_wanted,) if self.cudnn_wanted else ()
        return (self.build.requirement, *extra, *self.build.row.constraint)

    @property
    def arguments(self) -> tuple[str, ...]:
        """For `pip install`."""
        return self.requirements + (("--index-url", self.build.index) if self.build.index else ())


class Part(msgspec.Struct, frozen=True):
    """The judgements on one aspect, and what they come to."""

    judgements: tuple[Judgement, ...] = ()
    axes: frozenset[str] = frozenset()  # of the errors: "python", "driver", "build"
    warnings: int = 0
    open: bool = False  # something is not known


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one line on one machine. `axes` names what speaks against it: "python" or "driver" of the machine,
    "build" when neither would help."""

    line: Line
    judgements: tuple[Judgement, ...]
    verdict: Verdict
    axes: frozenset[str]
    cautions: int  # how many warnings

    @property
    def errors(self) -> tuple[Judgement, ...]:
        return tuple(j for j in self.judgements if j.verdict == "problem" and j.severity == "error")

    @property
    def warnings(self) -> tuple[Judgement, ...]:
        return tuple(j for j in self.judgements if j.verdict == "problem" and j.severity == "warning")


def line_for(matrix: Matrix, build: Build, target: Target) -> Line:
    """The build with the newest cuDNN that serves the GPUs within what the build requires, pinned where pip alone
    would take another one."""
    if build.variant.startswith("cu1") and build.framework == "torch":
        return Line(build=build, cudnn=build.built_cudnn)
    distribution, specifier = _cudnn_wheel(matrix, build)
    if not distribution:
        return Line(build=build)
    own = next(fitting_cudnn(matrix, distribution, specifier=specifier), "")
    candidates = fitting_cudnn(
        matrix,
        distribution,
        specifier=specifier,
        capabilities=target.capabilities,
        framework=build.framework,
        version=build.release,
        machine=build.machine,
    )
    good = next((v for v in candidates if _accepts(matrix, build, v)), "")
    if not good:
        return Line(build=build, cudnn=own)
    if build.cudnn_pin and good == own:
        return Line(build=build, cudnn=good)
    return Line(build=build, cudnn=good, cudnn_wanted=pin(matrix, distribution, good) or f"{distribution}=={good}")


def _accepts(matrix: Matrix, build: Build, cudnn: str) -> bool:
    return loader_rule(matrix, build.framework, build.release, build.built_cudnn, cudnn).verdict != "problem"


def _cudnn_wheel(matrix: Matrix, build: Build) -> tuple[str, str]:
    """The distribution and range of the cuDNN for a build: what it requires; for a TensorFlow that brings none the
    wheel for its CUDA on Linux. ("", "") where pip has none for it."""
    if build.cudnn_pin:
        at = next(i for i, c in enumerate(build.cudnn_pin) if c in "=<>!~")
        return build.cudnn_pin[:at], build.cudnn_pin[at:]
    if build.framework != "tensorflow" or build.system == "windows" or not build.cuda or not build.built_cudnn:
        return "", ""
    distribution = f"nvidia-cudnn-cu{numbers(build.cuda)[0]}"
    wheels = matrix.wheels(distribution)
    if not build.gpu or wheels is None:
        return "", ""
    specifier = f">={build.built_cudnn},<{numbers(build.built_cudnn)[0] + 1}"
    return distribution, specifier


class Judge:
    """Judges builds, each aspect of each build once: a search asks the same many times."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self._lines: dict[tuple[Hashable, ...], Line] = {}
        self._parts: dict[tuple[Hashable, ...], Part] = {}
        self._both: dict[tuple[int, int], Part] = {}

    def fit(self, build: Build, target: Target) -> Fit:
        """The answer for the line that `line_for` makes of a build."""
        key = (build.requirement, build.system, build.machine)
        for_gpus = (*key, target.capabilities)
        line = self._lines.get(for_gpus)
        if line is None:
            line = self._lines[for_gpus] = line_for(self.matrix, build, target)
        parts = [self._part(("wheel", *key, target.python, target.system), _wheel, line, target)]
        if build.gpu:
            parts.append(self._part(("gpu", *key, target.capabilities), _own, line, target))
            if target.driver:
                ptx = only_ptx(build, target)
                of_driver = (target.driver, target.serves, target.compat, target.gpu, target.driver_system)
                of_build = build.cuda or what(build)
                on = ("driver", of_build, ptx, target.capabilities, *of_driver)
                parts.append(self._part(on, _driver, line, target))
        whole = parts[0]
        for part in parts[1:]:
            whole = self._joined(whole, part)
        verdict: Verdict = "does not" if whole.axes else "undecided" if whole.open else "fits"
        return Fit(line=line, judgements=whole.judgements, verdict=verdict, axes=whole.axes, cautions=whole.warnings)

    def _joined(self, one: Part, two: Part) -> Part:
        """Two aspects as one. Parts are kept for good, so that what they are is a key."""
        key = (id(one), id(two))
        found = self._both.get(key)
        if found is None:
            found = self._both[key] = Part(
                one.judgements + two.judgements,
                one.axes | two.axes,
                one.warnings + two.warnings,
                one.open or two.open,
            )
        return found

    def _part(
        self,
        key: tuple[Hashable, ...],
        rule: Callable[[Matrix, Line, Target], Iterator[Judgement]],
        line: Line,
        target: Target,
    ) -> Part:
        found = self._parts.get(key)
        if found is None:
            judgements = tuple(rule(self.matrix, line, target))
            problems = [j for j in judgements if j.verdict == "problem"]
            found = self._parts[key] = Part(
                judgements,
                frozenset(AXES.get(j.rule.partition(":")[0], "build") for j in problems if j.severity == "error"),
                sum(j.severity == "warning" for j in problems),
                any(j.verdict == "unknown" for j in judgements),
            )
        return found


def what(build: Build) -> str:
    """ "PyTorch 2.14.1 (cu126)"."""
    return f"{LABELS[build.framework]} {build.release}" + (f" ({build.variant})" if build.variant else "")


def _own(matrix: Matrix, line: Line, target: Target) -> Iterator[Judgement]:
    """The build by itself: its loader and the cuDNN that pip installs, its code and the GPUs."""
    build = line.build
    if not build.cuda:
        yield undecided("build:unknown", f"what {what(build)} was built with is not known", matrix, build.row.cited)
    if line.cudnn and build.cudnn_pin:
        built = build.built_cudnn or line.cudnn
        yield loader_rule(matrix, build.framework, build.release, built, line.cudnn)
    for cc in target.capabilities:
        yield from _gpu(matrix, line, cc)


def _wheel(matrix: Matrix, line: Line, target: Target) -> Iterator[Judgement]:
    build = line.build
    if target.system == "macos":
        text = "macOS has no CUDA: NVIDIA's last drivers for it ended with CUDA 10.2"
        yield judged("problem", "build:system", text, matrix.cuda[0])
        return
    if not build.gpu:
        yield judged("problem", "build", _why_no_gpu(build), build.wheels)
        return
    if not build.pythons:
        yield judged("problem", "build:wheel", _why_no_wheel(build), build.wheels)
        return
    if target.python:
        fits = in_python_range(target.python, build.pythons)
        text = f"{what(build)} has wheels for Python {said_pythons(build.pythons)}"
        text += "" if fits else f", not for {target.python}"
        yield judged("ok" if fits else "problem", "wheel", text, build.wheels)


def said_pythons(ranges: str) -> str:
    """ "2.7 3.3-3.6" in words."""
    parts = [f"{a} to {b}" if b else a for a, _, b in (p.partition("-") for p in ranges.split())]
    return ", ".join(parts)


def _why_no_gpu(build: Build) -> str:
    if build.system == "windows" and build.framework == "tensorflow":
        return (
            f"TensorFlow {build.release} has no GPU build for native Windows; use WSL2, or TensorFlow 2.10 as the last"
        )
    if build.system == "windows" and build.framework == "jax":
        return f"JAX {build.release} has no CUDA plugin for Windows; use WSL2"
    where = f"Linux on {build.machine}" if build.system == "linux" else "Windows"
    if build.machine == "aarch64" and build.framework == "tensorflow":
        return f"PyPI's TensorFlow {build.release} for {where} is CPU-only; NVIDIA's own containers have the GPU build"
    return f"{what(build)} has no build with GPU code on PyPI for {where}"


def _why_no_wheel(build: Build) -> str:
    if build.requirement.startswith("tensorflow[and-cuda]==2.15.0"):
        return f"pip resolves {build.requirement} on no Python: it pins tensorrt-libs 8.6.1, which is not on PyPI"
    where = f"Linux on {build.machine}" if build.system == "linux" else "Windows"
    if build.framework == "jax":
        return f"pip cannot install {what(build)} for {where}: PyPI has no wheel of it, or none of what it requires"
    return f"{what(build)} has no wheel for {where}"


# ---------------------------------------------------------------- GPU


def _gpu(matrix: Matrix, line: Line, cc: str) -> Iterator[Judgement]:
    build = line.build
    if cc in JETSON_BEFORE_THOR:
        row = matrix.gpu(cc)
        name = row.products if row else cc
        text = f"wheels on PyPI are not for {name}: take those that NVIDIA builds for its JetPack"
        yield judged("problem", "build:jetson", text, row or matrix.gpus[-1])
        return
    yield _code(matrix, build, cc)
    if cudnn := line.cudnn:
        flavour = numbers(build.cuda)[0] if build.cuda else None
        yield cudnn_for_gpu(matrix, cudnn, cc, flavour=flavour, machine=build.machine)
    elif build.built_cudnn and not build.variant:  # from NVIDIA's archive
        yield cudnn_for_gpu(matrix, build.built_cudnn, cc, flavour=numbers(build.cuda)[0] if build.cuda else None)
    yield from cautions(
        matrix, build.framework, build.release, cudnn=line.cudnn, capabilities=(cc,), built=build.built_cudnn
    )


def _code(matrix: Matrix, build: Build, cc: str) -> Judgement:
    """Whether the wheel has code for a GPU, from its architectures; else from what its CUDA can target."""
    if isinstance(build.row, JaxRow) and not build.capabilities:
        return _jax_code(matrix, build, build.row, cc)
    if build.capabilities:
        return wheel_for_gpu(matrix, what(build), build.capabilities, cc, build.row)
    outside = _outside_cuda(matrix, build, cc)
    return outside or undecided("wheel-gpu", f"the architectures in {what(build)} are not known", matrix)


def _outside_cuda(matrix: Matrix, build: Build, cc: str) -> Judgement | None:
    """A problem when the CUDA of a build cannot target the GPU, whatever the build carries."""
    gpu = matrix.gpu(cc)
    if gpu is None or not build.cuda:
        return None
    if below(build.cuda, gpu.cuda_min):
        kin = [g for g in matrix.gpus if numbers(g.cc)[0] == numbers(cc)[0] and numbers(g.cc) <= numbers(cc)]
        if all(below(build.cuda, g.cuda_min) for g in kin):
            text = f"{what(build)} is built with CUDA {build.cuda}; {gpu.arch} ({cc}) came with CUDA {gpu.cuda_min}"
            return judged("problem", "cuda-gpu:older", text, gpu)
        return None
    if gpu.cuda_max and not within(build.cuda, "0", gpu.cuda_max):
        text = f"{what(build)} is built with CUDA {build.cuda}; the last for {gpu.arch} ({cc}) is CUDA {gpu.cuda_max}"
        return judged("problem", "cuda-gpu:newer", text, gpu)
    return None


def _jax_code(matrix: Matrix, build: Build, row: JaxRow, cc: str) -> Judgement:
    gpu = matrix.gpu(cc)
    if row.serves and below(cc, row.serves):
        text = f"{what(build)} is for compute capability {row.serves} and newer, not for {cc}"
        return judged("problem", "wheel-gpu:none", text, row)
    outside = _outside_cuda(matrix, build, cc)
    if outside and outside.rule == "cuda-gpu:newer":
        return outside
    newer = gpu is None or below(build.cuda, gpu.cuda_min)
    if newer or matrix.gpu_class(gpu.products if gpu else "") == "jetson":
        text = f"whether {what(build)}, built with CUDA {build.cuda}, serves compute capability {cc} is not known"
        return undecided("wheel-gpu", text, matrix, row.cited)
    text = f"{what(build)} is for compute capability {row.serves} and newer, {cc} among them"
    return judged("ok", "wheel-gpu", text, row, sure="B")


# ---------------------------------------------------------------- driver


def only_ptx(build: Build, target: Target) -> bool:
    """Whether the driver must compile PTX for one of the GPUs."""
    return any(_serves(build.capabilities, cc) == "ptx" for cc in target.capabilities if build.capabilities)


_serves = cache(service)  # few lists of code, asked again and again


def _driver(matrix: Matrix, line: Line, target: Target) -> Iterator[Judgement]:
    """A branch alone ("470") is taken as its newest release."""
    alone = "." not in target.driver
    release = f"{target.driver}.{NEWEST}" if alone else target.driver
    for judgement in _driver_release(matrix, line, target, release):
        if alone:
            text = judgement.text.replace(release, f"{target.driver} (its newest release)")
            yield msgspec.structs.replace(judgement, text=text)
        else:
            yield judgement


def _driver_release(matrix: Matrix, line: Line, target: Target, release: str) -> Iterator[Judgement]:
    build = line.build
    for cc in target.capabilities:
        yield driver_for_gpu(matrix, cc, release, system=target.driver_system)
    if build.cuda:
        yield driver_for_cuda(
            matrix,
            build.cuda,
            release,
            system=target.driver_system,
            ptx=only_ptx(build, target),
            serves=target.serves,
            compat=target.compat,
            gpu=target.gpu,
        )
