"""The compiled program of tests/observe."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Path of program.c, compiled."""
    target = tmp_path_factory.mktemp("program") / "program"
    subprocess.run(["cc", "-O1", "-o", target, Path(__file__).with_name("program.c")], check=True)
    return str(target)
