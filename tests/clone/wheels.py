"""Small wheels and environments, as pip makes and takes them."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

LIBRARY = "nvidia/cudnn/lib/libcudnn.so.9"


def wheel(folder: Path, version: str, *, name: str = "nvidia-cudnn-cu12", requires: Sequence[str] = ()) -> Path:
    """A wheel whose one file, named like a library, holds its version; 2 MiB, so that a copy would link it."""
    folder.mkdir(exist_ok=True)
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    wanted = "".join(f"Requires-Dist: {r}\n" for r in requires)
    files = {
        LIBRARY if name.startswith("nvidia-cudnn") else f"{stem}.py": f"version = '{version}'\n".ljust(
            2 << 20
        ).encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wanted}".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for file, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{file},sha256={digest},{len(data)}")
    path = folder / f"{stem}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for file, data in files.items():
            out.writestr(file, data)
        out.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,", ""]))
    return path


def environment(prefix: Path, *wheels: Path) -> Path:
    """A virtual environment without pip of its own, with these wheels; returns its package folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(prefix / "bin/python"), "install", "-q", "--no-index"]
    subprocess.run([*pip, "--no-deps", *map(str, wheels)], check=True, capture_output=True)
    (site,) = (prefix / "lib").glob("python3.*/site-packages")
    return site


def everything(prefix: Path) -> dict[str, str]:
    """Path below the prefix -> sha256, or where a link leads, of every file but bytecode."""
    found = {}
    for path in sorted(prefix.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(prefix))] = str(path.readlink())
        elif path.is_file() and "__pycache__" not in path.parts:
            found[str(path.relative_to(prefix))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
