"""`matrix cudnn`, `matrix gpu`, `matrix driver`, `matrix cuda`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cudnn_doctor.matrix.answer_frameworks import tensorflow
from cudnn_doctor.matrix.compat import cudnn_for_gpu, driver_for_cuda, driver_for_gpu, loader_rule, service
from cudnn_doctor.matrix.fits import what
from cudnn_doctor.matrix.judgement import Judgement, judged, undecided
from cudnn_doctor.matrix.pins import driver_branch, fitting_cudnn
from cudnn_doctor.matrix.question import Answer, Ask, Fact, QuestionError, driver_release, fact, find_gpu, near, release
from cudnn_doctor.matrix.rows import CudnnRow, GpuRow, TensorFlowRow, TorchRow
from cudnn_doctor.model.versions import at_least, from_cudnn_number, in_ranges, minor, numbers, within


def cudnn(name: str, ask: Ask) -> Answer:
    """What a cuDNN release needs and serves. Takes "9.10", "9.10.2.21" and the number of cudnnGetVersion, 91002."""
    matrix = ask.matrix
    version = from_cudnn_number(int(name)) if name.isdigit() and len(name) >= 4 else release(name, "matrix cudnn")
    if len(numbers(version)) == 1:  # the newest of that major
        of_major = [v for w in matrix.cudnn_wheels for v in w.versions if numbers(v)[0] == numbers(version)[0]]
        version = minor(max(of_major, key=numbers)) if of_major else version
    rows = [r for r in matrix.cudnn if _overlaps(version, r)]
    if not rows:
        newest = matrix.newest_cudnn()
        if numbers(version) > numbers(newest):
            text = f"cuDNN {version} is newer than the matrix, which ends at {newest}"
            return Answer(
                subject="cudnn", name=version, title=f"cuDNN {version}", verdicts=(undecided("newer", text, matrix),)
            )
        known = [v for r in matrix.cudnn for v in (r.first, r.last)]
        nearest = near(minor(version), map(minor, known))
        raise QuestionError(f"matrix cudnn {name}: no such release. Known: {known[0]} to {newest}.{nearest}")
    facts = [_build_fact(row, ask) for row in rows]
    wheels = {w.distribution: [v for v in w.versions if _same(version, v)] for w in matrix.cudnn_wheels}
    for distribution, versions in wheels.items():
        if versions:
            row = matrix.wheels(distribution)
            yanked = [v for v in versions if row and v in row.yanked]
            text = ", ".join(versions) + (f" (yanked: {', '.join(yanked)})" if yanked else "")
            facts.append(Fact(label=distribution, value=text, source="PyPI", checked_on=matrix.checked_on))
    full = version if len(numbers(version)) > 2 else f"{minor(version)}.0"
    if files := matrix.files(full, "full"):
        facts.append(fact("sub-libraries", " ".join(files.names) or "none: one library", files))
    facts.append(_accepting(full, ask))
    by_flavour = [(row, list(_cudnn_verdicts(row, full, ask))) for row in rows]
    fitting = [(row, v) for row, v in by_flavour if not any(j.verdict == "problem" for j in v)]
    chosen, verdicts = (fitting or by_flavour)[-1]  # the build for the newest CUDA that fits
    distribution = f"nvidia-cudnn-cu{chosen.flavour}"
    candidates = fitting_cudnn(matrix, distribution, capabilities=ask.capabilities, machine=ask.target.machine)
    offered = [v for v in candidates if _same(version, v)]
    command = f'python -m pip install "{distribution}=={offered[0]}"' if fitting and offered else ""
    no_code = any(v.verdict == "problem" and v.rule.startswith("cudnn-gpu") for v in verdicts)
    notes = [_instead(ask, distribution, version)] if no_code and chosen.flavour else []
    if ask.capabilities or ask.driver:
        notes.append(f"Judged: the build for CUDA {chosen.flavour or ', '.join(chosen.cuda)}.")
    return Answer(
        subject="cudnn",
        name=version,
        title=f"cuDNN {version}",
        facts=tuple(facts),
        verdicts=tuple(verdicts),
        command=command,
        checked=", ".join(dict.fromkeys(v.rule.partition(":")[0] for v in verdicts if v.verdict == "ok")),
        notes=tuple(n for n in notes if n),
    )


def _overlaps(version: str, row: CudnnRow) -> bool:
    """Whether a release, or a minor as a whole, is in a row's span."""
    if len(numbers(version)) > 2:
        return within(version, row.first, row.last)
    return numbers(row.first)[:2] <= numbers(version) <= numbers(row.last)[:2]


