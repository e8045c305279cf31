"""Finds the Python environment to examine and where it keeps its packages, from files alone.

Its interpreter is never started: it may be broken, and starting it costs more than the whole check. What it would do
beyond files, code in .pth files and the like, is named in `TargetEnv.not_followed`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from cudnn_doctor.model.base import Absent, Fact, Known, known
from cudnn_doctor.model.facts import TargetEnv
from cudnn_doctor.probe.sys_path import python_path

Kind = Literal["venv", "conda", "system"]


class NoEnvironmentError(ValueError):
    """`--env` names nothing that is a Python environment; the text says what is there and what is expected."""


def find_target_env(env: str | None, environ: Mapping[str, str]) -> TargetEnv:
    """The environment that `env` names, else VIRTUAL_ENV, else CONDA_PREFIX, else the interpreter that runs this.

    Args:
        env: a virtual environment, a conda prefix, an installation prefix, or a python executable.

    Raises:
        NoEnvironmentError: `env` names none of these.
    """
    if env is not None:
        prefix, python = _named(Path(os.path.abspath(os.path.expanduser(env))))
        return _patient(prefix, python, "--env", environ)
    stale = ""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        value = environ.get(variable)
        if value and _python_of(Path(value)):
            return _patient(Path(value), None, variable, environ)
        if value:
            stale = f"; {variable} names no environment: {value}"
    return _patient(Path(sys.prefix), Path(sys.executable or ""), f"own interpreter{stale}", environ)


def _named(path: Path) -> tuple[Path, Path | None]:
    expected = "It takes a virtual environment, a conda prefix or a python executable."
    if path.is_dir():
        if _python_of(path) or (path / "pyvenv.cfg").is_file() or (path / "conda-meta").is_dir():
            return path, None
        inside = next((d for d in (".venv", "venv", "env") if (path / d / "pyvenv.cfg").is_file()), "")
        hint = f" Did you mean {path / inside}?" if inside else ""
        raise NoEnvironmentError(
            f"--env {path}: a folder without pyvenv.cfg, conda-meta or bin/python. {expected}{hint}"
        )
    if not path.exists():
        raise NoEnvironmentError(f"--env {path}: not there. {expected}")
    if not path.name.lower().startswith(("python", "pypy")) or not os.access(path, os.X_OK):
        raise NoEnvironmentError(f"--env {path}: a file, but no python executable by its name and mode. {expected}")
    for python in (path, Path(os.path.realpath(path))):  # a venv's bin/python is a link that must not be followed
        prefix = python.parent.parent if python.parent.name.lower() in ("bin", "scripts") else python.parent
        if (prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir() or _libraries(prefix):
            return prefix, python
    if _is_script(path):
        hint = "`pyenv which python` names" if "shims" in path.parts else "its text names"
        raise NoEnvironmentError(
            f"--env {path}: a script that starts some Python, not a Python itself; {hint} the one that it starts. "
            f"{expected}"
        )
    raise NoEnvironmentError(f"--env {path}: no library folder (lib/pythonX.Y) belongs to this executable. {expected}")


def _is_script(path: Path) -> bool:
    """A shim of pyenv or asdf, a wrapper: files alone do not tell which Python it starts."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _patient(prefix: Path, python: Path | None, chosen_by: str, environ: Mapping[str, str]) -> TargetEnv:
    config = _config(prefix)
    kind: Kind = "venv" if config is not None else "conda" if (prefix / "conda-meta").is_dir() else "system"
    python = python or _python_of(prefix)
    folders, left = _sys_path(prefix, config, python, environ)
    return TargetEnv(
        prefix=str(prefix),
        python=known(str(python), "file") if python else Absent(reason="not-found", detail=f"no python in {prefix}"),
        python_version=_version(prefix, config or {}, python),
        kind=kind,
        chosen_by=chosen_by,
        site_packages=folders,
        not_followed=left,
        installer=_installer(folders, config or {}),
    )


