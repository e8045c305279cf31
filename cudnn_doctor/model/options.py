"""What the user asked an examination for."""

from __future__ import annotations

from pathlib import Path

from cudnn_doctor.model.base import Base
from cudnn_doctor.model.report import Owner, Severity
from cudnn_doctor.model.verdict import ExitStyle


class Options(Base, frozen=True, kw_only=True):
    """What the user asked for."""

    env: str | None = None
    live: bool = True
    trials: bool = True  # after a problem: the live check again with one thing changed
    trust_env: bool = False  # as root: run the code of somebody else's environment as root
    all_cudnn: bool = False
    framework: bool = False  # a convolution by each installed framework: runs the environment's code
    devices: tuple[int, ...] = ()  # CUDA ordinals; empty for all
    timeout: float = 20.0  # seconds for all live work
    matrix: Path | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    fail_on: Severity = "error"
    owner: Owner | None = None
    exit_style: ExitStyle = "plain"