def _same(asked: str, version: str) -> bool:
    return numbers(version)[: len(numbers(asked))] == numbers(asked)


def _build_fact(row: CudnnRow, ask: Ask) -> Fact:
    what = f"for CUDA {row.flavour}" if row.flavour else "archives"
    code = f"; machine code {' '.join(row.sass)}" + (f", PTX {row.ptx}" if row.ptx else "") if row.sass else ""
    if row.sass_aarch64:
        code += f", on aarch64 also {' '.join(row.sass_aarch64)}"
    span = ask.matrix.minor_compat_row(row.flavour) if row.flavour else None
    driver = f"; driver {span.linux} (Windows {span.windows})" if span else "; the driver of its CUDA"
    text = f"CUDA {', '.join(row.cuda)}; compute capability {row.cc}{driver}{code}"
    return fact(f"{row.span} {what}", text + (f". {row.note}" if row.note else ""), row)


def _accepting(version: str, ask: Ask) -> Fact:
    """The TensorFlow releases whose loader accepts a cuDNN."""
    rows = [
        r.version
        for r in ask.matrix.tensorflow
        if r.built_cudnn
        and loader_rule(ask.matrix, "tensorflow", r.releases[-1], r.built_cudnn, version).verdict == "ok"
    ]
    text = ", ".join(dict.fromkeys(map(minor, rows))) or "none in the matrix"
    newest = ask.matrix.loader_row("tensorflow", ask.matrix.newest("tensorflow")) or ask.matrix.loader[0]
    return fact("TensorFlow that accepts it", text, newest)


def _cudnn_verdicts(row: CudnnRow, version: str, ask: Ask) -> Iterator[Judgement]:
    if ask.cc:
        yield cudnn_for_gpu(ask.matrix, version, ask.cc, flavour=row.flavour or None, machine=ask.target.machine)
    if ask.driver:
        span = ask.matrix.minor_compat_row(row.flavour) if row.flavour else None
        if span:
            least = span.windows if ask.system == "windows" else span.linux
            enough = at_least(ask.driver, least)
            text = f"cuDNN {row.span} for CUDA {row.flavour} needs driver {least}, here is {ask.driver}"
            yield judged("unknown" if enough is None else "ok" if enough else "problem", "cudnn-driver", text, span)
        else:
            yield driver_for_cuda(ask.matrix, row.cuda[0].partition("-")[0], ask.driver, system=ask.system, gpu=ask.gpu)
    if ask.cc and ask.driver:
        yield driver_for_gpu(ask.matrix, ask.cc, ask.driver, system=ask.system)


def _instead(ask: Ask, distribution: str, version: str) -> str:
    """The newest wheel of that distribution that has code for the GPU, of the same major where there is one."""
    candidates = fitting_cudnn(ask.matrix, distribution, capabilities=ask.capabilities, machine=ask.target.machine)
    fitting = list(candidates)
    found = next((v for v in fitting if numbers(v)[0] == numbers(version)[0]), next(iter(fitting), ""))
    return f'A release that serves it: python -m pip install "{distribution}=={found}"' if found else ""


def gpu(name: str, ask: Ask) -> Answer:
    """What a GPU needs and which releases serve it."""
    row = find_gpu(ask.matrix, name, "matrix gpu")
    mine = ask.of_gpu(name, row)
    kind = ask.matrix.gpu_class(name)
    facts = [
        fact("architecture", f"{row.arch}, compute capability {row.cc}", row),
        fact("CUDA", _span(row.cuda_min, row.cuda_max), row),
        fact("cuDNN", _span(row.cudnn_min, row.cudnn_max) if row.cudnn_min else "not known", row),
        fact("driver", _driver_span(row, ask.system), row),
    ]
    if kind:
        allowed = "yes" if kind in ("data-center", "jetson") else "no"
        facts.append(fact("cuda-compat (forward compatibility)", f"{allowed} ({kind})", ask.matrix.gpu_classes[0]))
    if row.note:
        facts.append(fact("note", row.note, row))
    served = [r for r in ask.matrix.tensorflow if service(r.capabilities, row.cc) == "native"]
    if served:
        facts.append(fact("TensorFlow with code for it", f"{served[0].version} to {served[-1].version}", served[-1]))
    torches = [r for r in ask.matrix.torch if service(r.capabilities, row.cc) == "native"]
    if torches:
        facts.append(
            fact("PyTorch (PyPI) with code for it", f"{torches[0].version} to {torches[-1].version}", torches[-1])
        )
    facts += _newest_on(mine, "")
    verdicts = (driver_for_gpu(ask.matrix, row.cc, ask.driver, system=ask.system),) if ask.driver else ()
    return _with_tensorflow(Answer(subject="gpu", name=name, title=name, facts=tuple(facts)), verdicts, mine)


