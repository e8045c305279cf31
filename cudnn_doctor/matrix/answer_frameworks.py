"""`matrix tensorflow`, `matrix torch`, `matrix jax`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

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
from cudnn_doctor.matrix.pins import driver_branch, fitting_cudnn, pin, torch_build
from cudnn_doctor.matrix.question import Answer, Ask, Fact, QuestionError, fact, near, problems, release
from cudnn_doctor.matrix.rows import FrameworkRow, JaxRow, TensorFlowRow, TorchRow
from cudnn_doctor.model.versions import in_python_range, minor, numbers, within


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One way to install a framework, and what speaks for and against it."""

    framework: str
    version: str
    row: FrameworkRow
    wanted: str  # what pip is asked for
    cudnn: str  # the cuDNN that pip would take; "" when it takes none
    cuda: str
    verdicts: tuple[Judgement, ...]
    note: str = ""

    @property
    def fits(self) -> bool:
        return not problems(self.verdicts, "error", "warning")

    def rank(self) -> tuple[int, int]:
        """Fewer errors first, then fewer warnings and open questions."""
        unknown = sum(v.verdict == "unknown" for v in self.verdicts)
        return len(problems(self.verdicts, "error")), len(problems(self.verdicts, "warning")) + unknown


def tensorflow(name: str, ask: Ask) -> Answer:
    """Facts and verdicts on a TensorFlow release."""
    version, row = _find("tensorflow", name, ask)
    if not isinstance(row, TensorFlowRow):
        return _newer("tensorflow", version, ask)
    others = [r for r in reversed(ask.matrix.tensorflow) if r is not row and not r.pre and r.releases]

    def plans(on: Ask) -> list[Plan]:
        return [_tensorflow_plan(row, version, on), *(_tensorflow_plan(r, r.releases[-1], on) for r in others)]

    asked = _tensorflow_plan(row, version, ask)
    facts = [fact(f"tested on {label}", text, row) for label, text in _tested(row)]
    return _answer(asked, plans, [*facts, *_wheel_facts(asked)], ask)


def _tested(row: TensorFlowRow) -> Iterator[tuple[str, str]]:
    if row.cuda and row.cudnn:
        yield "Linux", f"CUDA {row.cuda}, cuDNN {row.cudnn}, Python {row.python.replace(' ', ', ')}"
    if row.windows_cuda:
        text = f"CUDA {row.windows_cuda}, cuDNN {row.windows_cudnn}, Python {row.windows_python}"
        yield "Windows", text


def _tensorflow_plan(row: TensorFlowRow, version: str, ask: Ask) -> Plan:
    """How to install one TensorFlow release with its cuDNN, and the verdicts on that."""
    matrix = ask.matrix
    cuda = row.wheel_cuda or (row.windows_cuda if ask.system == "windows" else row.cuda)
    verdicts: list[Judgement] = []
    builds = {d: matrix.build(d, version, ask.system, "x86_64") for d in ("tensorflow", "tensorflow-gpu")}
    gpu_build = next((d for d, b in builds.items() if b and b.gpu), "")
    if not gpu_build:
        why = next((b for b in builds.values() if b), row)
        if ask.system == "windows" and numbers(version) >= (2, 11):
            text = f"TensorFlow {version} has no GPU build for native Windows; use WSL2, or TensorFlow 2.10"
        else:
            text = f"no distribution of TensorFlow {version} with GPU code is known for {ask.system}"
        verdicts.append(judged("problem", "build", text, why))
        gpu_build = "tensorflow"
    extra = "[and-cuda]" if row.cudnn_pin and ask.system == "linux" else ""
    if row.releases and numbers(version)[:3] > numbers(row.releases[-1])[:3]:
        text = f"TensorFlow {version} is newer than the releases of {row.version} in the matrix"
        verdicts.append(undecided("newer", text, matrix))
    chosen, choice = _choose_cudnn(row, version, cuda, ask)
    verdicts += _common("tensorflow", version, row, chosen, cuda, ask)
    wanted = f'"{gpu_build}{extra}=={version}"' + (f' "{choice}"' if choice else "")
    return Plan(
        framework="tensorflow",
        version=version,
        row=row,
        wanted=wanted,
        cudnn=chosen,
        cuda=cuda,
        verdicts=tuple(verdicts),
        note=_own_cuda(row, cuda, chosen, extra),
    )


