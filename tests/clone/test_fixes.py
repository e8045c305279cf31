"""Which fixes are changes of packages and variables; every fix that the rules print is read without a shell."""

from __future__ import annotations

import os

import pytest

from cudnn_doctor.clone.fixes import change_of, names_in
from cudnn_doctor.model.package_trial import PackageChange, Variable
from tests.rules.test_remedies import commands

PYTHON = "/opt/venv/bin/python"


@pytest.mark.parametrize(
    ("command", "packages", "variables"),
    [
        (f"{PYTHON} -m pip install 'nvidia-cudnn-cu12>=9.3,<10'", (("install", "nvidia-cudnn-cu12>=9.3,<10"),), {}),
        (
            f"{PYTHON} -m pip uninstall nvidia-cudnn-cu12 && "
            f"{PYTHON} -m pip install --force-reinstall --no-deps nvidia-cudnn-cu13==9.19.0.56",
            (("uninstall", "nvidia-cudnn-cu12"),
             ("install", "--force-reinstall", "--no-deps", "nvidia-cudnn-cu13==9.19.0.56")),
            {},
        ),
        (f"uv pip install --python {PYTHON} --no-deps a==1", (("install", "--no-deps", "a==1"),), {}),
        (f"python3 -m pip --python {PYTHON} install a", (("install", "a"),), {}),
        ("unset LD_LIBRARY_PATH", (), {"LD_LIBRARY_PATH": None}),
        ("export LD_LIBRARY_PATH=/a:/b", (), {"LD_LIBRARY_PATH": "/a:/b"}),
        (
            f"{PYTHON} -m pip install x && export LD_LIBRARY_PATH=/n${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
            (("install", "x"),),
            {"LD_LIBRARY_PATH": "/n:/old"},
        ),
        ('export LD_LIBRARY_PATH="$PWD/c${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"', (),
         {"LD_LIBRARY_PATH": f"{os.getcwd()}/c:/old"}),
    ],
)  # fmt: skip
def test_read(command: str, packages: tuple[tuple[str, ...], ...], variables: dict[str, str | None]) -> None:
    found = tuple(Variable(name=n, value=v) for n, v in variables.items())
    expected = PackageChange(packages=packages, variables=found, origin="CD1")
    assert change_of(command, "CD1", {"LD_LIBRARY_PATH": "/old"}) == expected


@pytest.mark.parametrize(
    "command",
    [
        "sudo apt-get install --reinstall libcudnn9-cuda-12",
        f"{PYTHON} -m pip install --target cudnn-9.1.0 nvidia-cudnn-cu12==9.1.0.70",
        f"{PYTHON} -m pip install --index-url https://download.pytorch.org/whl/cu128 torch",
        "pip install a; rm -rf /",
        "pip install $(reboot)",
        "cudnn-doctor check",
        "pip install",
        "export A=1 B=2",
        "x='",
    ],
)
def test_anything_else_is_not_tried(command: str) -> None:
    assert change_of(command, "CD1", {}) is None


def test_many_fixes_of_the_rules_can_be_tried() -> None:
    readable = [c for c in commands() if change_of(c, "CD1", {})]
    assert len(readable) > 20
    assert names_in(PackageChange(packages=(("install", "--no-deps", "nvidia_cudnn.cu12>=9", "torch==2.6"),))) == (
        "nvidia-cudnn-cu12",
        "torch",
    )
