"""sys.path from files: against what a real Python makes of the same files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cudnn_doctor.probe.target_env import NoEnvironmentError, find_target_env
from tests.probe.site import venv


def real_path(prefix: Path, environ: dict[str, str]) -> list[str]:
    """The folders that are there on sys.path of a real Python in that environment, without the standard library's."""
    code = "import sys, json; print(json.dumps(sys.path[1:]))"
    python = str(prefix / "bin/python")
    done = subprocess.run([python, "-c", code], env=environ, capture_output=True, text=True, check=True)
    own = [os.path.realpath(p) for p in json.loads(done.stdout) if p.startswith(str(prefix.parent))]
    return [p for p in dict.fromkeys(own) if os.path.isdir(p)]


def test_pth_files_and_pythonpath_as_python_itself_has_them(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    (site,) = (prefix / "lib").glob("python3.*/site-packages")
    for name in ("a b", "c", "d", "first"):
        (tmp_path / name).mkdir()
    (tmp_path / "c/late.pth").write_text(f"{tmp_path}/never\n")  # of a folder that a .pth file added: not read
    (site / "z.pth").write_text(f"# a remark\n{tmp_path}/a b\n\n{tmp_path}/gone\n")
    (site / "b.pth").write_text(f"../../../../c\nimport os; os.environ['SEEN'] = '1'\n{site}\n")
    environ = {"PYTHONPATH": f"{tmp_path}/first:{tmp_path}/gone", "HOME": str(tmp_path / "home")}
    found = find_target_env(str(prefix), environ)
    assert [os.path.realpath(p) for p in found.site_packages] == real_path(prefix, environ)
    assert [os.path.basename(p) for p in found.site_packages] == ["first", "site-packages", "c", "a b"]
    assert found.not_followed == (f"{site}/b.pth: lines of code, not executed",)
    assert found.installer == ""


def test_what_is_not_followed_is_named(tmp_path: Path) -> None:
    site = venv(tmp_path / "env", config="home = /usr/bin\nversion = 3.12.3\nuv = 0.13.9\n")
    (site / "__editable___mine_finder.pth").write_text("import __editable___mine_finder\n")
    (site / "distutils-precedence.pth").write_text("import os; ...\n")  # setuptools': adds no folder
    (site / "sitecustomize.py").write_text("")
    found = find_target_env(str(tmp_path / "env"), {})
    assert found.not_followed == (
        f"{site}/__editable___mine_finder.pth: an editable install by code, not executed",
        f"{site}/sitecustomize.py: not executed",
    )
    assert found.installer == "uv"
    (site / "pip").mkdir()
    (site / "pip/__main__.py").write_text("")
    assert find_target_env(str(tmp_path / "env"), {}).installer == "pip"


def test_a_shim_of_pyenv_is_refused_in_words(tmp_path: Path) -> None:
    shim = tmp_path / ".pyenv/shims/python3"
    shim.parent.mkdir(parents=True)
    shim.write_text("#!/usr/bin/env bash\nexec pyenv exec python3\n")
    shim.chmod(0o755)
    with pytest.raises(
        NoEnvironmentError, match=r"a script that starts some Python, not a Python itself; `pyenv which"
    ):
        find_target_env(str(shim), {})
