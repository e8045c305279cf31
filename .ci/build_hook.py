"""Compiles what `explain`, `matrix` and `run` read when a wheel or an editable install is built."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RECORDER = Path("cudnn_doctor", "recorder", "recorder.so")
SOURCE = Path("cudnn_doctor", "recorder", "source", "recorder.c")
# No libc: see source/system.h. The file then runs with every glibc, and the wheel's tag may say so (manylinux_2_17).
FLAGS = [
    "-std=c11",
    "-O2",
    "-g0",
    "-fPIC",
    "-shared",
    "-ffreestanding",
    "-nostdlib",
    "-fno-builtin",
    "-fno-stack-protector",
]
FLAGS += ["-fvisibility=hidden", "-Wl,-z,now", "-Wl,-z,noexecstack", "-Wl,--no-undefined"]
FLAGS += ["-Wl,-z,norelro", "-Wl,--build-id=none"]  # little to map: every child of the program loads it
MACHINES = {"x86_64": [], "aarch64": ["-mno-outline-atomics"]}  # which would call into libgcc


def recorder_runs_here() -> bool:
    """Linux with glibc on a machine type that the recorder knows; elsewhere the wheel is the same without it."""
    if not sys.platform.startswith("linux") or os.uname().machine not in MACHINES:
        return False
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False


def compilers() -> list[list[str]]:
    """The command lines to try, in order: the system's compiler, then zig, which brings its own headers."""
    machine = os.uname().machine
    found = [[cc, "-Wl,-z,noseparate-code"] for cc in (os.environ.get("CC"), "cc", "gcc") if cc and shutil.which(cc)]
    if importlib.util.find_spec("ziglang"):
        found.append([sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.2.17"])
    return found


def compile_recorder(root: Path, target: Path) -> str:
    """Writes `target`; answers "" or why it could not."""
    why = "no C compiler (cc, gcc) and no package ziglang"
    for compiler in compilers():
        command = [*compiler, *FLAGS, *MACHINES[os.uname().machine], "-o", str(target), str(root / SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        why = f"{' '.join(compiler)}: {done.stderr.strip()[-400:]}"
    return why


class BuildHook(BuildHookInterface[Any]):
    """Writes explain.json, compiled.json and recorder.so, which git ignores and the wheel holds."""

    def dependencies(self) -> list[str]:
        """The compiler in a wheel, where this machine has none that works."""
        if self.target_name != "wheel" or not recorder_runs_here():
            return []
        with TemporaryDirectory() as folder:
            return ["ziglang"] if compile_recorder(Path(self.root), Path(folder, "recorder.so")) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        sys.path.insert(0, self.root)
        from cudnn_doctor.logs.patterns import write
        from cudnn_doctor.matrix import stored
        from cudnn_doctor.matrix.load import matrix_file, read_matrix

        write()
        stored.write(matrix_file(), read_matrix(matrix_file()))
        build_data["artifacts"] += ["/cudnn_doctor/knowledge/explain.json", "/cudnn_doctor/matrix/compiled.json"]
        if self.target_name == "wheel" and recorder_runs_here():
            self.add_recorder(build_data)

    def add_recorder(self, build_data: dict[str, Any]) -> None:
        """A wheel with the recorder is one of this machine type; without it `run` says what it lacks."""
        why = compile_recorder(Path(self.root), Path(self.root, RECORDER))
        if why:
            self.app.display_warning(f"cudnn-doctor is built without the recorder of `run`: {why}")
            return
        build_data["artifacts"].append(f"/{RECORDER.as_posix()}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_17_{os.uname().machine}"
