"""What is executed, as whom, and from where."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudnn_doctor import examine
from cudnn_doctor.live import account
from cudnn_doctor.live.account import Account
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


@pytest.fixture(autouse=True)
def nobody_else() -> Iterator[None]:
    """Other tests examine what is this process's own."""
    yield
    account.examine_as_owner("/", trust=True)


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


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can go down to another user")
SOMEBODY = 65534  # nobody


def owned(prefix: Path, uid: int) -> None:
    for path in (prefix, *prefix.rglob("*")):
        os.chown(path, uid, uid)
    for folder in (prefix.parent, prefix.parent.parent, prefix.parent.parent.parent):
        folder.chmod(0o755)  # pytest's are root's alone
    prefix.parent.chmod(0o777 | 0o1000)  # where the library writes its mark


def mark_of(prefix: Path, options: Options) -> list[int]:
    """What the constructor said: user, group, number of further groups, no_new_privs."""
    examine.gather(options, {**os.environ, "SECRET_OF_ROOT": "x"})
    return [int(n) for n in (prefix.parent / "loaded").read_text().split()]


@as_root
def test_root_loads_somebodys_library_as_somebody(hostile_env: Path) -> None:
    owned(hostile_env, SOMEBODY)
    uid, gid, groups, no_new_privileges = mark_of(hostile_env, Options(env=str(hostile_env)))
    assert (uid, no_new_privileges) == (SOMEBODY, 1)
    assert gid != 0
    assert groups <= 1


@as_root
def test_trust_env_says_otherwise(hostile_env: Path) -> None:
    owned(hostile_env, SOMEBODY)
    assert mark_of(hostile_env, Options(env=str(hostile_env), trust_env=True))[0] == 0


@as_root
def test_whoever_owns_a_folder_above_could_write_there(hostile_env: Path) -> None:
    owned(hostile_env, 0)
    os.chown(hostile_env.parent, SOMEBODY, SOMEBODY)
    assert mark_of(hostile_env, Options(env=str(hostile_env)))[0] == SOMEBODY


@as_root
def test_roots_own_environment_is_examined_as_root(hostile_env: Path) -> None:
    assert mark_of(hostile_env, Options(env=str(hostile_env)))[0] == 0


@as_root
def test_without_the_right_to_go_down_nothing_is_loaded(hostile_env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = Account(uid=2**32 - 2, gid=2**32 - 2, groups=(2**33,), name="marge", home="/")
    monkeypatch.setattr(account, "owner_of", lambda _: impossible)
    facts = examine.gather(Options(env=str(hostile_env)), os.environ)
    assert not (hostile_env.parent / "loaded").exists()
    (copy,) = (c for c in facts.snapshot.cudnn if c.path.startswith(str(hostile_env)))
    assert value_or(copy.asked, "").startswith("not started: its environment belongs to marge (id 4294967294), and ")


def test_a_childs_variables_are_nobodys() -> None:
    somebody = Account(uid=1, gid=1, groups=(), name="marge", home="/home/marge", variables=("LD_LIBRARY_PATH", "PATH"))
    given = account.environment_for(
        somebody, {"AWS_SECRET": "x", "LD_LIBRARY_PATH": "/x", "HOME": "/root", "PATH": "/bin"}
    )
    assert given == {
        "LD_LIBRARY_PATH": "/x", "PATH": "/bin", "HOME": "/home/marge", "USER": "marge", "LOGNAME": "marge",
    }  # fmt: skip
