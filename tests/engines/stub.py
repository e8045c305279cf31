"""The stub libcuda and libcudnn of tests/native/stub_backend.c: one object under both names."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.native.build import _build


class Stub(NamedTuple):
    cudnn: Path
    cuda: Path


@cache
def stub(major: int = 9) -> Stub:
    """Paths of both names; opened twice it is loaded once."""
    cuda = _build("stub_backend.c", f"backend{major}", "libcuda.so.1", f"-DSTUB_MAJOR={major}", "-lpthread")
    cudnn = cuda.with_name(f"libcudnn.so.{major}")
    if not cudnn.exists():
        cudnn.symlink_to(cuda.name)
    return Stub(cudnn, cuda)
