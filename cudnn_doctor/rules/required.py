"""CD114 and CD415: what the user requires of this machine (`--require`) and no other rule asks for."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.base import Known
from cudnn_doctor.model.facts import Framework
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule, see, shown, skip
from cudnn_doctor.rules.facts import cuda_works
from cudnn_doctor.rules.remedies import fix, pip
from cudnn_doctor.rules.sample import ABSENT, sample

NVML = "/snapshot/driver/nvml"
PACKAGES = "/snapshot/packages"
INSTALL_DOC = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
FRAMEWORKS = {"tensorflow": "tensorflow[and-cuda]", "torch": "torch", "jax": "jax[cuda13]"}


@rule(
    "CD114",
    title="Driver that --require demands",
    severity="error",
    owner="node",
    causes=("environment-restriction",),
    explain="""A machine without a driver is mostly no fault: a login node, a CI runner. `--require driver` says that it
is one here. The driver counts as there when its kernel module is loaded, NVML answers or cuInit succeeds; whether it
is in order the other rules say.""",
    source=INSTALL_DOC,
    examples=lambda: (
        ("skipped", sample()),
        ("ok", sample(required=("driver",))),
        (
            "problem",
            sample(
                {"driver.kernel_module": ABSENT, "driver.nvml": ABSENT, "driver.init": ABSENT}, required=("driver",)
            ),
        ),
    ),
    requirements=("driver",),
)
def driver(case: Case) -> Iterator[Outcome]:
    if "driver" not in case.required:
        yield skip("driver", "--require driver was not given")
        return
    module, nvml = case.snapshot.driver.kernel_module, case.snapshot.driver.nvml
    evidence = [
        see(case, lambda s: s.driver.kernel_module).shown(),
        see(case, lambda s: s.driver.nvml).shown(nvml.value.name if isinstance(nvml, Known) else ""),
    ]
    if isinstance(module, Known) or (isinstance(nvml, Known) and not nvml.value.code) or cuda_works(case):
        yield passed("driver", "The required driver is there", evidence=evidence)
    elif module.reason not in ("not-found", "not-supported"):
        see(case, lambda s: s.driver.kernel_module).need()
    else:
        yield problem(
            "driver",
            "The required NVIDIA driver is not there",
            detail="No kernel module is loaded, NVML does not answer and CUDA does not start.",
            evidence=evidence,
            fixes=[fix(f"Install the driver: {INSTALL_DOC}", verify="nvidia-smi")],
        )


@rule(
    "CD415",
    title="Frameworks that --require demands",
    severity="error",
    owner="environment",
    causes=("insufficient-info",),
    explain="""An environment without TensorFlow, PyTorch or JAX has nothing to compare cuDNN with, and most rules of
this group are skipped. `--require tensorflow`, `torch` or `jax` makes that a problem: a CI job that lost its
framework, or that examines another environment than it means, does not pass.""",
    source="metadata of the installed distributions",
    examples=lambda: (
        ("skipped", sample()),
        ("ok", sample(required=("torch",))),
        ("problem", sample(required=("tensorflow",))),
        ("unknown", sample({"packages": ABSENT, "frameworks": ()}, required=("jax",))),
    ),
    requirements=tuple(FRAMEWORKS),
)
def frameworks(case: Case) -> Iterator[Outcome]:
    there: dict[str, Framework] = {f.name: f for f in case.snapshot.frameworks}
    for name, wanted in FRAMEWORKS.items():
        if name not in case.required:
            continue
        packages = see(case, lambda s: s.packages).need()
        found = there.get(name)
        if found:
            at = next((i for i, p in enumerate(packages) if p.name == found.distribution), None)
            pointer = PACKAGES if at is None else f"{PACKAGES}/value/{at}"
            evidence = [shown(case.snapshot.packages, pointer, f"{found.distribution} {found.version}")]
            yield passed(name, f"{name}, which --require demands, is there", evidence=evidence)
            continue
        patient = case.snapshot.patient
        yield problem(
            name,
            f"{name}, which --require demands, is not installed in {patient.prefix}",
            detail=f"This environment was chosen by {patient.chosen_by}; --env PATH takes another.",
            evidence=[see(case, lambda s: s.packages).shown(f"{len(packages)} packages of interest, no {name}")],
            fixes=[
                fix(
                    f"Install {name}.",
                    pip(case, "install", wanted),
                    verify=f"cudnn-doctor check --require {name}",
                )
            ],
        )
