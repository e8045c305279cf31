"""The `matrix` command: what it answers, and that its commands hold when they are worked out again by other means."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_doctor.matrix import pins
from cudnn_doctor.matrix.answer import answer
from cudnn_doctor.matrix.compat import cautions, cudnn_for_gpu, driver_for_cuda, driver_for_gpu, loader_rule, service
from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.matrix.pins import driver_branch, pin
from cudnn_doctor.matrix.question import Answer, QuestionError
from cudnn_doctor.matrix.requires import satisfies
from cudnn_doctor.model.versions import numbers, within

MATRIX = load_matrix()


def ask(subject: str, name: str, **options: Any) -> Answer:
    return answer(subject, name, MATRIX, **options)


def rules(found: Answer, verdict: str = "problem") -> list[str]:
    return [v.rule for v in found.verdicts if v.verdict == verdict]


def facts(found: Answer) -> dict[str, str]:
    return {f.label: f.value for f in found.facts}


# ---------------------------------------------------------------- the examples of the issue


def test_tensorflow_2_15() -> None:
    found = ask("tensorflow", "2.15")
    assert (found.title, found.verdict) == ("TensorFlow 2.15.1", "ok")
    assert facts(found)["tested on Linux"] == "CUDA 12.2, cuDNN 8.9, Python 3.9-3.11"
    assert facts(found)["cuDNN that it gets"] == "8.9.4.25"
    assert found.command == 'python -m pip install "tensorflow[and-cuda]==2.15.1"'
    assert all(f.source and f.checked_on for f in found.facts)


def test_tensorflow_2_18_on_an_old_driver_and_a_new_gpu() -> None:
    found = ask("tensorflow", "2.18", driver="535.54", gpu="RTX 5090")
    assert found.verdict == "problem"
    assert rules(found) == ["wheel-gpu:ptx", "cudnn-gpu:ptx", "driver-gpu:unknown", "driver:ptx"]
    # 2.21 takes a cuDNN with code for it; the wheel itself still has PTX alone, which is said.
    assert found.command == 'python -m pip install "tensorflow[and-cuda]==2.21.0"'
    assert found.ways[0].changes == ("release", "driver")
    assert found.ways[0].needs == "driver 570.26 or newer, not 535.54 (take branch 580); Python 3.10 to 3.13"
    assert any(n.startswith("Still so: TensorFlow 2.21.0 has only PTX") for n in found.notes)


def test_volta_with_tensorflow_2_20_gets_an_older_cudnn() -> None:
    found = ask("tensorflow", "2.20", gpu="Tesla V100-SXM2-16GB")
    assert found.verdict == "ok"
    assert found.command == 'python -m pip install "tensorflow[and-cuda]==2.20.0" "nvidia-cudnn-cu12<9.11"'
    assert facts(found)["cuDNN that it gets"] == "9.10.2.21"
    assert ask("tensorflow", "2.20", gpu="Tesla T4").command.endswith('"tensorflow[and-cuda]==2.20.0"')


def test_a_release_candidate_is_called_one_and_is_no_cure() -> None:
    found = ask("tensorflow", "2.22", gpu="V100")
    assert facts(found)["kind"] == "a release candidate"
    assert facts(found)["built with"] == "not known: its build_info does not say"
    assert found.verdict == "unknown"
    assert found.command.endswith('"tensorflow[and-cuda]==2.21.0" "nvidia-cudnn-cu12<9.11"')


def test_cudnn_9_10() -> None:
    found = ask("cudnn", "9.10")
    assert found.command == 'python -m pip install "nvidia-cudnn-cu12==9.10.2.21"'
    assert facts(found)["nvidia-cudnn-cu11"] == "9.10.0.56, 9.10.1.4, 9.10.2.21"
    assert facts(found)["TensorFlow that accepts it"] == "2.18, 2.19, 2.20, 2.21"
    assert "CUDA 11.8; compute capability 5.0-9.0" in facts(found)["9.7 to 9.10 for CUDA 11"]


def test_gpu_tesla_k80() -> None:
    found = ask("gpu", "Tesla K80")
    assert facts(found)["architecture"] == "Kepler, compute capability 3.7"
    assert facts(found)["CUDA"] == "6.5 to 11.8"
    assert facts(found)["cuDNN"] == "7.0 to 8.7"
    assert facts(found)["driver"] == "up to branch 470"
    assert facts(found)["TensorFlow with code for it"] == "1.0 to 2.14"
    assert found.command == 'python -m pip install "tensorflow[and-cuda]==2.14.1"'
    with_driver = ask("gpu", "Tesla K80", driver="535.54.03")
    assert rules(with_driver) == ["driver-gpu:dropped"]


def test_driver_470() -> None:
    found = ask("driver", "470")
    assert facts(found)['highest CUDA ("CUDA Version" of nvidia-smi)'] == "11.4"
    assert facts(found)["serves"] == "CUDA 11.x; PTX up to CUDA 11.4"
    assert facts(found)["newest TensorFlow"] == "TensorFlow 2.14.1, CUDA 11.8"
    assert found.verdict == "ok"


# ---------------------------------------------------------------- other questions


def test_driver_below_the_minimum_of_minor_version_compatibility() -> None:
    assert facts(ask("driver", "450"))["serves"] == "CUDA 11.x from 450.80.02 on; PTX up to CUDA 11.0"
    assert facts(ask("driver", "450.51.06"))['highest CUDA ("CUDA Version" of nvidia-smi)'] == "11.0"
    assert "serves" not in facts(ask("driver", "450.51.06"))


def test_driver_535_on_a_data_centre_gpu() -> None:
    found = ask("driver", "535.104.05", gpu="NVIDIA H100 PCIe")
    assert facts(found)["with cuda-compat"].startswith("CUDA 12.3, 12.4")
    assert facts(found)["GPUs no longer served"] == "Kepler"
    assert found.command == 'python -m pip install "tensorflow[and-cuda]==2.21.0"'


def test_cuda_12_5() -> None:
    found = ask("cuda", "12.5", driver="535", gpu="K80")
    assert facts(found)["its own driver"] == "555.42.02 (Linux), 555.85 (Windows)"
    assert facts(found)["TensorFlow built with it"] == "2.18, 2.19, 2.20, 2.21"
    assert rules(found) == ["cuda-gpu"]
    assert rules(found, "ok") == ["driver:minor-version"]


def test_torch_on_volta_takes_the_build_of_pytorchs_own_index() -> None:
    found = ask("torch", "2.11", gpu="V100", driver="580.65.06")
    assert rules(found) == ["wheel-gpu:none", "cudnn-gpu:none", "caution:torch-sm75"]
    assert (
        found.command
        == 'python -m pip install "torch==2.11.0+cu126" --index-url https://download.pytorch.org/whl/cu126'
    )


def test_torch_for_arm_began_with_2_11() -> None:
    arm = ask("torch", "2.10", machine="aarch64", gpu="H100")
    assert facts(arm)["builds"] == "cu130"  # the wheel on PyPI is CPU-only
    assert facts(ask("torch", "2.11", machine="aarch64"))["code for"] == "sm_80 sm_90 sm_100 sm_110 sm_120"


def test_torch_on_an_old_driver() -> None:
    found = ask("torch", "2.11", driver="535.104.05", gpu="NVIDIA H100 PCIe")
    assert rules(found) == ["driver:too-old"]
    assert "cu126" in found.command or "cu128" in found.command


def test_torch_for_windows_comes_from_its_own_index() -> None:
    found = ask("torch", "2.6", system="windows")
    assert (
        found.command == 'python -m pip install "torch==2.6.0+cu124" --index-url https://download.pytorch.org/whl/cu124'
    )


def test_jax_takes_the_plugin_that_fits() -> None:
    assert ask("jax", "0.12.0", gpu="H200", driver="580.65.06").command.endswith('"jax[cuda13]==0.12.0"')
    assert ask("jax", "0.12.0", gpu="H200", driver="535.104.05").command.endswith('"jax[cuda12]==0.12.0"')
    assert ask("jax", "0.12.0", gpu="V100").command.endswith('"jax[cuda12]==0.12.0" "nvidia-cudnn-cu12<9.11"')


def test_tensorflow_on_windows() -> None:
    new = ask("tensorflow", "2.15", system="windows")
    assert rules(new) == ["build"]
    assert new.command == 'python3.10 -m pip install "tensorflow==2.10.1" "numpy<2"'
    assert (
        'In WSL2, where the driver of Windows serves: python -m pip install "tensorflow[and-cuda]==2.21.0"' in new.notes
    )
    old = ask("tensorflow", "2.10", system="windows", gpu="RTX 3090")
    assert old.verdict == "ok"
    assert old.notes[0] == (
        "This release brings no CUDA: install the CUDA 11.2 toolkit and cuDNN 8.1 from NVIDIA's archive, with their "
        "bin folders on PATH."
    )


def test_tensorflow_2_0_is_a_gpu_build_under_another_name() -> None:
    assert ask("tensorflow", "2.0").command == 'python -m pip install "tensorflow-gpu==2.0.4" "protobuf<3.21"'
    assert '"tensorflow-gpu==1.15.2"' in ask("tensorflow", "1.15.2").command
    assert '"tensorflow==1.15.0"' in ask("tensorflow", "1.15.0").command


def test_tensorflow_before_the_extra_gets_a_cudnn_wheel_all_the_same() -> None:
    found = ask("tensorflow", "2.13", gpu="Tesla K80")
    assert found.command == 'python -m pip install "tensorflow==2.13.1" "nvidia-cudnn-cu11<8.8"'
    assert any("CUDA 11.8 toolkit" in n for n in found.notes)


def test_python() -> None:
    wrong = ask("tensorflow", "2.15", python="3.13")
    assert rules(wrong) == ["wheel"]
    assert wrong.command == 'python -m pip install "tensorflow[and-cuda]==2.21.0"'
    assert ask("tensorflow", "2.20", python="3.13").verdict == "ok"  # a peer says that TensorFlow ends at 3.12


@pytest.mark.parametrize(
    ("subject", "name"),
    [("tensorflow", "2.30"), ("tensorflow", "3"), ("tensorflow", "2.15.7"), ("torch", "2.99.1"), ("jax", "0.99.0"),
     ("cudnn", "9.99"), ("cudnn", "10"), ("driver", "999.1"), ("cuda", "14.0")],
)  # fmt: skip
def test_newer_than_the_matrix_is_unknown(subject: str, name: str) -> None:
    found = ask(subject, name)
    assert found.verdict == "unknown"
    assert "newer than" in found.verdicts[0].text


@pytest.mark.parametrize(
    ("subject", "name", "options", "words"),
    [
        ("tensrflow", "2.15", {}, ["no such subject", "tensorflow, torch, jax", "Nearest: tensorflow."]),
        ("tensorflow", "1.99", {}, ["no such release", "1.0.0 to 2.22.0rc0"]),
        ("tensorflow", "2.15.0.9", {}, ["never released", "2.15.0, 2.15.0.post1, 2.15.1"]),
        ("tensorflow", "newish", {}, ["not a version number"]),
        ("torch", "0.4", {}, ["no such release", "1.10.0 to 2.15.0"]),
        ("jax", "0.3.1", {}, ["no such release", "0.4.22 to 0.12.0.1"]),
        ("torch", "2.4.1+cu999", {}, ["no such build", "PyPI (cu121), cu121, cu124, cu118"]),
        ("keras", "3.5", {}, ["TensorFlow, PyTorch or JAX"]),
        ("tensorflow", "2.18", {"driver": "12.2"}, ["a CUDA version", "535.54.03 or newer"]),
        ("tensorflow", "2.18", {"gpu": "MI300X"}, ["a device of AMD"]),
        ("tensorflow", "2.18", {"gpu": "RTX 4000"}, ["may mean", "Quadro RTX 4000 (7.5)"]),
        ("cudnn", "4.0", {}, ["no such release", "7.0.1"]),
        ("gpu", "RTX 6090", {}, ["no GPU of that name", "no GPU of that name"]),
        ("gpu", "7.3", {}, ["compute capability 7.3 is not in the matrix"]),
        ("driver", "380", {}, ["no such branch", "384, 390"]),
        ("cuda", "12.7", {}, ["no such toolkit", "12.6, 12.8"]),
        ("tensorflow", "2.15", {"gpu": "Voodoo 2"}, ["--gpu Voodoo 2"]),
        ("tensorflow", "2.15", {"driver": "new"}, ["--driver new", "535.54.03"]),
        ("tensorflow", "2.15", {"python": "py3"}, ["--python py3"]),
        ("tensorflow", "2.15", {"system": "beos"}, ["linux, windows, wsl, macos"]),
    ],
)
def test_what_cannot_be_answered(subject: str, name: str, options: dict[str, str], words: list[str]) -> None:
    with pytest.raises(QuestionError) as error:
        ask(subject, name, **options)
    for word in words:
        assert word in str(error.value)


def test_ways_to_say_the_same() -> None:
    assert ask("TF", "v2.15").title == ask("tensorflow", "2.15").title
    assert ask("pytorch", "2.6").subject == "torch"
    assert ask("driver", "R535").title == "Driver 535"
    assert ask("gpu", "sm_70").facts == ask("gpu", "7.0").facts
    assert ask("gpu", "V100").facts[0] == ask("gpu", "7.0").facts[0]
    assert ask("cudnn", "91002").title == "cuDNN 9.10.2"
    assert ask("cudnn", "8907").title == "cuDNN 8.9.7"


def test_cudnn_for_a_gpu_that_it_does_not_serve() -> None:
    found = ask("cudnn", "9.12", gpu="V100")
    assert rules(found) == ["cudnn-gpu:none"]
    assert found.command == ""
    assert any("nvidia-cudnn-cu12<9.11" in n or "nvidia-cudnn-cu13" in n for n in found.notes) or found.notes


# ---------------------------------------------------------------- every command is worked out again


def pip_takes(distribution: str, *specifiers: str) -> str:
    """What pip would choose: the newest release that is not yanked and fits all specifiers."""
    wheels = MATRIX.wheels(distribution)
    assert wheels is not None
    usable = [v for v in wheels.versions if v not in wheels.yanked and all(satisfies(v, s) for s in specifiers)]
    return max(usable, key=lambda v: (numbers(v), -len(v)))


ON_ARM = ("3.2", "5.3", "6.2", "7.2", "8.7", "8.8", "10.1", "11.0", "12.1")
GPUS = st.sampled_from([g.cc for g in MATRIX.gpus if g.cc not in ON_ARM])
DRIVERS = st.sampled_from([f"{r.linux}.0" if r.linux.count(".") == 0 else r.linux for r in MATRIX.cuda])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([r.version for r in MATRIX.tensorflow]), GPUS, DRIVERS)
def test_a_tensorflow_command_holds(version: str, cc: str, driver: str) -> None:
    found = ask("tensorflow", version, gpu=cc, driver=driver)
    if not found.command:
        return
    wanted = re.findall(r'"([a-z0-9\-]+)(\[and-cuda\])?([=<]=?)([\w.]+)"', found.command)
    wanted = [w for w in wanted if w[0] not in ("numpy", "protobuf")]
    framework, release = wanted[0][0], wanted[0][3]
    row = MATRIX.framework("tensorflow", release)
    assert row is not None
    assert release in row.releases
    assert MATRIX.build(framework, release, "linux", "x86_64").gpu  # type: ignore[union-attr]
    assert service(row.capabilities, cc) != "none" or not row.capabilities
    specifiers = [o + v for d, _, o, v in wanted[1:] if d.startswith("nvidia-cudnn")]
    distribution = wanted[1][0] if wanted[1:] else re.split(r"[=<>]", row.cudnn_pin)[0]
    if distribution:
        if wanted[0][1]:
            specifiers.append(row.cudnn_pin.removeprefix(distribution))
        cudnn = pip_takes(distribution, *specifiers)
        if row.built_cudnn:
            assert loader_rule(MATRIX, "tensorflow", release, row.built_cudnn, cudnn).verdict == "ok"
        judgement = cudnn_for_gpu(MATRIX, cudnn, cc, flavour=distribution[-2:])
        assert judgement.verdict != "problem" or judgement.severity == "warning"
    if "driver" not in found.ways[0].changes:
        assert driver_for_gpu(MATRIX, cc, driver).verdict != "problem"
        cuda = str(getattr(row, "wheel_cuda", "") or row.cuda)
        if cuda:
            assert driver_for_cuda(MATRIX, cuda, driver).verdict == "ok"


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([r.version for r in MATRIX.torch]), GPUS, DRIVERS)
def test_a_torch_command_holds(version: str, cc: str, driver: str) -> None:
    found = ask("torch", version, gpu=cc, driver=driver)
    if not found.command:
        return
    wanted = re.search(r'"torch==([\d.]+)(?:\+cu\d+)?"(?: --index-url \S+/(cu\d+))?', found.command)
    assert wanted is not None
    row = MATRIX.framework("torch", wanted[1])
    assert row is not None
    if wanted[2]:
        variant = next(
            v for v in MATRIX.torch_variants if v.variant == wanted[2] and within(wanted[1], v.first, v.last)
        )
        assert service(variant.capabilities, cc) == "native"
        return
    cudnn = row.cudnn_pin.partition("==")[2]
    assert service(row.capabilities, cc) != "none" or not row.capabilities
    assert not cautions(MATRIX, "torch", wanted[1], cudnn=cudnn or "7.6.5", capabilities=(cc,))
    if "driver" not in found.ways[0].changes:
        assert driver_for_cuda(MATRIX, row.cuda, driver).verdict == "ok"


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["tensorflow", "torch", "jax", "cudnn", "gpu", "driver", "cuda", "x"]),
    st.text(max_size=8) | st.from_regex(r"\d{1,3}(\.\d{1,3}){0,3}", fullmatch=True),
    st.none() | st.text(max_size=6) | DRIVERS,
)
def test_any_question_is_answered_or_refused_in_words(subject: str, name: str, driver: str | None) -> None:
    try:
        found = answer(subject, name, MATRIX, driver=driver)
    except QuestionError:
        return
    assert found.title
    assert found.verdict in ("ok", "problem", "unknown")


# ---------------------------------------------------------------- what to ask for instead


def test_fitting_cudnn() -> None:
    def fitting_cudnn(*args: Any, **options: Any) -> tuple[str, ...]:
        return tuple(pins.fitting_cudnn(*args, **options))

    assert fitting_cudnn(MATRIX, "nvidia-cudnn-cu12")[0] == "9.28.0.42"
    assert fitting_cudnn(MATRIX, "nvidia-cudnn-cu12", capabilities=("7.0", "9.0"))[0] == "9.10.2.21"
    assert fitting_cudnn(MATRIX, "nvidia-cudnn-cu12", specifier="==9.25.0.15") == ()  # yanked
    assert fitting_cudnn(MATRIX, "nvidia-cudnn-cu12", specifier="==9.3.0.75", capabilities=("12.0",)) == ()
    assert fitting_cudnn(MATRIX, "nvidia-cudnn-cu13", capabilities=("7.0",)) == ()
    assert fitting_cudnn(MATRIX, "nvidia-cudnn-cu10") == ()
    torch = fitting_cudnn(MATRIX, "nvidia-cudnn-cu12", capabilities=("7.0",), framework="torch", version="2.10.0")
    assert torch[0] == "9.10.2.21"


def test_pins_are_as_loose_as_they_can_be() -> None:
    assert pin(MATRIX, "nvidia-cudnn-cu12", "9.28.0.42") == ""
    assert pin(MATRIX, "nvidia-cudnn-cu12", "9.10.2.21") == "nvidia-cudnn-cu12<9.11"
    assert pin(MATRIX, "nvidia-cudnn-cu12", "9.10.1.4") == "nvidia-cudnn-cu12==9.10.1.4"
    assert pin(MATRIX, "nvidia-cudnn-cu11", "8.7.0.84") == "nvidia-cudnn-cu11<8.8"


@given(st.sampled_from([(w.distribution, v) for w in MATRIX.cudnn_wheels for v in w.versions]))
def test_a_pin_makes_pip_take_that_release(wheel: tuple[str, str]) -> None:
    distribution, version = wheel
    wheels = MATRIX.wheels(distribution)
    assert wheels is not None
    if version in wheels.yanked or version.endswith(".post1"):
        return
    requirement = pin(MATRIX, distribution, version)
    assert pip_takes(distribution, requirement.removeprefix(distribution)) == version


def test_branches_to_install() -> None:
    assert driver_branch(MATRIX, "12.5") == "580"
    assert driver_branch(MATRIX, "13.2") == "595"
    assert driver_branch(MATRIX, "13.2", ("9.0",)) == "595"
    assert driver_branch(MATRIX, "13.1", ("7.0",)) == ""  # Volta ends with 580
    assert driver_branch(MATRIX, "11.8", ("3.7",)) == ""  # Kepler ends with 470, which has ended