def _with_tensorflow(said: Answer, verdicts: tuple[Judgement, ...], ask: Ask) -> Answer:
    """An answer completed by what fits of TensorFlow."""
    found = tensorflow("", ask)
    notes = list(found.notes)
    if found.command:
        notes.insert(0, "The command is for the newest TensorFlow that fits; `matrix what` has the others.")
    return msgspec.structs.replace(
        said,
        verdicts=verdicts,
        command=found.command,
        checked=found.checked,
        condition=found.condition,
        ways=found.ways,
        notes=tuple(notes),
    )


def _span(first: str, last: str) -> str:
    return f"{first} to {last}" if last else f"{first} and newer"


def _driver_span(row: GpuRow, system: str) -> str:
    least = row.windows_driver_min if system == "windows" else row.driver_min
    if row.last_branch:
        return f"up to branch {row.last_branch}"
    return f"{least} and newer" if least else "every one that serves its CUDA"


def driver(name: str, ask: Ask) -> Answer:
    """What a driver release or branch serves."""
    matrix = ask.matrix
    version = driver_release(name, matrix, ask.target.system, "matrix driver")
    system = ask.target.system
    row = matrix.branch(version, ask.system)
    windows = row is None and matrix.branch(version, "windows") is not None
    if windows:  # 551.61: a number that only Windows has
        system, row = "windows", matrix.branch(version, "windows")
    ask = ask.of_driver(version, system)
    if row is None:
        last = matrix.branches[-1].branch
        if numbers(version)[0] > int(last):
            text = f"driver {version} is newer than the matrix, which ends at branch {last}"
            return Answer(
                subject="driver", name=version, title=f"Driver {version}", verdicts=(undecided("newer", text, matrix),)
            )
        known = [b.branch for b in matrix.branches]
        raise QuestionError(
            f"matrix driver {name}: no such branch is known. Branches: {', '.join(known)}.{near(version, known)}"
        )
    life = {
        "ended": "ended",
        "production": "production branch",
        "long-term": "long-term branch",
        "new-feature": "new-feature branch",
        "jetpack": "of JetPack",
    }
    until = f", until {row.eol}" if row.eol and row.kind != "ended" else f" in {row.eol}" if row.eol else ""
    facts = [
        fact("branch", f"{row.branch}, {life[row.kind]}{until}" + (f"; {row.note}" if row.note else ""), row),
        fact('highest CUDA ("CUDA Version" of nvidia-smi)', row.cuda, row),
    ]
    for span in matrix.minor_compat:
        least = span.windows if ask.system == "windows" else span.linux
        enough = at_least(version, least)
        if enough is False:
            continue
        ptx = "" if numbers(row.cuda)[0] > int(span.major) else f"; PTX up to CUDA {row.cuda}"
        text = f"CUDA {span.major}.x" + (ptx if enough else f" from {least} on{ptx}")
        facts.append(fact("serves", text, span))
    forward = [f for f in matrix.forward_compat if row.branch in f.base]
    if forward and ask.system == "linux":
        text = f"CUDA {', '.join(f.cuda for f in forward)}, on data-centre GPUs only"
        facts.append(fact("with cuda-compat", text, forward[-1]))
    dropped = sorted(
        {g.arch.partition(" ")[0] for g in matrix.gpus if g.last_branch and int(g.last_branch) < int(row.branch)}
    )
    if dropped:
        facts.append(fact("GPUs no longer served", ", ".join(dropped), matrix.gpus[0]))
    new = [g for g in matrix.gpus if numbers(g.cuda_min) > numbers(row.cuda)]
    if new:
        facts.append(fact("GPUs of a newer CUDA", ", ".join(f"{g.arch} ({g.cc})" for g in new), new[0]))
    jetpack = "Frameworks for Jetson come from NVIDIA, built for each JetPack; the wheels on PyPI are for servers."
    facts += _newest_on(ask, version) if row.kind != "jetpack" else ()
    notes: tuple[str, ...] = (f"{version} is a driver for Windows, of branch R{row.branch}.",) if windows else ()
    notes += (jetpack,) if row.kind == "jetpack" else ()
    said = Answer(subject="driver", name=version, title=f"Driver {version}", facts=tuple(facts), notes=notes)
    if not ask.cc:
        return said
    verdict = driver_for_gpu(matrix, ask.cc, version, system=ask.system)
    return _with_tensorflow(said, (verdict,), ask)


