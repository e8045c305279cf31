"""What is executed, as whom, and from where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cudnn_doctor import examine
from cudnn_doctor.model.base import Absent, known, value_or
from cudnn_doctor.model.options import Options
from cudnn_doctor.probe.cudnn_copies import exported_version
from tests import _cli
from tests.native import build
from tests.probe import site

# What the tool imports. Python's own start (runpy, the console script's first lines) imports others before it: `re`,
# `contextlib`, `collections`. `python -I -m` is the way where somebody else may write to the working directory.
PLANTED = (
    "json",
    "typer",
    "msgspec",
    "yaml",
    "rich",
    "subprocess",
    "tempfile",
    "socket",
    "logging",
    "packaging",
    "cuda",
)


@pytest.mark.parametrize("how", ["python -m", "console script, empty entry in PYTHONPATH"])
@pytest.mark.parametrize("words", ["--help", "check --no-live --format json"])
def test_nothing_is_imported_from_the_working_directory(tmp_path: Path, how: str, words: str) -> None:
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').write({name!r})\n")
    command = (
        [sys.executable, "-m", "cudnn_doctor"]
        if how == "python -m"
        else [str(Path(sys.executable).with_name("cudnn-doctor"))]
    )
    env = {**os.environ, "PYTHONPATH": "" if how == "python -m" else f"{_cli.ROOT}:"}
    done = subprocess.run(
        [*command, *words.split()], check=False, cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr


@pytest.fixture
def hostile_env(tmp_path: Path) -> Path:
    """An environment whose cuDNN writes a file when it is loaded."""
    prefix = tmp_path / "venv"
    packages = site.venv(prefix)
    folder = packages / "nvidia" / "cudnn" / "lib"
    folder.mkdir(parents=True)
    build.constructor(folder / "libcudnn.so.9", tmp_path / "loaded")
    return prefix


def test_without_live_work_no_library_of_the_environment_is_loaded(hostile_env: Path) -> None:
    options = Options(env=str(hostile_env), live=False)
    facts = examine.gather(options, os.environ)
    assert not (hostile_env.parent / "loaded").exists()
    (copy,) = (c for c in facts.snapshot.cudnn if c.path.startswith(str(hostile_env)))
    assert copy.asked == Absent(
        reason="not-examined", detail="without live work no library of the environment is loaded"
    )
    assert value_or(copy.version, "") == ""
    examine.gather(Options(env=str(hostile_env)), os.environ)
    assert (hostile_env.parent / "loaded").exists()  # the plant is real


@pytest.mark.parametrize(
    ("part", "symbol", "number", "version"),
    [("_graph", "cudnn_graph_version", 0x091B00, "9.27.0"), ("_ops", "cudnn_ops_infer_version", 0x090100, "9.1.0")],
)
def test_a_version_is_read_from_the_file(tmp_path: Path, part: str, symbol: str, number: int, version: str) -> None:
    path = build.exporting(tmp_path / f"libcudnn{part}.so.9", symbol, number)
    assert exported_version(str(path), part) == known(version, f"{symbol} in libcudnn{part}.so.9")
    assert exported_version(str(path), "_adv") is None
    path.write_bytes(path.read_bytes()[:5000])
    assert exported_version(str(path), part) is None
