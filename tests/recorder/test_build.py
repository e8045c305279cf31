"""How the recorder is built: by what compiler there is, and not at all where there is none."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cudnn_doctor import recorder
from cudnn_doctor.recorder import environment, library_path

ROOT = Path(__file__).parents[2]
SOURCE = Path(recorder.__file__).parent / "source"


@pytest.fixture
def hook() -> ModuleType:
    """.ci/build_hook.py as a module."""
    spec = importlib.util.spec_from_file_location("build_hook", ROOT / ".ci" / "build_hook.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_a_compiler_it_says_why(hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    why = hook.compile_recorder(ROOT, tmp_path / "recorder.so")
    assert why == "no C compiler (cc, gcc) and no package ziglang"
    assert not (tmp_path / "recorder.so").exists()


def test_a_compiler_that_fails_is_named(hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'no headers' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setenv("CC", str(broken))
    monkeypatch.setattr(hook, "compilers", lambda: [[str(broken)]])
    assert hook.compile_recorder(ROOT, tmp_path / "recorder.so") == f"{broken}: no headers"


def test_cc_then_zig(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "ziglang")
    monkeypatch.setattr(hook.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.delenv("CC", raising=False)
    machine = os.uname().machine
    assert [c[:3] for c in hook.compilers()] == [
        ["cc", "-Wl,-z,noseparate-code"],
        ["gcc", "-Wl,-z,noseparate-code"],
        [sys.executable, "-m", "ziglang"],
    ]
    assert hook.compilers()[-1][-1] == f"{machine}-linux-gnu.2.17"


def test_no_library_has_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "LIBRARY", str(tmp_path / "recorder.so"))
    path, why = library_path()
    assert (path, why.startswith("cudnn-doctor was built without its recorder")) == ("", True)
    (tmp_path / "recorder.so").write_bytes(b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + b"\xf3\x00")
    path, why = library_path()
    assert (path, why) == ("", f"{tmp_path}/recorder.so was built for an unknown machine, this is {os.uname().machine}")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert library_path() == ("", "the recorder works on Linux, this is darwin")


def test_an_audit_library_of_the_user_stays() -> None:
    assert environment("/a.so", "/events", {}) == {"LD_AUDIT": "/a.so", "CUDNN_DOCTOR_EVENTS": "/events"}
    assert environment("/a.so", "/events", {"LD_AUDIT": "/b.so"})["LD_AUDIT"] == "/a.so:/b.so"


def test_the_compiler_alone_is_enough() -> None:
    """No header of libc or Linux: gcc without libc6-dev builds it."""
    found = {name for f in SOURCE.iterdir() for name in re.findall(r"#include <(.*)>", f.read_text())}
    assert found == {"stddef.h", "stdint.h"}


HEADERS = {"aarch64": "/usr/include/asm-generic/unistd.h", "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"}


@pytest.mark.parametrize("machine", HEADERS)
def test_system_calls_have_the_kernels_numbers(machine: str) -> None:
    if not Path(HEADERS[machine]).exists():
        pytest.skip(f"no {HEADERS[machine]} here")
    text = Path(HEADERS[machine]).read_text()
    text = re.sub(r"__NR3264_(mmap|\w+)", r"__NR_\1", text)
    kernel = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", text))
    abi = (SOURCE / "abi.h").read_text()
    part = abi[abi.index(f"defined(__{machine}__)") :]
    ours = dict(re.findall(r"SYS_(\w+) = (\d+)", part[: part.index("MACHINE")]))
    assert len(ours) == 14
    assert ours == {name: kernel[name] for name in ours}


def test_arguments_are_counted_as_in_nvidias_headers(tmp_path: Path) -> None:
    """A wrapper that passes on too few would cut arguments off. Needs the headers of CUDA and cuDNN, and g++."""
    folders = os.environ.get("CUDNN_DOCTOR_HEADERS", "").split(":")
    if folders == [""]:
        pytest.skip("set CUDNN_DOCTOR_HEADERS to the folders with cuda.h, cudnn.h and cublas_v2.h")
    text = (SOURCE / "functions.h").read_text()
    wide = re.findall(r"\bW\((\d+), (\w+), (-?\d+)", text)
    plain = [("6", name, stream) for name, stream in re.findall(r"\bP\((\w+), (-?\d+)", text)]
    overloaded = {"cublasGemmEx", "cublasGemmStridedBatchedEx", "cublasGemmBatchedEx"}  # in C++; counted by eye
    calls = [
        f'show("{name}", &{name}, {words}, {str(row in wide).lower()}, {stream});'
        for row in [*wide, *plain]
        for words, name, stream in [row]
        if name not in overloaded
    ]
    template = Path(__file__).with_name("arguments.cc").read_text()
    (tmp_path / "arguments.cc").write_text(template.replace("/* calls */", "\n".join(calls)))
    flags = ["-std=c++17", "-fpermissive", "-w", *(f"-I{f}" for f in folders), "-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run(["g++", *flags, "-o", tmp_path / "arguments", tmp_path / "arguments.cc"], check=True)
    done = subprocess.run([tmp_path / "arguments"], capture_output=True, text=True, check=True)
    assert done.stdout == ""
