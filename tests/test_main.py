"""Plain calls: `__main__` and `cli` make the same of them, and they load next to nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from cudnn_doctor.__main__ import plain
from cudnn_doctor.commands.app import app
from cudnn_doctor.logs import patterns as knowledge

PLAIN = [
    ("check",),
    ("check", "--format", "json"),
    ("check", "--format", "markdown"),
    ("explain", "train.log"),
    ("explain", "7"),
    ("explain", "-"),
    ("explain", "a.log", "-", "b.log"),
    ("explain", "--format", "json", "train.log"),
    ("explain", "train.log", "--format", "text"),
]
NOT_PLAIN = [
    (),
    ("check", "more"),
    ("check", "--format"),
    ("check", "--format", "yaml"),
    ("check", "--format", "junit"),
    ("check", "--format=json"),
    ("check", "--format", "json", "--format", "text"),
    ("check", "--quiet"),
    ("check", "-h"),
    ("explain",),
    ("explain", "--here", "train.log"),
    ("explain", "--", "-odd.log"),
    ("report",),
    ("--version",),
]


def typer_reads(*words: str) -> tuple[str, Mapping[str, Any]]:
    """The command and its arguments as typer understands the words."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("cudnn-doctor", list(words))
    name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
    return name, command.make_context(name, rest, parent=context).params


@pytest.mark.parametrize("words", PLAIN)
def test_plain_calls_are_read_as_typer_reads_them(words: tuple[str, ...]) -> None:
    call = plain(words)
    assert call is not None
    command, files, form = call
    name, arguments = typer_reads(*words)
    _, defaults = typer_reads(command, *files)
    assert name == command
    assert arguments == {**defaults, "fmt": form}
    assert list(arguments.get("what", [])) == list(files)


@pytest.mark.parametrize("words", NOT_PLAIN)
def test_every_other_call_is_for_typer(words: tuple[str, ...]) -> None:
    assert plain(words) is None


REPORT = """
import json, runpy, sys
sys.argv = ["cudnn-doctor", *json.loads(sys.argv[1])]
try:
    runpy.run_module("cudnn_doctor", run_name="__main__")
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(*words: str) -> set[str]:
    """Modules that a call has loaded at its end."""
    command = [sys.executable, "-c", REPORT, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_a_plain_check_loads_what_this_machine_needs() -> None:
    names = loaded("check", "--format", "json")
    assert "cudnn_doctor.rules.driver" in names
    assert names & {"typer", "click", "rich", "elftools", "pydantic"} == set()
    if not any(name.startswith("nvidia") for name in os.listdir("/dev")):
        # No child, and no data for a GPU, a framework or a cuDNN that is not here.
        unneeded = {"pynvml", "ctypes.util", "cudnn_doctor.live.parent"}
        if sys.version_info >= (3, 11):  # before, uuid brings subprocess along, and msgspec uuid
            unneeded.add("subprocess")
        assert names & unneeded == set()


@pytest.mark.skipif(
    knowledge.stored() is None,
    reason="explain.json is not of today's YAML, which takes a reader for YAML: pip install -e . makes it anew",
)
def test_a_plain_explain_loads_neither_typer_nor_rich(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("Check failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)Failed to set cuDNN stream.\n")
    names = loaded("explain", str(log))
    assert "cudnn_doctor.render.explain" in names
    assert names & {"typer", "click", "rich", "cudnn_doctor.examine"} == set()
