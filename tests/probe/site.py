"""Builders for the library probes' tests: environments, installed wheels, facts to compare."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from cudnn_doctor.model.base import known
from cudnn_doctor.model.facts import TargetEnv


def wheel(
    site: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes] | None = None,
    requires: Sequence[str] = (),
    *,
    write: bool = True,
) -> Path:
    """Installs a distribution as pip does: files, METADATA, RECORD, INSTALLER. `write=False` leaves its files alone,
    as if another distribution had overwritten them. Returns the dist-info folder."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    (info / "METADATA").write_text("\n".join([*lines, "", "A description\nRequires-Dist: not-a-header", ""]))
    (info / "INSTALLER").write_text("pip\n")
    rows = []
    for path, content in (files or {}).items():
        place = site / path
        if write:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}")
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,", ""]))
    return info


def patient(prefix: Path, *sites: Path, python: str = "", version: str = "3.12.3") -> TargetEnv:
    """A patient with these package folders."""
    return TargetEnv(
        prefix=str(prefix),
        python=known(python or f"{prefix}/bin/python", "test"),
        python_version=known(version, "test"),
        kind="venv",
        chosen_by="--env",
        site_packages=tuple(str(s) for s in sites),
    )


def venv(prefix: Path, version: str = "3.12", config: str = "home = /usr/bin\nversion = 3.12.3\n") -> Path:
    """A virtual environment as `python -m venv` makes it; returns its package folder."""
    site = prefix / f"lib/python{version}/site-packages"
    site.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin/python").write_text("#!/bin/false\n")
    (prefix / "bin/python").chmod(0o755)
    (prefix / "pyvenv.cfg").write_text(config)
    return site
