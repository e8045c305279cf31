"""Builds the stub libraries once a test run."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

HERE = Path(__file__).parent


@cache
def _folder() -> Path:
    import atexit

    folder = Path(mkdtemp(prefix="cudnn-doctor-stubs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _build(source: str, name: str, soname: str, *flags: str) -> Path:
    target = _folder() / name / soname
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
        assert compiler, "the tests need a C compiler (gcc or cc) for the stub libraries"
        build = ["-shared", "-fPIC", "-O1", "-w", *flags, f"-Wl,-soname,{soname}", "-o", str(target)]
        subprocess.run([compiler, *build, str(HERE / source), "-ldl"], check=True)
    return target


def cudnn(major: int = 9) -> Path:
    """A libcudnn.so.N that answers as the environment tells it to."""
    return _build("stub_cudnn.c", f"cudnn{major}", f"libcudnn.so.{major}", f"-DSTUB_MAJOR={major}")


def cuda(*, old: bool = False) -> Path:
    """A libcuda.so.1 with one device; `old` lacks cuGetProcAddress_v2 and all that is newer."""
    return _build("stub_cuda.c", "cuda-old" if old else "cuda", "libcuda.so.1", *(["-DSTUB_OLD"] if old else []))
