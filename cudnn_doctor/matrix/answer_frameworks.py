"""`matrix tensorflow`, `matrix torch`, `matrix jax`: the solver's answers with the facts beside them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cudnn_doctor.matrix.builds import Catalog
from cudnn_doctor.matrix.compat import LABELS
from cudnn_doctor.matrix.fits import Fit, said_pythons
from cudnn_doctor.matrix.judgement import judged, undecided
from cudnn_doctor.matrix.question import Answer, Ask, Fact, QuestionError, Way, fact, near, release
from cudnn_doctor.matrix.rows import JaxRow, TensorFlowRow
from cudnn_doctor.matrix.solve import Option, Solution, Solver
from cudnn_doctor.matrix.target import Target
from cudnn_doctor.matrix.words import way
from cudnn_doctor.model.versions import in_python_range, numbers

NEWEST = ("", "latest", "newest", "stable", "current")
CONTAINERS = {
    "tensorflow": "NVIDIA's container nvcr.io/nvidia/tensorflow has the GPU build for this machine.",
    "torch": "NVIDIA's container nvcr.io/nvidia/pytorch has the GPU build for this machine.",
    "jax": "NVIDIA's container nvcr.io/nvidia/jax has the GPU build for this machine.",
}


def tensorflow(name: str, ask: Ask) -> Answer:
    """Facts and verdicts on a TensorFlow release."""
    return _framework("tensorflow", name, ask)


def torch(name: str, ask: Ask) -> Answer:
    """Facts and verdicts on a PyTorch release; "2.4.1+cu124" names a build."""
    return _framework("torch", name, ask)


def jax(name: str, ask: Ask) -> Answer:
    """Facts and verdicts on a JAX release: the better of its CUDA plugins."""
    return _framework("jax", name, ask)


def machine_words(ask: Ask) -> str:
    """The machine of a question in one line."""
    target = ask.target
    parts = [target.gpu or " ".join(target.capabilities), f"driver {target.driver}" if target.driver else ""]
    parts += [f"Python {target.python}" if target.python else "", target.system, target.machine]
    return ", ".join(p for p in parts if p)


# ---------------------------------------------------------------- one framework


def _framework(framework: str, name: str, ask: Ask) -> Answer:
    version, variant = _find(framework, name, ask)
    if version and not ask.solver.catalog.of_release(framework, version):
        return _newer(framework, version, ask)
    found = _solve(framework, version, variant, ask)
    label = f"{LABELS[framework]} {version}".rstrip() + (f"+{variant}" if variant and framework == "torch" else "")
    if framework == "jax" and found.asked:
        variant = found.asked.line.build.variant
    build = found.asked.line.build if found.asked else None
    ways = tuple(way(option, ask, build) for option in found.options)
    first = found.options[0] if found.options else None
    return Answer(
        subject=framework,
        name=version,
        title=label if version else f"{label} on {machine_words(ask)}",
        facts=tuple(_facts(found.asked, first, ask)),
        verdicts=(found.asked or (first.fit if first else _newest(framework, ask))).judgements,
        command=ways[0].command if ways else "",
        checked=_checked(first),
        condition=_condition(ways[0], first) if ways and first else "",
        ways=ways,
        notes=tuple(dict.fromkeys(_notes(framework, found, ways, ask))),
    )


def _newest(framework: str, ask: Ask) -> Fit:
    """The newest release judged: what speaks against it when nothing fits."""
    build = next(b for b in ask.solver.catalog.builds(framework) if not b.pre)
    return ask.solver.fit(build, ask.target)


def _solve(framework: str, version: str, variant: str | None, ask: Ask) -> Solution:
    """JAX has two default builds: the better one is what was asked for."""
    if framework != "jax" or not version or variant:
        return ask.solver.solve(framework, ask.target, release=version, variant=variant)
    both = [
        ask.solver.solve(framework, ask.target, release=version, variant=b.variant)
        for b in ask.solver.catalog.of_release(framework, version)
    ]
    worth = {"fits": 0, "undecided": 1, "does not": 2}
    return min(both, key=lambda s: (worth[s.asked.verdict], s.asked.cautions) if s.asked else (3, 0))


def _condition(one: Way, option: Option) -> str:
    changed = {"python": f"with Python {option.python}", "driver": "with another driver"}
    said = [changed[c] for c in option.changes if c in changed]
    return "; ".join([*said, one.needs] if one.needs else said)


def _checked(option: Option | None) -> str:
    rules = dict.fromkeys(
        j.rule.partition(":")[0] for j in (option.fit.judgements if option else ()) if j.verdict == "ok"
    )
    return ", ".join(rules)


def _facts(asked: Fit | None, first: Option | None, ask: Ask) -> Iterator[Fact]:
    fit = asked or (first.fit if first else None)
    if fit is None:
        return
    build, row = fit.line.build, fit.line.build.row
    if isinstance(row, TensorFlowRow):
        if row.cuda and row.cudnn:
            text = f"CUDA {row.cuda}, cuDNN {row.cudnn}, Python {row.python.replace(' ', ', ')}"
            yield fact("tested on Linux", text, row)
        if row.windows_cuda:
            text = f"CUDA {row.windows_cuda}, cuDNN {row.windows_cudnn}, Python {row.windows_python}"
            yield fact("tested on Windows", text, row)
    if build.pre:
        yield fact("kind", "a release candidate", row)
    if not build.gpu:
        return
    if build.cuda or build.built_cudnn:
        parts = [f"CUDA {build.cuda}" if build.cuda else "", f"cuDNN {build.built_cudnn}" if build.built_cudnn else ""]
        yield fact("built with", ", ".join(p for p in parts if p), row)
    else:
        yield fact("built with", "not known: its build_info does not say", row)
    if build.pythons:
        where = "Windows" if build.system == "windows" else f"Linux on {build.machine}"
        yield fact("wheels for", f"Python {said_pythons(build.pythons)} ({where})", build.wheels)
    if build.capabilities:
        yield fact("code for", " ".join(build.capabilities), row)
    if isinstance(row, JaxRow) and row.serves:
        yield fact("code for", f"compute capability {row.serves} and newer, by its documentation", row)
    if build.cudnn_pin:
        yield fact("requires", ", ".join(p for p in (build.cudnn_pin, row.cuda_pin) if p), row)
    if fit.line.cudnn:
        yield fact("cuDNN that it gets", fit.line.cudnn, row)
    if build.framework == "torch":
        others = [
            b.variant or "PyPI" for b in ask.solver.catalog.of_release("torch", build.release) if b.variant or b.gpu
        ]
        yield fact("builds", ", ".join(others), row)


def _notes(framework: str, found: Solution, ways: tuple[Way, ...], ask: Ask) -> Iterator[str]:
    if ways:
        yield from ways[0].notes
    else:
        yield from without(framework, ask)
    yield from _elsewhere(framework, ask)
    yield from _candidate(framework, ask)
    if found.asked and found.asked.verdict == "undecided":
        open_ = [j.text for j in found.asked.judgements if j.verdict == "unknown"]
        yield "Not decided: " + "; ".join(open_) + "."


def _candidate(framework: str, ask: Ask) -> Iterator[str]:
    """A release candidate that has the wheel for the Python here, when no release has."""
    builds = ask.solver.catalog.builds(framework)
    python = ask.target.python
    if not python or not builds[0].pre or not in_python_range(python, builds[0].pythons):
        return
    if not any(in_python_range(python, b.pythons) for b in builds if not b.pre and b.gpu):
        text = f"{LABELS[framework]} {builds[0].release}, a release candidate, has a wheel for Python {python}"
        yield f"{text}; what it was built with is not known."


def without(framework: str, ask: Ask) -> Iterator[str]:
    """Why nothing fits, and where there is something."""
    target = ask.target
    if target.system == "macos":
        yield f"macOS has no CUDA. {LABELS[framework]} runs there on the CPU, or by Metal: pip install {framework}."
        return
    if "8.7" in target.capabilities or "7.2" in target.capabilities:
        yield "For Jetson NVIDIA builds wheels of its own for each JetPack; those on PyPI are for servers."
    if target.machine == "aarch64" and target.system != "windows":
        yield CONTAINERS[framework]
    yield f"No release of {LABELS[framework]} in the matrix fits {machine_words(ask)}."


def _elsewhere(framework: str, ask: Ask) -> Iterator[str]:
    """On Windows: the answer for WSL2, where newer releases run."""
    if ask.target.system != "windows" or framework == "torch":
        return
    target: Target = msgspec.structs.replace(ask.target, system="wsl")
    inside = Solver(Catalog(ask.matrix, "linux", target.machine)).solve(framework, target)
    if inside.options:
        option = inside.options[0]
        words = " ".join(f'"{r}"' for r in option.fit.line.requirements)
        yield f"In WSL2, where the driver of Windows serves: python -m pip install {words}"


# ---------------------------------------------------------------- what was asked for


def _find(framework: str, name: str, ask: Ask) -> tuple[str, str | None]:
    """The release and the variant that a text names; "" for none, None for the default variant.

    Raises:
        QuestionError: when there is no such release or build.
    """
    if name.lower() in NEWEST:
        return "", None
    version = release(name, f"matrix {framework}")
    public, _, local = version.partition("+")
    builds = ask.solver.catalog.builds(framework)
    known = list(dict.fromkeys(b.release for b in builds))
    if public in known:
        return public, _variant(framework, public, local, ask)
    if numbers(public)[:2] > numbers(known[0])[:2]:
        return public, None
    short = len(numbers(public)) < 3
    of_minor = [r for r in known if numbers(r)[: len(numbers(public))] == numbers(public)] if short else []
    if of_minor:
        stable = [r for r in of_minor if "rc" not in r] or of_minor
        row = ask.matrix.framework(framework, public)
        listed = [r for r in stable if row is None or r in row.releases] or stable
        return listed[0], _variant(framework, listed[0], local, ask)
    same = [r for r in known if numbers(r)[:2] == numbers(public)[:2]]
    if same:
        if numbers(public) > numbers(same[0]):
            return public, None
        raise QuestionError(f"matrix {framework} {name}: never released. Releases: {', '.join(reversed(same))}.")
    raise QuestionError(
        f"matrix {framework} {name}: no such release in the matrix. Known: {known[-1]} to {known[0]}."
        f"{near(public, known)}"
    )


def _variant(framework: str, version: str, local: str, ask: Ask) -> str | None:
    if not local or framework != "torch":
        return None
    found = [b for b in ask.solver.catalog.of_release(framework, version) if b.variant or b.gpu]
    if any(b.variant == local for b in found):
        return local
    plain = next((b for b in found if not b.variant), None)
    if plain and local == f"cu{plain.cuda.replace('.', '')}":
        return ""  # the build on PyPI is that one
    said = ", ".join(b.variant or f"PyPI (cu{b.cuda.replace('.', '')})" for b in found)
    raise QuestionError(f"matrix torch {version}+{local}: the matrix knows no such build. Builds of it: {said}.")


def _newer(framework: str, version: str, ask: Ask) -> Answer:
    newest = ask.matrix.newest(framework)
    same = numbers(version)[:2] == numbers(newest)[:2]
    text = f"{LABELS[framework]} {version} is newer than the matrix, which ends at {newest}"
    row = ask.matrix.framework(framework, version)
    if row is not None and not same:
        text = f"{LABELS[framework]} {version} is newer than the releases of its minor in the matrix"
    verdict = judged("unknown", "newer", text, row) if row else undecided("newer", text, ask.matrix)
    note = f"The rows are as of {ask.matrix.checked_on}. Update cudnn-doctor, or give your own rows: --matrix FILE."
    title = f"{LABELS[framework]} {version}"
    return Answer(subject=framework, name=version, title=title, verdicts=(verdict,), notes=(note,))
