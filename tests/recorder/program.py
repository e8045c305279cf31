"""Runs program.c, or any command, under the recorder with the stub libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from cudnn_doctor.model.events import AnyEvent, Recording
from cudnn_doctor.recorder import environment, library_path
from cudnn_doctor.recorder.read import read_folder
from tests.native import build

HERE = Path(__file__).parent
WAYS: dict[str, tuple[str, ...]] = {
    "dlsym": (),
    "driver": ("-DBY_DRIVER",),
    "lazy": ("-DLINKED", "-Wl,-z,lazy"),
    "now": ("-DLINKED", "-Wl,-z,now"),
}
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@cache
def program(way: str = "dlsym", *flags: str) -> Path:
    """program.c, built to reach the libraries in one of WAYS."""
    import atexit

    folder = Path(mkdtemp(prefix="cudnn-doctor-recorder-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / "program"
    libraries = [str(build.cudnn()), str(build.cuda())] if "-DLINKED" in WAYS[way] else ["-ldl"]
    command = [
        "cc",
        "-w",
        "-O1",
        "-std=gnu11",
        "-pthread",
        *WAYS[way],
        *flags,
        "-o",
        str(target),
        str(HERE / "program.c"),
    ]
    subprocess.run([*command, "-Wl,--allow-shlib-undefined", *libraries], check=True)
    return target


@cache
def sanitized() -> Path:
    """program.c with the recorder linked in, both built with ASan and UBSan."""
    folder = program().parent
    source = Path(library_path()[0]).parent / "source" / "recorder.c"
    own = ["-Dmemcpy=recorder_memcpy", "-Dmemset=recorder_memset"]  # the sanitizer has its own
    build_recorder = ["cc", "-w", "-O1", "-c", *SANITIZED, *own, "-o", str(folder / "recorder.o"), str(source)]
    subprocess.run(build_recorder, check=True)
    command = ["cc", "-w", "-O1", "-std=gnu11", "-pthread", "-DWITHIN", *SANITIZED, "-o", str(folder / "sanitized")]
    subprocess.run([*command, str(HERE / "program.c"), str(folder / "recorder.o"), "-ldl"], check=True)
    return folder / "sanitized"


def recorder() -> str:
    path, why = library_path()
    assert path, why
    return path


def run(folder: Path, *command: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A command with the recorder and the stubs; `folder` receives the events."""
    libraries = f"{build.cudnn().parent}:{build.cuda().parent}"
    env = {**os.environ, "LD_LIBRARY_PATH": libraries, **environment(recorder(), str(folder), {}), **environ}
    return subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=60, check=False)


def record(folder: Path, what: str, way: str = "dlsym", *, code: int = 0, **environ: str) -> Recording:
    """The one recording of program.c doing `what`, which ends with `code`."""
    done = run(folder, program(way), what, **environ)
    assert done.returncode == code
    assert " errno" not in done.stdout
    assert not done.stderr
    (recording,) = read_folder(folder)
    assert not recording.damage
    return recording


def kinds(recording: Recording) -> list[str]:
    """The events by their tag, without the loading and unloading of libraries."""
    return [tag for tag in (tag_of(e) for e in recording.events) if not tag.startswith("library-")]


def tag_of(event: AnyEvent) -> str:
    return str(event.__struct_config__.tag)
