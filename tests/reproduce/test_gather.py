"""Devices by ordinal, and copies with what the plan needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import CudaLibrary, CudnnCopy, Gpu, GpuProcess, Snapshot
from cudnn_doctor.probe import Libraries
from cudnn_doctor.reproduce.gather import describe, major_of
from cudnn_doctor.reproduce.report import devices_of
from cudnn_doctor.rules.sample import snapshot

SOMEONE = GpuProcess(pid=7, name=known("python", "t"), memory=known(1, "t"), kind="compute")


def gpus(*changes: dict[str, Any]) -> Snapshot:
    sample = snapshot()
    assert isinstance(sample.gpus, Known)
    one: Gpu = sample.gpus.value[0]
    cards = tuple(msgspec.structs.replace(one, index=i, **c) for i, c in enumerate(changes))
    return msgspec.structs.replace(sample, gpus=known(cards, "t"))


def users(found: Snapshot, ordinal: int, **environ: str) -> list[int]:
    (device,) = devices_of(found, [ordinal], environ)
    assert isinstance(device.users, Known)
    return [p.pid for p in device.users.value]


BUSY: dict[str, Any] = {"processes": known((SOMEONE,), "t"), "uuid": known("GPU-busy", "t")}
FREE: dict[str, Any] = {"uuid": known("GPU-free", "t")}


def test_alike_cards_are_numbered_as_nvml_does() -> None:
    found = gpus(FREE, BUSY)
    assert users(found, 0) == []
    assert users(found, 1) == [7]
    assert users(found, 0, CUDA_VISIBLE_DEVICES="1") == [7]
    assert users(found, 0, CUDA_VISIBLE_DEVICES="GPU-f") == []
    assert users(found, 0, CUDA_VISIBLE_DEVICES="gpu-BUSY") == [7]


def test_where_the_card_is_not_sure_everyone_counts() -> None:
    found = gpus({**FREE, "name": known("A", "t")}, {**BUSY, "name": known("B", "t")})
    assert users(found, 0) == [7]
    assert users(found, 0, CUDA_DEVICE_ORDER="PCI_BUS_ID") == []
    assert users(found, 0, CUDA_VISIBLE_DEVICES="MIG-x") == [7]
    assert users(found, 0, CUDA_VISIBLE_DEVICES="GPU-") == [7]  # fits both
    (device,) = devices_of(found, [0], {})
    assert device.name == ""


def test_what_nvml_cannot_say_stays_unknown() -> None:
    unread = Absent(reason="no-permission", detail="hidden")
    (device,) = devices_of(gpus({"processes": unread}), [0], {})
    assert device.users == unread
    nothing = msgspec.structs.replace(snapshot(), gpus=unread)
    (device,) = devices_of(nothing, [0], {})
    assert device.users == device.memory_free == unread


@pytest.mark.parametrize(("name", "major"), [("libcudnn.so.9", 9), ("libcudnn.so.8.9.7", 8), ("libcudnn.so.10", 10)])
def test_the_major_in_a_name(name: str, major: int) -> None:
    assert major_of(f"/x/{name}") == major


def test_the_major_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "libcudnn.so.9.1.0").touch()
    (tmp_path / "libcudnn.so").symlink_to("libcudnn.so.9.1.0")
    assert major_of(str(tmp_path / "libcudnn.so")) == 9
    with pytest.raises(ValueError, match="has no major version"):
        major_of("/x/libcudnn.so")


def libraries(tmp_path: Path, *versions: str) -> Libraries:
    sample = snapshot()
    copies: list[CudnnCopy] = []
    for version in versions:
        folder = tmp_path / version
        folder.mkdir()
        major = int(version.split(".", maxsplit=1)[0])
        path = str(folder / f"libcudnn.so.{major}")
        (folder / {8: "libcudnn_ops_infer.so.8", 9: "libcudnn_graph.so.9"}[major]).touch()
        copies.append(
            msgspec.structs.replace(
                sample.cudnn[0],
                path=path,
                real_path=path,
                directory=str(folder),
                major=major,
                version=known(version, "t"),
            )
        )
    return Libraries(frameworks=(), cudnn=tuple(copies), resolutions=(), cuda=sample.cuda)


def test_another_version_of_the_same_major(tmp_path: Path) -> None:
    found = libraries(tmp_path, "9.19.0", "9.14.0", "8.9.7")
    copy = describe(found.cudnn[0].path, ("/x/libcublas.so.13",), found)
    assert (copy.major, copy.version, copy.preload) == (9, "9.19.0", ("/x/libcublas.so.13",))
    assert copy.other == str(tmp_path / "9.14.0")
    assert describe(found.cudnn[2].path, (), found).other == ""


def test_the_same_version_twice_is_no_other(tmp_path: Path) -> None:
    found = libraries(tmp_path, "9.19.0", "9.14.0")
    twice = tuple(msgspec.structs.replace(c, version=known("9.19.0", "t")) for c in found.cudnn)
    found = msgspec.structs.replace(found, cudnn=twice)
    assert describe(found.cudnn[0].path, (), found).other == ""


def test_a_copy_that_no_probe_found(tmp_path: Path) -> None:
    copy = describe("/elsewhere/libcudnn.so.8", (), libraries(tmp_path, "8.9.7"))
    assert (copy.major, copy.version) == (8, "")
    assert copy.other == str(tmp_path / "8.9.7")


def test_cublas_in_the_loaders_cache_matters_to_8(tmp_path: Path) -> None:
    found = libraries(tmp_path, "9.19.0", "8.9.7")
    cublas = CudaLibrary(
        name="libcublasLt", major=12, path="/l/x", real_path="/l/x", version=known("12", "t"), found_by="ld.so.cache"
    )
    found = msgspec.structs.replace(found, cuda=msgspec.structs.replace(found.cuda, libraries=(cublas,)))
    assert describe(found.cudnn[1].path, (), found).cublas_in_cache == "/l/x"
    assert describe(found.cudnn[0].path, (), found).cublas_in_cache == ""
