"""The compatibility rules on machines as people have them. Each rule's own examples run in test_conformance."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cudnn_doctor.model.base import known
from cudnn_doctor.model.facts import CudaInit, Framework, LibcudaCopy, Package, Resolution, SearchStep
from cudnn_doctor.model.report import Finding
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.sample import ABSENT, CUDNN_DIR, EX, SITE, sample, snapshot

RULES = {r.code: r for r in all_rules() if r.code.startswith("CD4")}
TF_2_21 = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")


def findings(case: Case, code: str) -> list[tuple[str, str, str]]:
    return [(f.status, f.severity, f.title) for f in RULES[code].apply(case)]


def problems(case: Case) -> dict[str, Finding]:
    return {f.code: f for rule in RULES.values() for f in rule.apply(case) if f.status == "problem"}


def tensorflow(version: str = "2.21.0", **fields: Any) -> Framework:
    """tensorflow[and-cuda] as the wheel says of itself."""
    base = Framework(
        name="tensorflow",
        distribution="tensorflow",
        version=version,
        location=f"{SITE}/tensorflow",
        cuda_build=known(True, "build_info.py"),
        built_cuda=known("12.5.1", "build_info.py"),
        built_cudnn=known("9", "build_info.py"),
        compute_capabilities=known(TF_2_21, "build_info.py"),
        requires=("nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == 'and-cuda'",),
        cudnn_soname=known("libcudnn.so.9", EX),
    )
    return msgspec.structs.replace(base, **fields)


def machine(framework: Framework, cudnn: str, wheel: str, **changes: Any) -> Case:
    """The sample machine with one framework and one cuDNN wheel ("nvidia-cudnn-cu12 9.28.0.42") that it loads."""
    flavour = int(wheel.partition(" ")[0][-2:]) if wheel else 12
    search = msgspec.structs.replace(snapshot().resolutions[1], consumer=framework.name)
    return sample(
        {
            "frameworks": (framework,),
            "resolutions": (search,),
            "cudnn.0.version": known(cudnn, "file name"),
            "cudnn.0.package": known(wheel, EX) if wheel else ABSENT,
            "cudnn.0.cuda_flavour": known(flavour, EX),
            "cudnn.0.cudart": known(f"{flavour}.0", EX),
            "packages": known(_packages(wheel), EX),
            **{path.replace("__", "."): value for path, value in changes.items()},
        }
    )


def _packages(wheel: str) -> tuple[Package, ...]:
    name, _, version = wheel.partition(" ")
    return (Package(name=name, version=version, location=SITE, requires=()),) if wheel else ()


def gpu(cc: str, name: str) -> dict[str, Any]:
    return {"gpus__0__compute_capability": known(cc, "NVML"), "gpus__0__name": known(name, "NVML")}


def old_driver(release: str, cuda: str) -> dict[str, Any]:
    init = CudaInit(code=0, name="CUDA_SUCCESS", driver_cuda=known(cuda, EX), library="libcuda.so.1")
    return {
        "driver__version": known(release, "NVML"),
        "driver__cuda": known(cuda, "NVML"),
        "driver__init": known(init, EX),
    }


# ---------------------------------------------------------------- healthy machines must stay healthy


def test_a_fresh_tensorflow_2_21_is_no_problem_though_nothing_equals_the_table() -> None:
    case = machine(tensorflow(), "9.28.0", "nvidia-cudnn-cu12 9.28.0.42")
    found = problems(case)
    assert set(found) == {"CD410"}
    assert found["CD410"].severity == "note"
    assert [f.status for f in RULES["CD406"].apply(case)] == ["ok"]
    assert [f.status for f in RULES["CD409"].apply(case)] == ["ok"]


def test_three_verdicts_are_told_apart() -> None:
    # 9.1.0 with TensorFlow 2.21: refused by the loader, outside the range, not in the table.
    found = problems(machine(tensorflow(), "9.1.0", "nvidia-cudnn-cu12 9.1.0.70"))
    assert {c: f.severity for c, f in found.items()} == {"CD406": "error", "CD409": "warning", "CD410": "note"}
    assert found["CD406"].causes == ("cudnn-runtime-too-old",)
    assert "install nvidia-cudnn-cu12==9.28.0.42" in found["CD406"].fixes[0].command
    assert found["CD406"].fixes[0].verify == "cudnn-doctor check --only CD406"


def test_a_newer_pin_of_another_framework_is_a_warning_only() -> None:
    # torch pins 9.1.0.70, TensorFlow brought 9.3.0.75: the loader accepts it, the declared range does not.
    torch = msgspec.structs.replace(
        snapshot().frameworks[0],
        version="2.6.0",
        built_cuda=known("12.4", EX),
        built_cudnn=known("9.1.0", EX),
        requires=("nvidia-cudnn-cu12==9.1.0.70; platform_system == 'Linux' and platform_machine == 'x86_64'",),
    )
    found = problems(machine(torch, "9.3.0", "nvidia-cudnn-cu12 9.3.0.75"))
    assert {c: f.severity for c, f in found.items()} == {"CD409": "warning"}


def test_plain_tensorflow_with_a_cudnn_of_the_system_did_not_ask_for_the_extra() -> None:
    plain = tensorflow("2.15.1", built_cudnn=known("8", EX), built_cuda=known("12.2", EX),
                       requires=("nvidia-cudnn-cu12==8.9.4.25; extra == 'and-cuda'",))  # fmt: skip
    assert problems(machine(plain, "8.9.7", "")) == {}
    assert set(problems(machine(plain, "8.9.7", "nvidia-cudnn-cu12 8.9.7.29"))) == {"CD409"}


def test_a_framework_newer_than_the_matrix_is_unknown() -> None:
    case = machine(
        tensorflow("2.40.0", built_cudnn=known("9.40", EX), compute_capabilities=ABSENT),
        "9.30.0",
        "nvidia-cudnn-cu12 9.30.0.1",
    )
    assert set(problems(case)) == set()
    assert findings(case, "CD406")[0][0] == "unknown"
    assert findings(case, "CD404")[0][0] == "unknown"
    assert findings(case, "CD405")[0][0] == "unknown"
    assert findings(case, "CD410")[0][0] == "unknown"


def test_a_driver_newer_than_the_matrix_is_fine() -> None:
    case = sample({"driver.version": known("999.10.02", EX), "driver.cuda": known("19.0", EX)})
    assert findings(case, "CD401")[0][0] == "ok"


# ---------------------------------------------------------------- drivers


def test_driver_too_old_says_both_ways_out() -> None:
    found = RULES["CD401"].apply(
        sample({p.replace("__", "."): v for p, v in old_driver("535.104.05", "12.2").items()})
    )[0]
    assert (found.status, found.owner, found.causes) == ("problem", "node", ("driver-too-old",))
    assert found.detail.startswith("Driver 535.104.05 is too old for CUDA 13.0: at least 580.65.06")
    assert "cuda-compat-13-0" in found.detail  # an H200 may use it
    assert found.fixes[0].command.endswith("torch==2.11.0+cu128 --index-url https://download.pytorch.org/whl/cu128")
    assert found.fixes[-1].text == "Install driver branch 580 or newer and restart the machine"
    assert found.fixes[-1].command == ""  # how a driver is installed is the machine's own affair


def test_cuda_compat_in_use() -> None:
    compat = LibcudaCopy(
        path="/usr/local/cuda-13.0/compat/libcuda.so.1",
        real_path="/usr/local/cuda-13.0/compat/libcuda.so.580.65.06",
        version=known("580.65.06", EX),
        found_by="LD_LIBRARY_PATH",
        compat=True,
        wsl=False,
    )
    changes = {
        "driver.version": known("535.104.05", EX),
        "driver.cuda": known("12.2", EX),
        "driver.init": ABSENT,
        "driver.libcuda": (compat, *snapshot().driver.libcuda),
    }
    assert findings(sample(changes), "CD401") == [
        ("ok", "error", "cuda-compat 580.65.06 lifts driver 535.104.05 to CUDA 13.0")
    ]
    consumer = RULES["CD401"].apply(sample({**changes, "gpus.0.name": known("NVIDIA GeForce RTX 4090", EX)}))[0]
    assert (consumer.status, consumer.causes) == ("problem", ("compat-libs-unsupported",))
    assert consumer.title == "cuda-compat does not serve this GPU"


def test_under_wsl_the_driver_is_that_of_windows() -> None:
    changes = {
        "host.wsl": known(True, EX),
        **{p.replace("__", "."): v for p, v in old_driver("537.13", "12.2").items()},
    }
    found = RULES["CD401"].apply(sample(changes))[0]
    assert found.status == "problem"
    assert found.fixes[-1].text.startswith("Install NVIDIA driver branch 580 or newer in Windows")
    assert found.fixes[-1].command == ""


def test_minor_version_compatibility_is_not_enough_for_ptx() -> None:
    case = machine(
        tensorflow(),
        "9.28.0",
        "nvidia-cudnn-cu12 9.28.0.42",
        **gpu("10.0", "NVIDIA B200"),
        **old_driver("550.54.14", "12.4"),
    )
    found = problems(case)
    assert findings(case, "CD401")[0][0] == "ok"
    assert found["CD403"].severity == "error"
    assert found["CD405"].severity == "warning"


# ---------------------------------------------------------------- GPUs


def test_volta_with_what_pip_takes_today() -> None:
    volta = gpu("7.0", "Tesla V100-SXM2-16GB")
    found = problems(machine(tensorflow("2.20.0"), "9.28.0", "nvidia-cudnn-cu12 9.28.0.42", **volta))
    assert set(found) == {"CD404", "CD410"}
    assert found["CD404"].causes == ("gpu-too-old-for-build",)
    assert found["CD404"].fixes[0].command == "/opt/venv/bin/python -m pip install nvidia-cudnn-cu12==9.10.2.21"
    fixed = problems(machine(tensorflow("2.20.0"), "9.10.2", "nvidia-cudnn-cu12 9.10.2.21", **volta))
    assert set(fixed) == {"CD410"}


def test_blackwell_with_the_cudnn_that_2_18_pins() -> None:
    pinned = tensorflow("2.18.0", requires=("nvidia-cudnn-cu12==9.3.0.75; extra == 'and-cuda'",))
    found = problems(machine(pinned, "9.3.0", "nvidia-cudnn-cu12 9.3.0.75", **gpu("12.0", "NVIDIA GeForce RTX 5090")))
    assert {c: (f.severity, f.causes) for c, f in found.items()} == {
        "CD404": ("warning", ("gpu-too-new-for-build",)),
        "CD405": ("warning", ("gpu-too-new-for-build",)),
    }


def test_torch_refuses_the_weakest_gpu() -> None:
    other = msgspec.structs.replace(
        snapshot().gpus.value[0],  # type: ignore[union-attr]
        index=1,
        name=known("Tesla V100-SXM2-16GB", EX),
        compute_capability=known("7.0", EX),
    )
    both = sample({"gpus": known((*snapshot().gpus.value, other), EX)})  # type: ignore[union-attr]
    found = RULES["CD411"].apply(both)[0]
    assert (found.status, found.causes) == ("problem", ("gpu-too-old-for-build",))
    assert "CUDA_VISIBLE_DEVICES" in found.fixes[0].text


def test_jax_counts_the_gpus() -> None:
    jax = msgspec.structs.replace(
        snapshot().frameworks[0],
        name="jax",
        distribution="jax-cuda12-plugin",
        version="0.7.0",
        built_cuda=known("12", EX),
        built_cudnn=known("9", EX),
        compute_capabilities=ABSENT,
        requires=(),
    )
    cublas = msgspec.structs.replace(snapshot().cuda.libraries[1], major=12, version=known("12.9.1", EX))
    one = {"cuda__libraries": (cublas,)}
    card = snapshot().gpus.value[0]  # type: ignore[union-attr]
    two = {**one, "gpus": known((card, msgspec.structs.replace(card, index=1)), EX)}
    assert findings(machine(jax, "9.8.0", "nvidia-cudnn-cu12 9.8.0.87", **one), "CD411")[0][0] == "ok"
    found = RULES["CD411"].apply(machine(jax, "9.8.0", "nvidia-cudnn-cu12 9.8.0.87", **two))[0]
    assert (found.status, found.causes) == ("problem", ("library-bug",))
    assert "wrong matrix products on several GPUs" in found.detail


def test_a_mixed_copy_is_judged_by_the_cuda_that_its_release_exists_for() -> None:
    # Sub-libraries of CUDA 13 around a libcudnn_graph of 9.1.0, which was never built for CUDA 13.
    mixed = sample({"cudnn.0.version": known("9.1.0", EX), "cudnn.0.cudart": known("12.4", EX)})
    assert findings(mixed, "CD404") == [("ok", "error", "cuDNN 9.1.0 for CUDA 12 has code for compute capability 9.0")]


def test_a_gpu_whose_capability_is_not_known_is_not_blamed() -> None:
    assert [f.status for f in RULES["CD411"].apply(sample({"gpus.0.compute_capability": ABSENT}))] == ["ok"]
    assert [f.status for f in RULES["CD404"].apply(sample({"gpus.0.compute_capability": ABSENT}))] == ["skipped"]


# ---------------------------------------------------------------- the loader


def test_a_good_copy_that_is_shadowed() -> None:
    good = snapshot().cudnn[0]
    old = msgspec.structs.replace(
        good,
        path="/opt/cudnn-9.1/lib/libcudnn.so.9",
        real_path="/opt/cudnn-9.1/lib/libcudnn.so.9.1.0",
        version=known("9.1.0", "file name"),
        package=ABSENT,
        cuda_flavour=ABSENT,
    )
    step = SearchStep(step="LD_LIBRARY_PATH", directory="/opt/cudnn-9.1/lib", found=True)
    search = Resolution(
        consumer="torch",
        wanted="libcudnn.so.9",
        path=known(old.path, EX),
        real_path=known(old.real_path, EX),
        step="LD_LIBRARY_PATH",
        shadowed=(good.real_path,),
        steps=(step,),
    )
    path = "/opt/cudnn-9.1/lib:/usr/local/cuda/lib64"
    facts = {"cudnn": (old, good), "resolutions": (search,), "host.environment.LD_LIBRARY_PATH": path}
    found = RULES["CD406"].apply(sample(facts))[0]
    assert found.causes == ("cudnn-shadowed", "cudnn-runtime-too-old")
    assert found.fixes[0].text == (
        f"cuDNN 9.19.0 ({CUDNN_DIR}/libcudnn.so.9) would do, but /opt/cudnn-9.1/lib/libcudnn.so.9 is found first "
        "(LD_LIBRARY_PATH)"
    )
    assert found.fixes[0].command == "export LD_LIBRARY_PATH=/usr/local/cuda/lib64"


@pytest.mark.parametrize(
    ("version", "built", "loaded", "statuses"),
    [
        ("1.7.0", "7.0", "7.1.2", {"CD406": "skipped", "CD407": "problem", "CD408": "ok"}),
        ("1.7.0", "7.0", "7.0.5", {"CD406": "skipped", "CD407": "ok", "CD408": "ok"}),
        ("1.12.0", "7", "7.0.5", {"CD406": "problem", "CD407": "skipped", "CD408": "ok"}),
        ("2.17.0", "8", "9.1.0", {"CD406": "skipped", "CD407": "skipped", "CD408": "problem"}),
        ("2.17.0", "8", "8.9.7", {"CD406": "ok", "CD407": "skipped", "CD408": "ok"}),
    ],
)
def test_one_rule_speaks_for_each_era(version: str, built: str, loaded: str, statuses: dict[str, str]) -> None:
    old = tensorflow(version, built_cudnn=known(built, EX), built_cuda=ABSENT, requires=())
    case = machine(old, loaded, "")
    assert {code: RULES[code].apply(case)[0].status for code in statuses} == statuses


def test_no_cudnn_found_is_another_rules_business() -> None:
    search = msgspec.structs.replace(snapshot().resolutions[1], path=ABSENT, real_path=ABSENT, step="")
    case = sample({"resolutions": (search,)})
    assert findings(case, "CD406")[0][0] == "skipped"
    assert problems(case) == {}


def test_a_copy_without_a_version_is_unknown() -> None:
    case = sample({"cudnn.0.version": ABSENT})
    assert findings(case, "CD406")[0][0] == "unknown"
    assert findings(case, "CD404")[0][0] == "unknown"


def test_the_same_torch_release_for_another_cuda_is_not_judged_by_the_row_of_pypi() -> None:
    # 2.11.0 of PyTorch's own index for CUDA 12.6: what the row for CUDA 13.0 says does not hold for it.
    changes = {
        "frameworks.0.built_cuda": known("12.6", EX),
        "frameworks.0.built_cudnn": known("9", EX),
        "frameworks.0.compute_capabilities": ABSENT,
    }
    case = sample({**changes, "cudnn.0.version": known("9.10.2", EX), "cudnn.0.cuda_flavour": known(12, EX)})
    assert findings(case, "CD406")[0][0] == "unknown"
    assert findings(case, "CD405")[0][0] == "unknown"


# ---------------------------------------------------------------- builds


def test_torch_and_tensorflow_in_one_environment() -> None:
    # torch's nvidia-cudnn-cu13 has overwritten the files of tensorflow's nvidia-cudnn-cu12.
    found = problems(machine(tensorflow(), "9.19.0", "nvidia-cudnn-cu13 9.19.0.56"))
    assert found["CD412"].severity == "warning"
    assert "--force-reinstall --no-deps" in found["CD412"].fixes[0].command


@pytest.mark.parametrize(
    ("framework", "command"),
    [
        (  # CUDA 10.0 knows no H200: the newest release in its place
            tensorflow("2.0.0"),
            "pip uninstall tensorflow && /opt/venv/bin/python -m pip install 'tensorflow[and-cuda]==2.21.0'",
        ),
        (
            tensorflow("2.17.0", distribution="tensorflow-cpu"),
            "pip uninstall tensorflow-cpu && /opt/venv/bin/python -m pip install 'tensorflow[and-cuda]==2.17.0'",
        ),
        (
            tensorflow("2.17.0", distribution="tensorflow-intel"),
            "pip uninstall tensorflow-intel && /opt/venv/bin/python -m pip install 'tensorflow[and-cuda]==2.17.0'",
        ),
        (
            msgspec.structs.replace(snapshot().frameworks[0], version="2.6.0"),
            "pip uninstall torch && /opt/venv/bin/python -m pip install torch==2.6.0",
        ),
        (
            msgspec.structs.replace(snapshot().frameworks[0], name="jax", distribution="jaxlib", version="0.9.0"),
            "install 'jax[cuda13]==0.9.0'",
        ),
    ],
    ids=lambda x: getattr(x, "distribution", ""),
)
def test_cpu_builds_get_the_gpu_build_of_the_same_release(framework: Framework, command: str) -> None:
    cpu = msgspec.structs.replace(framework, cuda_build=known(False, EX))
    found = RULES["CD413"].apply(sample({"frameworks": (cpu,)}))[0]
    assert (found.status, found.severity) == ("problem", "warning")
    assert command in found.fixes[0].command
    others = [f.status for code in RULES if code != "CD413" for f in RULES[code].apply(sample({"frameworks": (cpu,)}))]
    assert "problem" not in others


def test_a_cpu_onnxruntime_beside_torch_is_a_note() -> None:
    ort = msgspec.structs.replace(
        snapshot().frameworks[0], name="onnxruntime", distribution="onnxruntime", cuda_build=known(False, EX)
    )
    found = RULES["CD413"].apply(sample({"frameworks": (snapshot().frameworks[0], ort)}))
    assert [(f.status, f.severity) for f in found] == [("ok", "warning"), ("problem", "note")]
    assert found[1].fixes[0].command == ""  # which release fits depends on the CUDA that is there
    assert "onnxruntime-gpu for the CUDA and cuDNN that are here" in found[1].fixes[0].text


def test_tensorflow_on_native_windows_is_sent_to_wsl() -> None:
    cpu = tensorflow("2.18.1", cuda_build=known(False, EX))
    case = sample({"frameworks": (cpu,), "host.os": known("Windows 11", EX)})
    assert RULES["CD413"].apply(case)[0].fixes[0].text.startswith("Use WSL2: for native Windows")


def test_the_reason_for_a_cpu_build_comes_from_the_matrix() -> None:
    found = RULES["CD413"].apply(sample({"frameworks": (tensorflow("1.15.3", cuda_build=known(False, EX)),)}))[0]
    assert found.detail.startswith("tensorflow 1.15.2 to 2.0 for linux has no GPU code.")


# ---------------------------------------------------------------- nothing at all


def test_a_bare_machine_has_no_compatibility_problem() -> None:
    bare = sample(
        {
            "frameworks": (),
            "cudnn": (),
            "resolutions": (),
            "gpus": ABSENT,
            "driver.pci": known((), EX),
            "driver.version": ABSENT,
        }
    )
    statuses = {f.status for rule in RULES.values() for f in rule.apply(bare)}
    assert statuses == {"skipped"}
