"""The Python line of an event, on every interpreter that this machine has."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from cudnn_doctor import recorder
from cudnn_doctor.model import events
from cudnn_doctor.recorder.read import read_folder
from tests.native import build
from tests.recorder.program import program, record, run

LINES = Path(__file__).parent / "lines.py"
LAYOUTS = Path(recorder.__file__).parent / "source" / "python.h"
KNOWN = (10, 11, 12, 13, 14)


@cache
def interpreters() -> dict[str, Path]:
    """By version ("3.12"): this one, those on the path, those of pyenv."""
    places = [Path(sys.executable), *Path.home().glob(".pyenv/versions/3.*/bin/python3"), Path("/usr/bin/python3")]
    places += [Path(path) for n in range(8, 16) if (path := shutil.which(f"python3.{n}"))]
    found: dict[str, Path] = {}
    for place in places:
        if place.exists():
            code = "import sys; print('%d.%d' % sys.version_info[:2])"
            done = subprocess.run([place, "-c", code], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                found.setdefault(done.stdout.strip(), place)
    return found


@pytest.mark.parametrize("version", [f"3.{n}" for n in KNOWN])
def test_the_line_of_every_kind_of_frame(tmp_path: Path, version: str) -> None:
    if version not in interpreters():
        pytest.skip(f"no Python {version} here")
    done = run(tmp_path, interpreters()[version], "-X", "utf8", LINES, build.cuda(), build.cudnn())
    assert (done.returncode, done.stderr) == (0, "")
    expected = ast.literal_eval(done.stdout)
    (recording,) = read_folder(tmp_path)
    ended = [e.origin for e in recording.events if isinstance(e, events.StreamEnded)]
    assert [(o.python[0].function.split(".")[-1], o.python[0].line) for o in ended] == expected
    assert [o.python_unknown for o in ended] == [""] * len(expected)
    assert [o.python[0].file for o in ended] == [str(LINES)] * (len(expected) - 1) + ["<далеко>"]
    assert expected[-1] == ("<module>", 70001)
    qualified = "Größe.methode" if version != "3.10" else "methode"
    assert ended[1].python[0].function == qualified
    callers = [[f.function for f in o.python] for o in ended]
    assert callers[4] == ["plain", "by_callback", "main", "<module>"]
    assert callers[6][0] == "plain"
    assert ended[6].tid != recording.process.pid


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.15"])
def test_another_version_is_said_to_be_unknown(tmp_path: Path, version: str) -> None:
    if version not in interpreters():
        pytest.skip(f"no Python {version} here")
    done = run(tmp_path, interpreters()[version], "-X", "utf8", LINES, build.cuda(), build.cudnn())
    assert (done.returncode, done.stderr) == (0, "")
    (recording,) = read_folder(tmp_path)
    origins = [e.origin for e in recording.events if isinstance(e, events.StreamEnded)]
    assert {(o.python, o.python_unknown) for o in origins} == {((), "version not known")}


def test_a_program_without_python_says_so(tmp_path: Path) -> None:
    recording = record(tmp_path, "reset")
    end = next(e for e in recording.events if isinstance(e, events.ContextEnded))
    assert (end.origin.python, end.origin.python_unknown) == ((), "no python")
    caller = end.origin.native[0]
    assert (caller.module, caller.exact) == (str(program("dlsym")), True)
    text = subprocess.run(["nm", program("dlsym")], capture_output=True, text=True, check=True).stdout
    symbols = sorted(
        (int(line.split()[0], 16), line.split()[2]) for line in text.splitlines() if " t " in line or " T " in line
    )
    assert [name for start, name in symbols if start <= caller.offset][-1] == "reset"


def test_a_thread_that_is_not_pythons_says_so(tmp_path: Path) -> None:
    code = f"""if True:
        import ctypes
        cuda = ctypes.CDLL({str(build.cuda())!r})
        stream = ctypes.c_void_p(); cuda.cuStreamCreate(ctypes.byref(stream), 1)
        libc = ctypes.CDLL(None); thread = ctypes.c_ulong()
        libc.pthread_create(ctypes.byref(thread), None, cuda.cuStreamDestroy_v2, stream)
        libc.pthread_join(thread, None)
    """
    done = run(tmp_path, sys.executable, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    (recording,) = read_folder(tmp_path)
    end = next(e for e in recording.events if isinstance(e, events.StreamEnded))
    assert (end.origin.python, end.origin.python_unknown) == ((), "not a python thread")


@pytest.mark.parametrize("version", [f"3.{n}" for n in KNOWN])
def test_the_offsets_are_those_of_the_headers(tmp_path: Path, version: str) -> None:
    found = interpreters().get(version)
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    include = (
        subprocess.run([found, "-c", code], capture_output=True, text=True, check=True).stdout.strip() if found else ""
    )
    if not Path(include, "internal").is_dir():
        pytest.skip(f"no headers of Python {version} here")
    source = LINES.with_name("offsets.c")
    subprocess.run(["cc", f"-I{include}", f"-I{include}/internal", "-o", tmp_path / "offsets", source], check=True)
    printed = subprocess.run([tmp_path / "offsets"], capture_output=True, text=True, check=True).stdout.strip()
    assert printed in re.findall(r"\{(1\d(?:, \d+)+)\}", LAYOUTS.read_text())
