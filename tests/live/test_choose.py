"""Which devices and which copies the live check opens."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cudnn_doctor.live.choose import choose_copies, devices_to_check, visible
from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.facts import CudaLibrary, CudnnCopy, Resolution
from cudnn_doctor.probe import Libraries
from cudnn_doctor.rules.sample import snapshot

WHEEL = "/opt/venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
DEBIAN = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.14.0"
USERS = "/opt/cudnn8/lib/libcudnn.so.8"


def devices(tmp_path: Path, *names: str) -> Path:
    (tmp_path / "dev").mkdir()
    for name in names:
        (tmp_path / "dev" / name).touch()
    return tmp_path


def test_no_device_node_means_no_device(tmp_path: Path) -> None:
    assert devices_to_check({}, root=devices(tmp_path, "null")) == ()


def test_control_nodes_are_no_devices(tmp_path: Path) -> None:
    root = devices(tmp_path, "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps")
    assert devices_to_check({}, root=root) == (0, 1)


def test_wsl_has_one_node_for_all(tmp_path: Path) -> None:
    assert devices_to_check({}, root=devices(tmp_path, "dxg")) == (0,)


def test_a_device_that_is_hidden_is_an_error(tmp_path: Path) -> None:
    root = devices(tmp_path, "nvidia0", "nvidia1")
    assert devices_to_check({}, (1,), root) == (1,)
    with pytest.raises(ValueError, match=r"--device 1: .* sees 1 device.*CUDA_VISIBLE_DEVICES=1"):
        devices_to_check({"CUDA_VISIBLE_DEVICES": "1"}, (1,), root)


@pytest.mark.parametrize(
    ("listed", "count"),
    [
        *[("", 0), ("-1", 0), ("0", 1), ("1,0", 2), ("0,2,1", 1), ("0,0", 0), ("foo,0", 0), ("0;1", 1)],
        *[("GPU-aa", 1), ("GPU-aa,1", 1), ("GPU-bb,GPU-aa", 2), ("GPU-cc", 0), ("MIG-x", 1)],
    ],
)
def test_the_list_is_read_as_cuda_reads_it(listed: str, count: int) -> None:
    assert visible(listed, ["GPU-aa", "GPU-bb"]) == count


def test_uuids_come_from_the_kernel_module_and_are_believed_without_it(tmp_path: Path) -> None:
    root = devices(tmp_path, "nvidia0", "nvidia1")
    assert devices_to_check({"CUDA_VISIBLE_DEVICES": "GPU-cc"}, root=root) == (0,)
    for i, uuid in enumerate(("GPU-aa", "GPU-bb")):
        folder = root / f"proc/driver/nvidia/gpus/0000:0{i}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\n")
    assert devices_to_check({"CUDA_VISIBLE_DEVICES": "GPU-cc"}, root=root) == ()
    assert devices_to_check({"CUDA_VISIBLE_DEVICES": "GPU-bb"}, root=root) == (0,)


def copy(path: str, major: int) -> CudnnCopy:
    return msgspec.structs.replace(
        snapshot().cudnn[0], path=path, real_path=path, major=major, soname=f"libcudnn.so.{major}"
    )


def resolution(consumer: str, path: str, step: str) -> Resolution:
    return Resolution(
        consumer=consumer, wanted="libcudnn.so.9", path=known(path, "t"), real_path=known(path, "t"), step=step,
        shadowed=(), steps=(),
    )  # fmt: skip


def libraries(*resolutions: Resolution) -> Libraries:
    cublas = tuple(
        CudaLibrary(
            name=name, major=major, path=f"/{name}.so.{major}", real_path=f"/{name}.so.{major}", found_by=by,
            version=Absent(reason="not-found"),
        )
        for name, major, by in (
            ("libcublas", 13, "site-packages"), ("libcublasLt", 13, "site-packages"), ("libcublas", 12, "ld.so.cache"),
        )
    )  # fmt: skip
    base = snapshot()
    return Libraries(
        frameworks=base.frameworks,
        cudnn=(copy(WHEEL, 9), copy(DEBIAN, 9), copy(USERS, 8)),
        resolutions=resolutions,
        cuda=msgspec.structs.replace(base.cuda, libraries=cublas),
    )


TORCH = resolution("torch", WHEEL, "DT_RPATH of libtorch_cuda.so")
PLAIN = resolution("plain dlopen", DEBIAN, "ld.so.cache")


def test_a_framework_brings_its_copy_and_cublas_before_it() -> None:
    assert choose_copies(libraries(TORCH, PLAIN), everything=False) == (
        (WHEEL, ("/libcublasLt.so.13", "/libcublas.so.13")),
    )


def test_what_the_user_put_first_is_opened_too_as_the_loader_would() -> None:
    users = resolution("plain dlopen", USERS, "LD_LIBRARY_PATH")
    assert [p for p, _ in choose_copies(libraries(TORCH, PLAIN, users), everything=False)] == [WHEEL, USERS]
    assert choose_copies(libraries(TORCH, users), everything=False)[1] == (USERS, ())


def test_without_a_framework_the_plain_winner_is_opened() -> None:
    assert choose_copies(libraries(PLAIN), everything=False) == ((DEBIAN, ()),)


def test_everything_opens_each_copy_once_with_the_winner_first() -> None:
    assert [p for p, _ in choose_copies(libraries(TORCH, PLAIN), everything=True)] == [WHEEL, DEBIAN, USERS]
