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


def constructor(target: Path, mark: Path) -> None:
    """A library at `target` that, when it is loaded, writes to `mark` who it is and whether it may gain rights."""
    flags = [f"-DMARK={str(mark)!r}".replace("'", '"'), f"-Wl,-soname,{target.name}"]
    made = _build("constructor.c", f"constructor-{target.parent.parent.name}-{abs(hash(mark))}", target.name, *flags)
    shutil.copy(made, target)


def exporting(target: Path, symbol: str, number: int) -> Path:
    """A library at `target` that exports one variable of four bytes."""
    source = target.with_suffix(".c")
    source.write_text(f"const int {symbol} = {number};\n")
    shutil.copy(_build(str(source), f"exporting-{symbol}-{number}", target.name), target)
    return target
