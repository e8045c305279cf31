"""Every source leads a reader somewhere: a URL, a repository, a wheel, a file of this repository, or plain words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "cudnn_doctor"
FILES = [*sorted((FOLDER / "knowledge").glob("*.yaml")), FOLDER.parent / "compat_matrix.yaml"]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_no_source_is_outside_the_repository(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not re.findall(r"source:.*(?:(?<!\.)\.\./|\bfacts/|\bevidence/|/work/).*", text)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_files_that_are_cited_exist(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for line in re.findall(r"source:.*", text):
        for path in re.findall(r"(?<![\w/.-])(?:cudnn_doctor|tests)/[\w/.]+\.\w+", line):
            assert (FOLDER.parent / path).exists(), path


COMMANDS = re.compile(r"^\s+command: (.*)$", re.MULTILINE)
NEVER = (  # what was printed once and does not help: it fails, takes another release, or does nothing for the program
    (r"pip install .*-U tensorflow-gpu", "a stub that fails"),
    (r"--force-reinstall (--no-deps )?(torch|nvidia-cudnn-cu\d+)\b(?![=<>~])", "takes the newest, of another build"),
    (r"set_start_method|labels\.min|retain_primary_context|enabled = ", "does nothing for the user's own process"),
    (r"nvidia-pyindex", "for Python 3.8 only"),
    (r"-pl \d+", "changes the card beside a question"),
    (r"LD_LIBRARY_PATH=\$\((?!.*(\+:\$LD_LIBRARY_PATH|grep -v))", "throws the old value away"),
    (r"LD_LIBRARY_PATH=[^ ${]*:\$LD_LIBRARY_PATH", "an empty entry when it was not set"),
    (r"paddlepaddle-gpu|onnxruntime-gpu(?![=\[])", "PyPI's release is for another CUDA"),
    (r"apt-get install nvidia-driver", "Blackwell needs the package with -open"),
    (r"torch(==\S+)? --index-url", "already satisfied: the build must be in the version"),
)


@pytest.mark.parametrize(("pattern", "why"), NEVER, ids=[why for _, why in NEVER])
def test_no_command_that_does_not_help(pattern: str, why: str) -> None:
    for file in FILES:
        for command in COMMANDS.findall(file.read_text(encoding="utf-8")):
            assert not re.search(pattern, command), (file.name, command, why)
