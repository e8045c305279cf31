"""CD501 and CD508 to CD511: environment variables that hide GPUs, replace cuDNN or hide errors."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Known, known, value_or
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.facts import frameworks, gpu_present, gpus, plural, size, variable, visible
from cudnn_doctor.rules.remedies import again, cure, fix, unset
from cudnn_doctor.rules.sample import EX, sample, two_gpus

VISIBLE = "CUDA_VISIBLE_DEVICES"
UNSET = again("environment")  # of a variable that is not set its own rule has nothing to judge, which is no pass
VARIABLES_DOC = "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html"


def _set(**variables: str) -> Case:
    return sample({f"host.environment.{name}": value for name, value in variables.items()})


@rule(
    "CD501",
    title="CUDA_VISIBLE_DEVICES",
    severity="error",
    owner="environment",
    causes=("environment-restriction",),
    explain="""The variable lists the GPUs that CUDA may see, by index or UUID. It ends at its first invalid entry,
without a word; set and empty, or with an invalid first entry, it hides every GPU (cuInit fails with 100), and one GPU
twice makes cuInit fail with 101. Of "0;1" or "0.5" only the 0 counts. Quotes inside the value, "all", "cuda:0" and
"gpu-..." in small letters are invalid. Schedulers set it, and a value inherited from another machine may name GPUs
that are not here.""",
    source=VARIABLES_DOC + "; 50 spellings tried with driver 580.159.04 on an H200, 2026-11-30",
    examples=lambda: (
        ("ok", _set(CUDA_VISIBLE_DEVICES="0")),
        ("problem", _set(CUDA_VISIBLE_DEVICES="")),
        ("problem", _set(CUDA_VISIBLE_DEVICES="cuda:0")),
        ("problem", _set(CUDA_VISIBLE_DEVICES="0,1")),
        ("problem", _set(CUDA_VISIBLE_DEVICES="0,0")),
        ("problem", _set(CUDA_VISIBLE_DEVICES="0;1")),
        ("skipped", sample()),
    ),
)
def cuda_visible_devices(case: Case) -> Iterator[Outcome]:
    value = case.snapshot.host.environment.get(VISIBLE)
    if value is None:
        yield skip(VISIBLE, "it is not set: CUDA shows every GPU")
        return
    if not gpu_present(case):
        yield skip(VISIBLE, "no NVIDIA GPU on this machine")
        return
    listed = see(case, lambda s: s.gpus).need()
    seen = visible(case)
    if seen is None:
        yield skip(VISIBLE, "NVML lists no GPU")
        return
    here = ", ".join(f"{g.index}: {value_or(g.uuid, '?')}" for g in listed)
    evidence = [variable(case, VISIBLE), see(case, lambda s: s.gpus).shown(here)]
    shown_gpus = f"CUDA shows {plural(len(seen.devices), 'GPU')} ({', '.join(seen.devices)})"
    fixes = [cure("Unset it, or name GPUs that are here (nvidia-smi -L).", unset(VISIBLE), verify=UNSET)]
    if seen.twice:
        title = f"'{value}' names {seen.twice} twice: CUDA shows no GPU at all (cuInit 101)"
        yield problem(VISIBLE, title, evidence=evidence, fixes=fixes)
    elif not seen.devices:
        title = "It is empty: every GPU is hidden" if not value.strip() else f"'{value}' hides every GPU"
        detail = "" if not value.strip() else f"CUDA stops at '{seen.ended_at}': {seen.why}."
        yield problem(VISIBLE, title, detail=detail, evidence=evidence, fixes=fixes)
    elif seen.ended_at is not None:
        yield problem(
            VISIBLE,
            f"'{value}' ends at '{seen.ended_at}': {seen.why}",
            detail=f"{shown_gpus}, the rest is ignored.",
            evidence=evidence,
            fixes=fixes,
            severity="warning",
        )
    elif seen.dropped:
        yield problem(
            VISIBLE,
            f"Of '{seen.dropped}' CUDA reads only the number in front",
            detail=f"{shown_gpus}. Commas part the entries.",
            evidence=evidence,
            fixes=fixes,
            severity="warning",
        )
    else:
        title = f"'{value}' shows {plural(len(seen.devices), 'GPU')} of {len(listed)}"
        yield passed(VISIBLE, title, evidence=evidence)


@rule(
    "CD508",
    title="LD_PRELOAD",
    severity="warning",
    owner="environment",
    causes=("cudnn-shadowed", "cudnn-sublibs-mixed"),
    explain="""A library in LD_PRELOAD is in every process before anything else. A libcudnn there wins over every
