"""Installing the doctor beside a framework changes none of the framework's packages (design.md section 4).

The environments in tests/pins are what pip resolves for real releases. They are rebuilt from metadata alone, and pip
says what it would install.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PINS = sorted((Path(__file__).parent / "pins").glob("*.txt"))
UNREACHABLE = re.compile(r"No matching distribution found for|Could not find a version|connection", re.IGNORECASE)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def would_install(target: Path) -> dict[str, str]:
    """Name and version of what pip would install for the doctor's dependencies into the environment `target`."""
    python = target / "bin" / "python"
    report = target / "report.json"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--dry-run", "-q"]
    done = subprocess.run(
        [*command, "--report", str(report), "--only-binary=:all:", *requirements()],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())["install"]
    return {normal(i["metadata"]["name"]): i["metadata"]["version"] for i in found}


def requirements() -> list[str]:
    """The doctor's own requirements, read from pyproject.toml so that the doctor need not be built for each one."""
    text = (ROOT / "pyproject.toml").read_text()
    block = text[text.index("dependencies = [") : text.index("[project.optional-dependencies]")]
    return re.findall(r'^  "([^"]+)"', block, re.MULTILINE)


@pytest.mark.parametrize("pins", PINS, ids=lambda p: p.stem)
def test_the_doctor_moves_no_package_of_the_patient(pins: Path, tmp_path: Path) -> None:
    venv.create(tmp_path, with_pip=False)
    site = next((tmp_path / "lib").glob("python3*")) / "site-packages"
    wanted = dict(line.split("==") for line in pins.read_text().splitlines() if "==" in line and line[0] != "#")
    for name, version in wanted.items():
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    new = would_install(tmp_path)
    assert {"msgspec", "nvidia-ml-py", "typer"} <= set(new)
    assert {n: v for n, v in new.items() if n in map(normal, wanted)} == {}
    assert not [n for n in new if n.startswith("nvidia-cudnn")]
