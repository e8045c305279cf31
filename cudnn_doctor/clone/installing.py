"""Installs into the copy with uv or pip: from the cache or from folders alone, unless the network is allowed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.probe.root_files import clean

DEADLINE = 1800.0  # seconds for one installation; a CUDA wheel is 700 MB


class Installer:
    """uv where it is to be had, else the copy's own pip, else the doctor's pip, told of the copy."""

    def __init__(self, env: Path, *, find_links: Sequence[str], download: bool) -> None:
        """
        Raises:
            UsageError: there is no installer that can work without the network.
        """
        self._env, self._find_links, self._download = env, tuple(find_links), download
        self._uv = shutil.which("uv") or ""
        if not self._uv and not download and not find_links:
            raise UsageError(
                "try: pip cannot install from its cache alone. Give --find-links FOLDER with wheels, or --download to "
                "let it use the package index; with uv installed, what uv has cached is enough."
            )

    @property
    def name(self) -> str:
        return "uv" if self._uv else "pip"

    def run(self, words: Sequence[str], environ: Mapping[str, str]) -> str:
        """`install ...` or `uninstall ...`; "" when it worked, else what it said."""
        command = self._command(words)
        plain = {k: v for k, v in environ.items() if not k.startswith("LD_")}  # not what the program is tried with
        try:
            done = subprocess.run(
                command,
                env={**plain, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "VIRTUAL_ENV": str(self._env)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=DEADLINE,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return f"no end within {DEADLINE:g} s"
        except OSError as e:
            return f"{command[0]}: {e.strerror}"
        if done.returncode == 0:
            return ""
        said = [clean(line).strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        telling = [
            line for line in said if line.lower().lstrip(" ×╰─▶").startswith(("error", "because", "no solution"))
        ]
        return " ".join((telling or said)[-3:])[:600] or f"exit code {done.returncode}"

    def _command(self, words: Sequence[str]) -> list[str]:
        action, rest = words[0], list(words[1:])
        python = str(self._env / "bin/python")
        links = [w for folder in self._find_links for w in ("--find-links", folder)] if action == "install" else []
        if self._uv:
            offline = [] if self._download or action != "install" else ["--offline"]
            index = ["--no-index"] if links and not self._download else []
            rest = [w for w in rest if w != "-y"]
            return [self._uv, "pip", action, "-q", "--python", python, *offline, *links, *index, *rest]
        has_pip = any((self._env / "lib").glob("python*/site-packages/pip/__main__.py"))
        start = [python, "-m", "pip"] if has_pip else [sys.executable, "-m", "pip", "--python", python]
        index = [] if self._download or action != "install" else ["--no-index"]
        sure = ["-y"] if action == "uninstall" and "-y" not in rest else []
        return [*start, action, "-q", "--no-input", *sure, *links, *index, *rest]


def wheels_in(folders: Sequence[str], distribution: str) -> list[str]:
    """Versions of a distribution of which these folders hold a wheel, as file names say."""
    from cudnn_doctor.probe.packages import normalised

    found = set()
    for folder in folders:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            parts = name.removesuffix(".whl").split("-")
            if name.endswith(".whl") and len(parts) >= 5 and normalised(parts[0]) == distribution:
                found.add(parts[1])
    return sorted(found, key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    from cudnn_doctor.model.versions import numbers

    return numbers(version)