def _installer(folders: tuple[str, ...], config: Mapping[str, str]) -> Literal["pip", "uv", ""]:
    """What can install packages there: its own pip, or uv, which made it without one."""
    if any(os.path.isfile(os.path.join(folder, "pip", "__main__.py")) for folder in folders):
        return "pip"
    return "uv" if "uv" in config else ""


def _python_of(prefix: Path) -> Path | None:
    names = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe", "bin/pypy3")
    return next((prefix / name for name in names if (prefix / name).exists()), None)


def _config(prefix: Path) -> dict[str, str] | None:
    """pyvenv.cfg with lower-case keys (PEP 405); None where there is none."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _version(prefix: Path, config: Mapping[str, str], python: Path | None) -> Fact[str]:
    if os.path.realpath(prefix) == os.path.realpath(sys.prefix):
        return known(".".join(map(str, sys.version_info[:3])), "own interpreter")
    written = config.get("version_info") or config.get("version")  # virtualenv and uv, venv
    if written:
        return known(".".join(written.split(".")[:3]), f"{prefix}/pyvenv.cfg")
    for record in sorted((prefix / "conda-meta").glob("python-[0-9]*.json")):
        return known(record.name.split("-")[1], str(record))
    libraries = _libraries(prefix)
    named = os.path.basename(os.path.realpath(python)) if python else ""  # /usr/bin/python3 -> python3.12
    for library in libraries:
        if library.name == named or len(libraries) == 1:
            return known(_number(library), str(library))
    return Absent(reason="not-found", detail=f"no lib/pythonX.Y in {prefix}")


def _libraries(prefix: Path) -> list[Path]:
    """The lib/pythonX.Y folders of a prefix, newest Python last."""
    found = [p for pattern in ("python[23].*", "pypy[23].*") for p in (prefix / "lib").glob(pattern) if p.is_dir()]
    return sorted(found, key=lambda p: [int(n) for n in _number(p).split(".") if n.isdigit()])


def _number(library: Path) -> str:
    """ "3.13" of lib/python3.13, lib/python3.13t (free-threaded) or lib/pypy3.13."""
    return library.name.removeprefix("python").removeprefix("pypy").rstrip("t")


def _sys_path(
    prefix: Path, config: Mapping[str, str] | None, python: Path | None, environ: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Folders in the order of sys.path and what was not followed (site.py; Debian's dist-packages included)."""
    own = _version(prefix, config or {}, python)
    version = ".".join(own.value.split(".")[:2]) if isinstance(own, Known) else ""
    written = environ.get("PYTHONPATH", "")
    listed = [Path(p) for p in written.split(os.pathsep)] if written else []  # an empty entry is the working directory
    user = [] if environ.get("PYTHONNOUSERSITE") else _user_site(version, environ)
    sites = _packages_of(prefix, version)
    if config is None:
        sites = [*user, *sites]
    elif config.get("include-system-site-packages", "").lower() == "true":
        sites += [*user, *_packages_of(_base(config), version)]
    return python_path(listed, sites)


def _packages_of(prefix: Path, version: str) -> list[Path]:
    names = [p.name for p in _libraries(prefix) if not version or _number(p) == version]
    folders = []
    for name in names:
        folders += [prefix / "lib" / name / "site-packages", prefix / "lib64" / name / "site-packages"]
        folders += [prefix / "local/lib" / name / "dist-packages", prefix / "lib" / name / "dist-packages"]
    return [*folders, prefix / "lib/python3/dist-packages", prefix / "Lib/site-packages"]


def _user_site(version: str, environ: Mapping[str, str]) -> list[Path]:
    home = environ.get("PYTHONUSERBASE") or os.path.join(environ.get("HOME", ""), ".local")
    return [Path(home, f"lib/python{version}/site-packages")] if version and os.path.isabs(home) else []


def _base(config: Mapping[str, str]) -> Path:
    """Prefix of the installation that a virtual environment was made from; `home` is the folder of its python."""
    home = Path(config.get("home", ""))
    return home.parent if home.name.lower() == "bin" else home
