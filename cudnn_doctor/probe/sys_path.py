"""sys.path as the examined Python builds it, from files alone: PYTHONPATH, package folders, what .pth files add.

Source: Lib/site.py of CPython 3.8 to 3.14 (addsitedir, addpackage, removeduppaths). Nothing of the environment is
executed: the lines of a .pth file that are code, sitecustomize and usercustomize are named instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

# Code in .pth files that adds no folder: setuptools, virtualenv, coverage, old namespace packages.
_HARMLESS = re.compile(r"distutils-precedence|_virtualenv|(a1_)?coverage|.*nspkg|zzz_.*|protobuf.*nspkg")


def python_path(folders: Sequence[Path], sites: Sequence[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(existing folders in the order of sys.path, what was not followed, in words).

    Args:
        folders: entries of PYTHONPATH, in which no .pth file counts.
        sites: package folders, whose .pth files count.
    """
    found: dict[str, str] = {}
    left: list[str] = []

    def add(folder: Path) -> bool:
        if not folder.is_dir():
            return False
        real = os.path.realpath(folder)
        new = real not in found
        found.setdefault(real, os.path.abspath(folder))
        return new

    for folder in folders:
        add(folder)
    for site in sites:
        if add(site):
            for line in _pth_lines(site, left):
                add(site / line)
    left += [path for folder in found.values() for path in _customised(folder)]
    return tuple(found.values()), tuple(left)


def _pth_lines(site: Path, left: list[str]) -> list[str]:
    """The folders that the .pth files of a package folder name; their code goes to `left`."""
    result = []
    try:
        names = sorted(n for n in os.listdir(site) if n.endswith(".pth") and not n.startswith("."))
    except OSError:
        return []
    for name in names:
        try:
            text = (site / name).read_text(encoding="utf-8-sig", errors="surrogateescape")
        except OSError as e:
            left.append(f"{site / name}: {e.strerror}")
            continue
        code = False
        for line in filter(str.strip, text.splitlines()):
            if line.startswith(("import ", "import\t")):
                code = True
            elif not line.startswith("#"):
                result.append(line.rstrip())
        if code and not _HARMLESS.fullmatch(name.removesuffix(".pth")):
            what = "an editable install by code" if "__editable__" in name else "lines of code"
            left.append(f"{site / name}: {what}, not executed")
    return result


def _customised(folder: str) -> list[str]:
    names = ("sitecustomize.py", "usercustomize.py")
    paths = (os.path.join(folder, name) for name in names)
    return [f"{path}: not executed" for path in paths if os.path.isfile(path)]
