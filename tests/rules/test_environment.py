"""CD5xx: variables, limits, containers, failed probes."""

from __future__ import annotations

import pytest

from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.facts import ProbeFailure
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.sample import ABSENT, NO_DEVICE, sample, two_gpus
from tests.rules import judge, only

T = "test"


def with_variables(**variables: str) -> Case:
    return sample({f"host.environment.{name}": value for name, value in variables.items()})


@pytest.mark.parametrize(
    ("value", "severity", "title", "detail"),
    [
        ("", "error", "It is empty: every GPU is hidden", ""),
        ("-1", "error", "'-1' hides every GPU", "CUDA stops at '-1': a negative number ends the list."),
        ("all", "error", "'all' hides every GPU", "CUDA stops at 'all': it is neither a number nor a UUID."),
        ("0,0", "error", "'0,0' names 0 twice: CUDA shows no GPU at all (cuInit 101)", ""),
        ("0,1", "warning", "'0,1' ends at '1': there is 1 GPU", "CUDA shows 1 GPU (0), the rest is ignored."),
        (
            "0;1",
            "warning",
            "Of '0;1' CUDA reads only the number in front",
            "CUDA shows 1 GPU (0). Commas part the entries.",
        ),
    ],
)
def test_cuda_visible_devices(value: str, severity: str, title: str, detail: str) -> None:
    finding = only("CD501", with_variables(CUDA_VISIBLE_DEVICES=value))
    assert (finding.status, finding.severity, finding.title, finding.detail) == ("problem", severity, title, detail)
    assert finding.owner == "environment"


def test_visible_devices_that_are_fine() -> None:
    assert only("CD501", with_variables(CUDA_VISIBLE_DEVICES="GPU-0")).title == "'GPU-0' shows 1 GPU of 1"
    assert only("CD501", sample()).status == "skipped"


def test_visible_devices_on_a_box_without_gpu() -> None:
    case = sample({**NO_DEVICE, "host.environment.CUDA_VISIBLE_DEVICES": ""}, live=())
    assert only("CD501", case).detail == "no NVIDIA GPU on this machine"


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("podman", "podman run --device nvidia.com/gpu=all IMAGE"),
        ("apptainer", "apptainer exec --nv IMAGE COMMAND"),
        ("lxc", "docker run --gpus all IMAGE"),
    ],
)
def test_how_to_start_a_container(kind: str, command: str) -> None:
    case = sample({"host.container": known(kind, T), "driver.device_nodes": known((), T), "gpus": ABSENT})
    finding = only("CD502", case)
    assert (finding.title, finding.fixes[0].command) == ("It was started without a GPU", command)


@pytest.mark.parametrize("value", ["void", "none", "NONE", ""])
def test_nvidia_visible_devices(value: str) -> None:
    changes = {
        "host.container": known("docker", T),
        "driver.device_nodes": known((), T),
        "gpus": ABSENT,
        "host.environment.NVIDIA_VISIBLE_DEVICES": value,
    }
    assert only("CD502", sample(changes)).title == f"NVIDIA_VISIBLE_DEVICES='{value}' leaves it without a GPU"


def test_limits_in_words() -> None:
    limits = {
        "CD504": ("stack", 65536, "Stack limit is only 64 KiB"),
        "CD506": ("cgroup_memory", 512 << 20, "The cgroup allows only 512 MiB of host memory"),
        "CD507": ("open_files", 64, "Only 64 open files are allowed"),
    }
    for code, (field, value, title) in limits.items():
        finding = only(code, sample({f"host.limits.{field}": known(value, T)}))
        assert (finding.status, finding.title, finding.severity) == ("problem", title, "warning")
        assert only(code, sample({f"host.limits.{field}": known(-1, T)})).status == "ok"


def test_locked_memory_matters_to_several_gpus_alone() -> None:
    assert only("CD505", sample({"host.limits.memlock": known(65536, T)})).status == "skipped"
    gpus = two_gpus("NVIDIA H200").snapshot.gpus
    finding = only("CD505", sample({"gpus": gpus, "host.limits.memlock": known(65536, T)}))
    assert (finding.status, finding.severity) == ("problem", "note")
    assert finding.title == "Limit on locked memory is 64 KiB: NCCL over InfiniBand will fail, cuDNN does not mind"


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("TF_CPP_MIN_LOG_LEVEL", "3", "problem"),
        ("TF_CPP_MIN_LOG_LEVEL", "1", "ok"),
        ("PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK", "1", "problem"),
        ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "True", "problem"),
        ("MXNET_CUDNN_LIB_CHECKING", "0", "problem"),
        ("MXNET_CUDNN_LIB_CHECKING", "1", "ok"),
        ("NVIDIA_DISABLE_REQUIRE", "true", "problem"),
    ],
)
def test_variables_that_hide_errors(name: str, value: str, status: str) -> None:
    finding = only("CD509", with_variables(**{name: value}))
    assert (finding.status, finding.severity) == (status, "note")


def test_growth_switched_off_matters_only_on_a_shared_card() -> None:
    alone = {"host.environment.TF_FORCE_GPU_ALLOW_GROWTH": "false"}
    assert only("CD510", sample(alone)).status == "ok"
    shared = only("CD510", sample({**alone, "gpus.0.memory_free": known(60 << 30, T)}))
    assert (shared.severity, shared.status) == ("note", "problem")
    assert shared.title == (
        "'false': TensorFlow reserves the card at once, and GPU 0 (NVIDIA H200) is shared (60.0 GiB free)"
    )


@pytest.mark.parametrize(
    ("value", "title"),
    [
        (".98", "It reserves 98 % of the card: next to nothing is left for cuDNN and cuBLAS"),
        ("80%", "'80%' is not a number"),
        ("0.75", "It leaves 25 % of the card"),
    ],
)
def test_jax_memory_fraction(value: str, title: str) -> None:
    assert only("CD510", with_variables(XLA_PYTHON_CLIENT_MEM_FRACTION=value)).title == title


def test_preloaded_libraries() -> None:
    finding = only("CD508", with_variables(LD_PRELOAD="/a/libjemalloc.so:/opt/libcudnn.so.8 /b/libcublas.so.12"))
    assert finding.title == "It loads /opt/libcudnn.so.8, /b/libcublas.so.12 into every process"


def test_numbers_of_different_gpus() -> None:
    assert only("CD511", two_gpus("NVIDIA T400")).title == (
        "Different GPUs (NVIDIA H200, NVIDIA T400): CUDA numbers the fastest first, nvidia-smi by the bus"
    )


def test_a_failed_probe_leaves_no_verdict_and_no_false_peace() -> None:
    failures = (ProbeFailure(probe="cuDNN copies", error="OSError: broken"), ProbeFailure(probe="loader", error="X"))
    case = sample({"failures": failures, "cudnn": (), "resolutions": ()})
    assert [f.status for f in judge("CD512", case)] == ["crashed", "crashed"]
    assert (only("CD301", case).status, only("CD301", case).detail) == ("unknown", "cuDNN copies: OSError: broken")
    assert "unknown" in {f.status for f in judge("CD302", case)}


def test_mps_that_cannot_be_seen() -> None:
    hidden = Absent(reason="no-permission", detail="its daemon may run outside this PID namespace")
    assert only("CD503", sample({"host.mps": hidden})).status == "unknown"
