"""What each cuDNN version opens, against the file lists of NVIDIA's wheels."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.facts import CudnnCopy
from cudnn_doctor.probe.cudnn_parts import Opening, expected_parts, openings
from cudnn_doctor.rules.sample import snapshot

NONE = Absent(reason="not-found")
NINE = ("_graph", "_ops", "_cnn", "_adv", "_heuristic", "_engines_runtime_compiled", "_engines_precompiled")


def copy(version: str, cuda: int = 12, **changes: Any) -> CudnnCopy:
    major = int(version.partition(".")[0])
    base = {
        "major": major,
        "soname": f"libcudnn.so.{major}",
        "version": known(version, "test"),
        "cuda_flavour": known(cuda, "test") if cuda else NONE,
        "sublibraries": (),
    }
    return msgspec.structs.replace(snapshot().cudnn[0], **{**base, **changes})


@pytest.mark.parametrize(
    ("version", "kind", "parts"),
    [
        ("7.6.5", "full", ()),
        ("8.9.7", "full", ("_ops_infer", "_ops_train", "_cnn_infer", "_cnn_train", "_adv_infer", "_adv_train")),
        ("9.0.0", "full", NINE),
        ("9.20.0", "full", NINE),
        ("9.21.0", "full", (*NINE, "_engines_tensor_ir")),
        ("9.28.0", "full", (*NINE[:4], "_ext", *NINE[4:], "_engines_tensor_ir")),
        ("9.27.0", "jit", ("_graph", "_engines_runtime_compiled")),
    ],
)
def test_the_parts_of_each_version(version: str, kind: str, parts: tuple[str, ...]) -> None:
    """As the lists `file_names` of the compatibility facts have them, read from 404 wheels."""
    assert tuple(o.part for o in openings(copy(version, kind=kind)) if o.part) == parts


def test_a_part_that_is_there_although_not_expected_counts() -> None:
    more = msgspec.structs.replace(snapshot().cudnn[0].sublibraries[0], name="libcudnn_ext.so.9")
    assert "_ext" in expected_parts(copy("9.20.0", sublibraries=(more,)))
    assert "_ext" not in expected_parts(copy("9.20.0"))


def test_names_that_9_and_8_try() -> None:
    nine = {o.part: o for o in openings(copy("9.14.0"))}
    assert nine["_graph"] == Opening(
        asker="",
        part="_graph",
        names=("libcudnn_graph.so.9.14.0", "libcudnn_graph.so.9.14", "libcudnn_graph.so.9", "libcudnn_graph.so"),
    )
    assert nine["_heuristic"].asker == "_graph"
    eight = {o.part: o for o in openings(copy("8.9.7"))}
    assert eight["_ops_infer"] == Opening(asker="", part="_ops_infer", names=("libcudnn_ops_infer.so.8",))
    unknown = {o.part: o for o in openings(msgspec.structs.replace(copy("9.14.0"), version=NONE))}
    assert unknown["_graph"].names == ("libcudnn_graph.so.9",)


@pytest.mark.parametrize(
    ("version", "cuda", "kind", "helpers"),
    [
        (
            "8.9.7",
            12,
            "full",
            {"libcuda.so.1", "libz.so.1", "libcublasLt.so.12", "libcublas.so.12", "libnvrtc.so.12"},
        ),
        (
            "8.5.0",
            11,
            "full",
            {"libcuda.so.1", "libz.so.1", "libcublasLt.so.11", "libcublas.so.11", "libnvrtc.so.11.2"},
        ),
        ("9.19.0", 13, "full", {"libcuda.so.1", "libz.so.1", "libcublasLt.so.13", "libnvrtc.so.13"}),
        ("9.27.0", 12, "jit", {"libcuda.so.1", "libz.so.1", "libnvrtc.so.12"}),
        ("9.19.0", 0, "full", {"libcuda.so.1", "libz.so.1"}),
    ],
)
def test_helper_libraries(version: str, cuda: int, kind: str, helpers: set[str]) -> None:
    assert {o.names[0] for o in openings(copy(version, cuda, kind=kind)) if not o.part} == helpers


def test_windows_copies_open_nothing_that_this_search_could_follow() -> None:
    assert openings(copy("9.10.2", soname="cudnn64_9.dll")) == ()