search, the wheel's own sub-libraries then meet a foreign one; a CUDA library there fixes its version for all
programs.""",
    source="ld.so(8)",
    examples=lambda: (
        ("problem", _set(LD_PRELOAD="/opt/old/libcudnn.so.8")),
        ("ok", _set(LD_PRELOAD="/usr/lib/libjemalloc.so.2")),
        ("skipped", sample()),
    ),
)
def preload(case: Case) -> Iterator[Outcome]:
    value = case.snapshot.host.environment.get("LD_PRELOAD", "")
    if not value:
        yield skip("LD_PRELOAD", "it is not set")
        return
    libraries = value.replace(":", " ").split()
    marked = [p for p in libraries if p.rpartition("/")[2].startswith(("libcudnn", "libcublas", "libcuda"))]
    evidence = [variable(case, "LD_PRELOAD")]
    if not marked:
        yield passed("LD_PRELOAD", "No CUDA library is preloaded", evidence=evidence)
        return
    yield problem(
        "LD_PRELOAD",
        f"It loads {', '.join(marked)} into every process",
        detail="Frameworks get this file instead of the one that they were built and tested with.",
        evidence=evidence,
        fixes=[cure("Unset it for programs that use the GPU.", unset("LD_PRELOAD"), verify=UNSET)],
    )


# Variable, the value that matters, what it does.
SILENCERS = (
    ("PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK", "1", "PyTorch no longer says when it meets an unfit cuDNN"),
    ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1", "JAX no longer says when cuDNN or CUDA are too old"),
    ("MXNET_CUDNN_LIB_CHECKING", "0", "MXNet no longer says when it meets another cuDNN than it was built with"),
    ("TF_CPP_MIN_LOG_LEVEL", "3", "TensorFlow hides its errors, the names of missing libraries among them"),
    ("TF_CPP_MIN_LOG_LEVEL", "2", "TensorFlow hides its warnings, the names of missing libraries among them"),
    ("NVIDIA_DISABLE_REQUIRE", "1", "the container starts although its image demands a newer driver"),
)
TRUE = ("1", "true", "yes", "on")


@rule(
    "CD509",
    title="Variables that hide errors",
    severity="note",
    owner="environment",
    causes=("harmless-noise",),
    explain="""Some variables switch off the very checks and messages that would explain a failure. They cure nothing:
a version that does not fit fails later and less clearly.""",
    source="torch/backends/cudnn/__init__.py, jax/_src/xla_bridge.py, MXNet's env_var.md, tsl's logging.cc, "
    "NVIDIA container toolkit",
    examples=lambda: (
        ("problem", _set(TF_CPP_MIN_LOG_LEVEL="3")),
        ("problem", _set(JAX_SKIP_CUDA_CONSTRAINTS_CHECK="true")),
        ("ok", _set(TF_CPP_MIN_LOG_LEVEL="0")),
        ("skipped", sample()),
    ),
)
def silencers(case: Case) -> Iterator[Outcome]:
    environment = case.snapshot.host.environment
    names = dict.fromkeys(name for name, _, _ in SILENCERS if name in environment)
    for name in names:
        value = environment[name].strip().lower()
        hits = [does for n, bad, does in SILENCERS if n == name and (value == bad or (bad == "1" and value in TRUE))]
        if not hits:
            yield passed(name, f"'{value}' hides nothing", evidence=[variable(case, name)])
            continue
        text = "Unset it while you look for a fault."
        yield problem(
            name,
            f"{name}={value}: {hits[0]}",
            evidence=[variable(case, name)],
            fixes=[cure(text, unset(name), verify=UNSET)],
        )
    if not names:
        yield skip("environment", "none of them is set")


@rule(
    "CD510",
    title="Variables that reserve the GPU's memory",
    severity="warning",
    owner="environment",
    causes=("vram-preallocated",),
    explain="""TensorFlow and JAX reserve most of the card when they start; cuDNN's and cuBLAS's own allocations must
