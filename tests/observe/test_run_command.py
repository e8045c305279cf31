"""`run` with its options: what is kept, what a ticket holds, a program that stands still."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cudnn_doctor.model.run_recording import decode_run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wrapper needs Linux")
DOCTOR = [sys.executable, "-m", "cudnn_doctor"]
HOME = {**os.environ, "HOME": "/home/ada", "USER": "ada"}
FAILS = "import sys; print('/home/ada/data is read'); sys.exit(int({}[1]))"


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DOCTOR, "run", *words], capture_output=True, text=True, check=False,
                          env={**HOME, **environ}, timeout=60)  # fmt: skip


def test_a_recording_is_redacted_and_explains_the_same(tmp_path: Path) -> None:
    saved = tmp_path / "run.jsonl"
    done = run("--recording", str(saved), "--", sys.executable, "-c", FAILS, "--token=hunter2")
    assert (done.returncode, done.stdout) == (1, "/home/ada/data is read\n")
    assert "CAUSE (likely): A Python exception" in done.stderr.replace("\n", " ")
    text = saved.read_text()
    assert saved.stat().st_mode & 0o777 == 0o600
    assert "ada" not in text
    kept = decode_run(saved.read_bytes(), "run.jsonl")
    assert kept.ending.exit_code == 1
    assert kept.settings["PYTHONFAULTHANDLER"] == "1"
    assert [s.descriptors for s in kept.streams] == [(1,), (2,)]
    explained = subprocess.run([*DOCTOR, "explain", "--format", "json", str(saved)], capture_output=True, check=True)
    answer = json.loads(explained.stdout)
    assert (answer["verdict"], answer["causes"][0]["cause"]) == ("cause-found", "python-error")
    assert answer["causes"][0]["evidence"][0]["text"] == "KeyError: 1"


def test_a_ticket_holds_the_run(tmp_path: Path) -> None:
    ticket = tmp_path / "ticket.zip"
    done = run("-o", str(ticket), "--", "sh", "-c", "echo /home/ada/x; exit 4")
    assert done.returncode == 4
    with zipfile.ZipFile(ticket) as archive:
        names = archive.namelist()
        whole = b"".join(archive.read(name) for name in names)
        kept = next(name for name in names if name.endswith("run.jsonl"))
        assert decode_run(archive.read(kept), kept).ending.exit_code == 4
    assert {"report.html", "explanation.json", "MANIFEST.json"} <= set(names)
    assert b"/home/ada" not in whole


def test_a_ticket_of_an_unknown_form_is_refused_before_the_program_starts(tmp_path: Path) -> None:
    done = run("-o", "ticket.tar", "--", "touch", str(tmp_path / "started"))
    assert done.returncode == 2
    assert "ticket.tar" in done.stderr
    assert not (tmp_path / "started").exists()


def test_a_ticket_that_cannot_be_written_leaves_the_exit_status(tmp_path: Path) -> None:
    done = run("-o", str(tmp_path / "missing" / "ticket.zip"), "--", "sh", "-c", "exit 4")
    assert done.returncode == 4
    assert "missing" in done.stderr


def test_a_program_that_stands_still_is_reported_and_goes_on() -> None:
    done = run("--stall", "1", "--", "sh", "-c", "sleep 3; echo on")
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert "nothing has moved for 1 s" in done.stderr.replace("\n", " ")


def test_trace_says_that_it_changes_the_timing() -> None:
    done = run("--trace", "--", "sh", "-c", "echo $CUDNN_LOGLEVEL_DBG $CUDA_LAUNCH_BLOCKING")
    assert done.stdout == "3 1\n"
    assert "timing" in done.stderr


def test_options_of_the_program_are_the_programs() -> None:
    done = run("sh", "-c", "echo $0 $1", "-o", "--trace")
    assert (done.returncode, done.stdout) == (0, "-o --trace\n")


def test_usage() -> None:
    assert run().returncode == 2
    assert run("--stall", "nan", "--", "true").returncode == 2
    assert "CMD" in run("--help").stdout or "COMMAND" in run("--help").stdout