def _newest_on(ask: Ask, version: str) -> Iterator[Fact]:
    """The newest release of each framework for the GPU that a driver serves as it is."""
    on = ask.of_driver(version, ask.target.system) if version else ask
    for framework, label in (("tensorflow", "newest TensorFlow"), ("torch", "newest PyTorch"), ("jax", "newest JAX")):
        option = next((o for o in on.solver.solve(framework, on.target).options if not set(o.changes) - {"pin"}), None)
        if option:
            text = f"{what(option.build)}, CUDA {option.build.cuda}"
            yield fact(label, text, option.build.row)


def cuda(name: str, ask: Ask) -> Answer:
    """What a CUDA toolkit needs, and what was built with it."""
    matrix = ask.matrix
    version = release(name, "matrix cuda")
    row = matrix.cuda_row(version if "." in version else f"{version}.0")
    if row is None:
        newest = matrix.cuda[-1].cuda
        if numbers(version) > numbers(newest):
            text = f"CUDA {version} is newer than the matrix, which ends at {newest}"
            return Answer(
                subject="cuda", name=version, title=f"CUDA {version}", verdicts=(undecided("newer", text, matrix),)
            )
        known = [r.cuda for r in matrix.cuda]
        raise QuestionError(f"matrix cuda {name}: no such toolkit. Known: {', '.join(known)}.{near(version, known)}")
    own = f"{row.linux} (Linux)" + (f", {row.windows} (Windows)" if row.windows else "")
    facts = [fact("its own driver", own, row)]
    if span := matrix.minor_compat_row(row.cuda):
        text = f"{span.linux} (Linux), {span.windows} (Windows), without PTX of CUDA {row.cuda}"
        facts.append(fact("least driver (minor-version compatibility)", text, span))
    if forward := matrix.forward(row.cuda):
        text = f"drivers {', '.join(forward.base)} with cuda-compat-{row.cuda.replace('.', '-')}, on data-centre GPUs"
        facts.append(fact("forward compatibility", text, forward))
    targets = [g for g in matrix.gpus if numbers(g.cuda_min) <= numbers(row.cuda) and not _past(g, row.cuda)]
    facts.append(fact("compute capabilities", f"{targets[0].cc} to {targets[-1].cc}", targets[0]))
    builds = [r for r in matrix.cudnn if in_ranges(row.cuda, r.cuda)]
    if builds:
        facts.append(fact("cuDNN listed for it", f"{builds[0].first} to {builds[-1].last}", builds[-1]))
    frameworks: tuple[tuple[str, tuple[TensorFlowRow | TorchRow, ...]], ...] = (
        ("TensorFlow", matrix.tensorflow),
        ("PyTorch", matrix.torch),
    )
    for label, rows in frameworks:
        built = [r for r in rows if r.cuda == row.cuda]
        if built:
            facts.append(fact(f"{label} built with it", ", ".join(r.version for r in built), built[-1]))
    verdicts = []
    if ask.driver:
        verdicts.append(driver_for_cuda(matrix, row.cuda, ask.driver, system=ask.system, gpu=ask.gpu))
    if ask.cc:
        verdicts.append(cuda_target(row.cuda, ask))
    branch = driver_branch(matrix, row.cuda, ask.capabilities)
    notes = (f"Driver branch to install: {branch} (maintained, serves CUDA {row.cuda}).",) if branch else ()
    return Answer(
        subject="cuda",
        name=row.cuda,
        title=f"CUDA {row.cuda}",
        facts=tuple(facts),
        verdicts=tuple(verdicts),
        notes=notes,
    )


def _past(gpu: GpuRow, version: str) -> bool:
    return bool(gpu.cuda_max) and numbers(version) > numbers(gpu.cuda_max)


def cuda_target(version: str, ask: Ask) -> Judgement:
    """Whether a CUDA toolkit can target the GPU of the question."""
    row = ask.matrix.gpu(ask.cc)
    if row is None:
        return undecided("cuda-gpu", f"compute capability {ask.cc} is not in the matrix", ask.matrix)
    text = f"{row.arch} ({row.cc}) is a target of CUDA {_span(row.cuda_min, row.cuda_max)}"
    fits = numbers(row.cuda_min) <= numbers(version) and not _past(row, version)
    return judged("ok" if fits else "problem", "cuda-gpu", text, row)
