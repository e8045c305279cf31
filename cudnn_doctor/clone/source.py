"""What can be cloned: a virtual environment whose files may be linked or copied and still work elsewhere.

Everything else is refused in words. An environment's own paths stand in bin/ (shebangs, activate), in .pth files and in
pyvenv.cfg's `home`, which names the Python that it was made from and stays right.
"""

from __future__ import annotations

import os
from pathlib import Path

from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.facts import TargetEnv


def clonable(patient: TargetEnv) -> Path:
    """The prefix of an environment that can be cloned.

    Raises:
        UsageError: it is no virtual environment, or one that lives on another's files.
    """
    prefix = Path(patient.prefix)
    if patient.kind == "conda":
        raise UsageError(
            f"try: {prefix} is a conda prefix, whose files hold its own path: a copy by links would still use the "
            f"original. `conda create --clone` makes one; point --env at it and change it by hand."
        )
    if patient.kind == "system":
        raise UsageError(
            f"try: {prefix} is an installation of Python and no virtual environment, so that it cannot be copied by "
            "itself. Make one (python3 -m venv), install the program there, and point --env at it."
        )
    return prefix


def refuse_outside(prefix: Path, patient: TargetEnv, names: tuple[str, ...]) -> None:
    """Distributions that are to be changed must lie in the environment itself.

    Raises:
        UsageError: one is an editable install, or comes by a .pth file, PYTHONPATH or the base installation.
    """
    for name in names:
        for folder in patient.site_packages:
            info = _metadata(folder, name)
            if info is None:
                continue
            direct = info / "direct_url.json"
            if direct.is_file() and '"editable": true' in direct.read_text(encoding="utf-8", errors="replace"):
                raise UsageError(f"try: {name} is an editable install ({info}): its files lie in a source tree, which "
                                 "is not copied. Install it without -e to try other versions.")  # fmt: skip
            if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(prefix)):
                raise UsageError(
                    f"try: {name} comes from {folder}, outside of {prefix} (a .pth file, PYTHONPATH or the base "
                    "installation): the copy would still use that one."
                )
            break


def _metadata(folder: str, name: str) -> Path | None:
    from cudnn_doctor.probe.packages import normalised

    try:
        entries = os.listdir(folder)
    except OSError:
        return None
    found = (e for e in entries if e.endswith(".dist-info") and normalised(e.partition("-")[0]) == name)
    return next((Path(folder, e) for e in found), None)