def _own_cuda(row: TensorFlowRow, cuda: str, cudnn: str, extra: str) -> str:
    if extra or not cuda:
        return ""
    wanted = row.built_cudnn or row.cudnn
    where = (
        "put nvidia/cudnn/lib of site-packages on LD_LIBRARY_PATH" if cudnn else f"cuDNN {wanted} from NVIDIA's archive"
    )
    return f"This release brings no CUDA: install the CUDA {minor(cuda)} toolkit and {where}."


def _choose_cudnn(row: FrameworkRow, version: str, cuda: str, ask: Ask) -> tuple[str, str]:
    """The cuDNN wheel that pip would install for the plan, and the requirement that brings that about ("" when the
    framework's own requirement does)."""
    distribution, specifier = _split(row.cudnn_pin)
    if ask.system == "windows":
        return "", ""
    if not distribution:
        if not cuda:
            return "", ""
        distribution = f"nvidia-cudnn-cu{numbers(cuda)[0]}"
        if not row.built_cudnn or ask.matrix.wheels(distribution) is None:
            return "", ""
        specifier = f">={row.built_cudnn},<{numbers(row.built_cudnn)[0] + 1}"
    framework = _name(row)
    own = next(fitting_cudnn(ask.matrix, distribution, specifier=specifier), "")
    fitting = fitting_cudnn(
        ask.matrix,
        distribution,
        specifier=specifier,
        capabilities=ask.capabilities,
        framework=framework,
        version=version,
    )
    good = next(fitting, "")
    if not good:
        return own, ""
    if row.cudnn_pin and own == good:
        return good, ""
    return good, pin(ask.matrix, distribution, good) or f"{distribution}=={good}"


def _split(requirement: str) -> tuple[str, str]:
    """ "nvidia-cudnn-cu12>=9.3" -> ("nvidia-cudnn-cu12", ">=9.3")."""
    at = next((i for i, c in enumerate(requirement) if c in "=<>!~"), len(requirement))
    return requirement[:at], requirement[at:]


def _name(row: FrameworkRow) -> str:
    return "jax" if isinstance(row, JaxRow) else "torch" if isinstance(row, TorchRow) else "tensorflow"


def _common(framework: str, version: str, row: FrameworkRow, cudnn: str, cuda: str, ask: Ask) -> Iterator[Judgement]:
    """The verdicts that every framework gets: Python, loader, GPU, driver."""
    matrix = ask.matrix
    what = f"{LABELS[framework]} {version}"
    python = row.windows_python if isinstance(row, TensorFlowRow) and ask.system == "windows" else row.python
    if ask.python and python:
        fits = in_python_range(ask.python, python)
        text = f"{what} is for Python {python.replace(' ', ', ')}" + ("" if fits else f", not for {ask.python}")
        yield judged("ok" if fits else "problem", "python", text, row)
    if cudnn:
        yield loader_rule(matrix, framework, version, row.built_cudnn or minor(cudnn), cudnn)
    served = service(row.capabilities, ask.cc) if ask.cc and row.capabilities else ""
    if ask.cc:
        yield wheel_for_gpu(matrix, what, row.capabilities, ask.cc, row)
        if cudnn:
            yield cudnn_for_gpu(matrix, cudnn, ask.cc, flavour=numbers(cuda)[0] if cuda else None)
            yield from cautions(matrix, framework, version, cudnn=cudnn, capabilities=ask.capabilities)
    if ask.driver:
        if ask.cc:
            yield driver_for_gpu(matrix, ask.cc, ask.driver, system=ask.system)
        if cuda:
            ptx = served == "ptx"
            yield driver_for_cuda(matrix, cuda, ask.driver, system=ask.system, ptx=ptx, gpu=ask.gpu)
        else:
            yield undecided("driver", f"the CUDA that {what} was built with is not known", matrix)


def torch(name: str, ask: Ask) -> Answer:
    """Facts and verdicts on a PyTorch release."""
    version, row = _find("torch", name, ask)
    if not isinstance(row, TorchRow):
        return _newer("torch", version, ask)
    others = [r for r in reversed(ask.matrix.torch) if r is not row]

    def plans(on: Ask) -> list[Plan]:
        mine = _torch_plans(row, version, on)
        return mine + [p for r in others for p in _torch_plans(r, r.releases[-1], on)]

    asked = _torch_plans(row, version, ask)[0]
    return _answer(asked, plans, _wheel_facts(asked), ask)