fit into what is left. A fraction near 1, or growth switched off by hand on a card that others use as well, leaves
them nothing: cudnnCreate then fails with INTERNAL_ERROR.""",
    source="https://docs.jax.dev/en/latest/gpu_memory_allocation.html; tensorflow.org/guide/gpu; full card measured on "
    "an H200: cudnnCreate 4 or 4000",
    examples=lambda: (
        ("problem", _set(XLA_PYTHON_CLIENT_MEM_FRACTION=".98")),
        ("problem", _set(XLA_PYTHON_CLIENT_MEM_FRACTION="80%")),
        ("ok", _set(XLA_PYTHON_CLIENT_MEM_FRACTION="0.75")),
        (
            "problem",
            sample(
                {
                    "host.environment.TF_FORCE_GPU_ALLOW_GROWTH": "false",
                    "gpus.0.memory_free": known(60 << 30, EX),
                }
            ),
        ),
        ("ok", _set(TF_FORCE_GPU_ALLOW_GROWTH="true")),
        ("skipped", sample()),
    ),
)
def reserved(case: Case) -> Iterator[Outcome]:
    environment = case.snapshot.host.environment
    fractions = [n for n in ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION") if n in environment]
    for name in fractions:
        evidence, value = [variable(case, name)], environment[name]
        fraction = _fraction(value)
        if fraction is not None and 0 < fraction <= 0.95:
            yield passed(name, f"It leaves {100 - fraction * 100:.0f} % of the card", evidence=evidence)
            continue
        yield problem(
            name,
            f"'{value}' is not a number"
            if fraction is None
            else f"It reserves {fraction * 100:.0f} % of the card: next to nothing is left for cuDNN and cuBLAS",
            evidence=evidence,
            fixes=[fix("Leave some room.", f"export {name}=0.75", verify=again("CD510"))],
        )
    growth = environment.get("TF_FORCE_GPU_ALLOW_GROWTH")
    if growth is not None:
        yield _growth(case, growth)
    if not fractions and growth is None:
        yield skip("environment", "none of them is set")


def _fraction(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _growth(case: Case, value: str) -> Outcome:
    name = "TF_FORCE_GPU_ALLOW_GROWTH"
    evidence = [variable(case, name)]
    shared = [
        (f"{pointer}/memory_free", gpu.memory_free, label)
        for pointer, label, gpu in gpus(case)
        if isinstance(gpu.memory_free, Known)
        and isinstance(gpu.memory_total, Known)
        and gpu.memory_free.value < 0.9 * gpu.memory_total.value
    ]
    if value.strip().lower() in TRUE or not shared:
        return passed(name, f"'{value}' does no harm here", evidence=evidence)
    pointer, free, label = shared[0]
    return problem(
        name,
        f"'{value}': TensorFlow reserves the card at once, and {label} is shared ({size(value_or(free, 0))} free)",
        evidence=[*evidence, shown(free, pointer, f"{size(value_or(free, 0))} free")],
        fixes=[fix("Let the memory grow with the need.", f"export {name}=true", verify=again("CD510"))],
        severity="note",
    )


@rule(
    "CD511",
    title="Numbers of the GPUs",
    severity="note",
    owner="environment",
    causes=("device-context-mixup",),
    explain="""nvidia-smi numbers the GPUs by their place on the bus; CUDA puts the fastest first unless
CUDA_DEVICE_ORDER is PCI_BUS_ID. With different GPUs in one machine, number 0 of the one may be number 1 of the other,
and a program runs on a GPU that it was not meant for.""",
    source=VARIABLES_DOC,
    examples=lambda: (
        ("skipped", sample()),
        ("problem", two_gpus("NVIDIA T400")),
        ("ok", two_gpus("NVIDIA T400", CUDA_DEVICE_ORDER="PCI_BUS_ID")),
        ("ok", two_gpus("NVIDIA H200")),
    ),
)
def numbering(case: Case) -> Iterator[Outcome]:
    listed = value_or(case.snapshot.gpus, ())
    names = list(dict.fromkeys(value_or(g.name, "?") for g in listed))
    if len(listed) < 2:
        yield skip("machine", "it takes two GPUs to mix up their numbers")
        return
    order = case.snapshot.host.environment.get("CUDA_DEVICE_ORDER", "")
    evidence = [see(case, lambda s: s.gpus).shown(", ".join(names)), variable(case, "CUDA_DEVICE_ORDER")]
    if len(names) == 1 or order == "PCI_BUS_ID":
        yield passed("machine", "CUDA and nvidia-smi number the GPUs alike", evidence=evidence)
        return
    users = ", ".join(name for _, name, _ in frameworks(case))
    yield problem(
        "machine",
        f"Different GPUs ({', '.join(names)}): CUDA numbers the fastest first, nvidia-smi by the bus",
        detail=f"This concerns {users or 'every CUDA program'} and CUDA_VISIBLE_DEVICES with numbers.",
        evidence=evidence,
        fixes=[fix("Number them alike.", "export CUDA_DEVICE_ORDER=PCI_BUS_ID", verify=again("CD511"))],
    )
