"""What a libcudnn opens itself, by version: sub-libraries and helper libraries, who asks and by which names.

Source: DT_NEEDED and the library names among the strings of the wheels nvidia-cudnn-cu12 8.9.7.29, 9.1.0.70, 9.27.0.42
and nvidia-cudnn-jit-cu12 9.27.0.42, and strace of their loading (cuDNN facts, "Search rules"). Not by disassembly.
"""

from __future__ import annotations

from cudnn_doctor.model.base import Base, Known
from cudnn_doctor.model.facts import CudnnCopy

SHIM = ""  # libcudnn.so.N itself


class Opening(Base, frozen=True, kw_only=True):
    """One library that `asker`, a part such as "_graph", opens: the first of `names` that is found, in that order."""

    asker: str
    names: tuple[str, ...]
    part: str = ""  # of cuDNN; "" for a helper library


_PARTS_8 = ("_ops_infer", "_ops_train", "_cnn_infer", "_cnn_train", "_adv_infer", "_adv_train")
# Part of cuDNN 9, who opens it, the first version that has it. The order is that of opening.
_PARTS_9 = (
    ("_graph", SHIM, (9, 0)),
    ("_ops", SHIM, (9, 0)),
    ("_cnn", SHIM, (9, 0)),
    ("_adv", SHIM, (9, 0)),
    ("_ext", SHIM, (9, 22)),
    ("_heuristic", "_graph", (9, 0)),
    ("_engines_runtime_compiled", "_graph", (9, 0)),
    ("_engines_precompiled", "_graph", (9, 0)),
    ("_engines_tensor_ir", "_graph", (9, 21)),
)
_PARTS_JIT = ("_graph", "_engines_runtime_compiled")


def openings(copy: CudnnCopy) -> tuple[Opening, ...]:
    """What this copy opens. Empty up to cuDNN 7, which is one library that links what it needs, and on Windows."""
    if copy.major < 8 or not copy.soname.startswith("lib"):
        return ()
    return (*_sub_libraries(copy), *_helpers(copy))


def expected_parts(copy: CudnnCopy) -> tuple[str, ...]:
    """Parts that a copy of this version and kind consists of; a part that is there although not expected counts."""
    present = {s.name.partition(".")[0].removeprefix("libcudnn") for s in copy.sublibraries}
    if copy.major == 8:
        return _PARTS_8
    version = tuple(int(n) for n in copy.version.value.split(".")[:2]) if isinstance(copy.version, Known) else (9, 0)
    if copy.kind == "jit":
        return tuple(p for p, _, _ in _PARTS_9 if p in _PARTS_JIT or p in present)
    return tuple(p for p, _, since in _PARTS_9 if version >= since or p in present)


def _sub_libraries(copy: CudnnCopy) -> list[Opening]:
    askers = {part: asker for part, asker, _ in _PARTS_9} if copy.major == 9 else {}
    return [
        Opening(asker=askers.get(part, SHIM), names=_names(f"libcudnn{part}.so", copy), part=part)
        for part in expected_parts(copy)
    ]


def _names(stem: str, copy: CudnnCopy) -> tuple[str, ...]:
    """cuDNN 9 tries the full version first and the bare name last; cuDNN 8 knows the soname only."""
    if copy.major == 8 or not isinstance(copy.version, Known):
        return (f"{stem}.{copy.major}",)
    major, minor, patch = (*copy.version.value.split("."), "0", "0")[:3]
    return (f"{stem}.{major}.{minor}.{patch}", f"{stem}.{major}.{minor}", f"{stem}.{major}", stem)


def _helpers(copy: CudnnCopy) -> list[Opening]:
    driver = ("libcuda.so.1", "libcuda.so")
    cuda = copy.cuda_flavour.value if isinstance(copy.cuda_flavour, Known) else 0
    # libnvrtc's soname had the minor until 11.2, which all later 11.x kept.
    nvrtc = ({10: "libnvrtc.so.10.2", 11: "libnvrtc.so.11.2"}.get(cuda, f"libnvrtc.so.{cuda}"), "libnvrtc.so")
    if copy.major == 8:
        found = [Opening(asker="_ops_infer", names=driver), Opening(asker="_cnn_infer", names=("libz.so.1",))]
        if cuda:
            found += [
                Opening(asker="_ops_infer", names=(f"libcublasLt.so.{cuda}",)),
                Opening(asker="_ops_infer", names=(f"libcublas.so.{cuda}",)),
                Opening(asker="_ops_infer", names=nvrtc),
            ]
        return found
    found = [Opening(asker="_graph", names=driver), Opening(asker="_graph", names=("libz.so.1",))]
    if cuda:
        found.append(Opening(asker="_graph", names=nvrtc))
        if copy.kind == "full":
            found.append(Opening(asker="_engines_precompiled", names=(f"libcublasLt.so.{cuda}",)))
    return found
