"""What the README shows is what the program says: each `$ cudnn-doctor ...` block is run, or rendered from its
recording. A line of three dots stands for lines left out."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cudnn_doctor.commands.run_report import judge
from cudnn_doctor.model.run_recording import decode_run
from cudnn_doctor.render.reproduce import render_reproduction
from cudnn_doctor.render.run_text import verdict_text
from tests.reproduce.test_recordings import replay

ROOT = Path(__file__).parents[1]
WIDTH = 96
LOG = ROOT / "tests/explain/tickets/r01.txt"  # the README calls it train.log
BLOCKS = dict(re.findall(r"```console\n\$ cudnn-doctor (.+)\n((?:.*\n)*?)```", (ROOT / "README.md").read_text()))


def post_mortem(name: str) -> str:
    """What `run` said of a program on the H200."""
    recording = decode_run(gzip.decompress((ROOT / f"tests/recordings/run/{name}.jsonl.gz").read_bytes()), name)
    return verdict_text(recording, judge(recording), width=WIDTH)


def said(words: str) -> str:
    if words.startswith("run -- "):
        return post_mortem(Path(words.rsplit(maxsplit=1)[-1]).stem)
    if words.startswith("reproduce"):
        return render_reproduction(replay("h200-cudnn-8.9.7"), width=WIDTH)
    command = [sys.executable, "-m", "cudnn_doctor", *words.replace("train.log", str(LOG)).split()]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def test_all_blocks_are_known() -> None:
    assert list(BLOCKS) == [
        "check --replay example:h200-missing-sub-library",
        "run -- python programs/torch_foreign_stream.py",
        "explain train.log",
        "reproduce --faults --memory",
    ]


@pytest.mark.parametrize("words", BLOCKS)
def test_the_program_says_what_is_shown(words: str) -> None:
    pieces = re.split(r"^\.\.\.\n", BLOCKS[words], flags=re.MULTILINE)
    text, at = said(words), 0
    assert text.startswith(pieces[0])
    assert text.endswith(pieces[-1])
    for piece in pieces:
        at = text.index(piece, at) + len(piece)