def _torch_plans(row: TorchRow, version: str, ask: Ask) -> list[Plan]:
    """The wheel on PyPI, then the builds of that release on PyTorch's own index."""
    verdicts = list(_common("torch", version, row, _split(row.cudnn_pin)[1].lstrip("="), row.cuda, ask))
    wanted = f'"torch=={version}"'
    if ask.system == "windows":  # the PyPI wheels for Windows are CPU-only
        wanted = _torch_wanted(version, f"cu{row.cuda.replace('.', '')}")
    cudnn = _split(row.cudnn_pin)[1].lstrip("=")
    common = {"framework": "torch", "version": version}
    plans = [Plan(**common, row=row, wanted=wanted, cudnn=cudnn, cuda=row.cuda, verdicts=tuple(verdicts))]
    for variant in ask.matrix.torch_variants:
        if variant.cuda == row.cuda or not within(version, variant.first, variant.last):
            continue
        other = msgspec.structs.replace(
            row, cuda=variant.cuda, capabilities=variant.capabilities, built_cudnn="", source=variant.source
        )
        plans.append(
            Plan(
                **common,
                row=other,
                wanted=_torch_wanted(version, variant.variant),
                cudnn="",
                cuda=variant.cuda,
                verdicts=tuple(_common("torch", version, other, "", variant.cuda, ask)),
                note="The cuDNN of that build is not in the matrix; it comes with it.",
            )
        )
    return plans


def _torch_wanted(version: str, build: str) -> str:
    requirement, *index = torch_build(version, build)
    return " ".join((f'"{requirement}"', *index))


def jax(name: str, ask: Ask) -> Answer:
    """Facts and verdicts on a JAX release: the better of its CUDA plugins."""
    version = release(name, "matrix jax")
    rows = [r for r in ask.matrix.jax if version in r.releases]
    if not rows:
        known = [v for r in ask.matrix.jax for v in r.releases]
        if ask.matrix.is_newer("jax", version) or numbers(version) > numbers(ask.matrix.newest("jax")):
            return _newer("jax", version, ask)
        raise QuestionError(
            f"matrix jax {name}: no such release with a CUDA plugin. Known: {known[0]} to {ask.matrix.newest('jax')}."
            f"{near(version, known)}"
        )
    others = [r for r in reversed(ask.matrix.jax) if r not in rows]

    def mine(on: Ask) -> list[Plan]:
        return sorted((_jax_plan(r, version, on) for r in rows), key=lambda p: (p.rank(), p.cuda != "13.0"))

    def plans(on: Ask) -> list[Plan]:
        return mine(on) + [_jax_plan(r, r.releases[-1], on) for r in others]

    asked = mine(ask)[0]
    return _answer(asked, plans, _wheel_facts(asked), ask)


def _jax_plan(row: JaxRow, version: str, ask: Ask) -> Plan:
    cuda = f"{row.plugin.removeprefix('cuda')}.0"
    chosen, choice = _choose_cudnn(row, version, cuda, ask)
    wanted = f'"jax[{row.plugin}]=={version}"' + (f' "{choice}"' if choice else "")
    return Plan(
        framework="jax",
        version=version,
        row=row,
        wanted=wanted,
        cudnn=chosen,
        cuda=cuda,
        verdicts=tuple(_common("jax", version, row, chosen, cuda, ask)),
    )


# ---------------------------------------------------------------- shared


def _find(framework: str, name: str, ask: Ask) -> tuple[str, FrameworkRow | None]:
    """The release asked for (the newest of a minor) and its row; None for the row when it is newer than all.

    Raises:
        QuestionError: when there is no such release.
    """
    version = release(name, f"matrix {framework}")
    row = ask.matrix.framework(framework, version)
    if row is None:
        if ask.matrix.is_newer(framework, version):
            return version, None
        rows = ask.matrix.tensorflow if framework == "tensorflow" else ask.matrix.torch
        known = [r.version for r in rows]
        raise QuestionError(
            f"matrix {framework} {name}: no such release in the matrix. Known: {known[0]} to {known[-1]}."
            f"{near(version, known)}"
        )
    if len(numbers(version)) < 3 and version != getattr(row, "version", "") + ".0":
        return row.releases[-1] if row.releases else version, row
    if row.releases and version not in row.releases and numbers(version) <= numbers(row.releases[-1]):
        raise QuestionError(f"matrix {framework} {name}: never released. Releases: {', '.join(row.releases)}.")
    return version, row


def _newer(framework: str, version: str, ask: Ask) -> Answer:
    newest = ask.matrix.newest(framework)
    text = f"{LABELS[framework]} {version} is newer than the matrix, which ends at {newest}"
    return Answer(
        subject=framework,
        name=version,
        title=f"{LABELS[framework]} {version}",
        verdicts=(undecided("newer", text, ask.matrix),),
        notes=("Update cudnn-doctor, or give your own rows with --matrix FILE.",),
    )


def _wheel_facts(plan: Plan) -> list[Fact]:
    row = plan.row
    found = []
    if row.releases:
        found.append(fact("releases", ", ".join(row.releases), row))
    if isinstance(row, JaxRow):
        found.append(fact("plugin", f"{row.plugin}, made for cuDNN {row.built_cudnn} and newer", row))
    elif plan.cuda:
        found.append(
            fact(
                "wheel built with", f"CUDA {plan.cuda}" + (f", cuDNN {row.built_cudnn}" if row.built_cudnn else ""), row
            )
        )
    if isinstance(row, TorchRow) and row.machines:
        found.append(fact("CUDA build on PyPI for", f"Linux on {', '.join(row.machines)}", row))
    if row.capabilities:
        found.append(fact("code for", " ".join(row.capabilities), row))
    if row.cudnn_pin:
        found.append(fact("requires", ", ".join(p for p in (row.cudnn_pin, row.cuda_pin) if p), row))
    if plan.cudnn:
        found.append(fact("cuDNN that pip takes", plan.cudnn, row))
    return found


def _other_driver(plan: Plan, ask: Ask) -> str:
    """The driver that a plan needs, in words; "" when no branch serves its CUDA and the GPU."""
    if not plan.cuda:
        return ""
    branch = driver_branch(ask.matrix, plan.cuda, ask.capabilities)
    if branch:
        return f"with driver branch {branch} or newer, not with {ask.driver}"
    branch = driver_branch(ask.matrix, plan.cuda, ask.capabilities, ended=True)
    return f"with driver branch {branch}, not with {ask.driver}" if branch else ""


def _answer(asked: Plan, others: Callable[[Ask], list[Plan]], facts: list[Fact], ask: Ask) -> Answer:
    """The answer on the plan asked for; when that has a problem, the command is that of the best other plan, if need be
    with another driver than the one here."""
    best, condition = asked, ""
    if not asked.fits:
        best = min(others(ask), key=Plan.rank)  # the first of equals: what was asked for, then the newest
    if problems(best.verdicts, "error") and ask.driver:
        freed = msgspec.structs.replace(ask, driver="")
        plans = [p for p in others(freed) if _other_driver(p, ask)]
        best = min(plans, key=Plan.rank) if plans else best
        condition = _other_driver(best, ask) if plans else ""
    errors = problems(best.verdicts, "error")
    notes = []
    if errors:
        notes.append("No release in the matrix fits: " + "; ".join(v.text for v in errors))
    else:
        if best.version != asked.version:
            notes.append(f"The command takes {LABELS[best.framework]} {best.version} instead, which fits better.")
        elif best.wanted != asked.wanted:
            notes.append("The command takes another build of the same release, which fits better.")
        if best is not asked:
            notes += [f"Still so: {v.text}." for v in problems(best.verdicts, "warning")]
        if best.row.python:
            notes.append(f"{LABELS[best.framework]} {best.version} is for Python {best.row.python.replace(' ', ', ')}.")
        notes += [n for n in (best.note, best.row.note) if n]
    rules = dict.fromkeys(v.rule.partition(":")[0] for v in best.verdicts if v.verdict == "ok")
    open_rules = dict.fromkeys(v.rule.partition(":")[0] for v in best.verdicts if v.verdict == "unknown")
    return Answer(
        subject=asked.framework,
        name=asked.version,
        title=f"{LABELS[asked.framework]} {asked.version}",
        facts=tuple(facts),
        verdicts=asked.verdicts,
        command="" if errors else f"python -m pip install {best.wanted}",
        checked=", ".join(rules) + (f"; not decided: {', '.join(open_rules)}" if open_rules else ""),
        condition="" if errors else condition,
        notes=tuple(dict.fromkeys(notes)),
    )
