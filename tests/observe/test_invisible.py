"""`run -- COMMAND` beside COMMAND alone: for its caller, its terminal and itself they are the same."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from tests.observe.places import Job, Outcome, Place, outcome

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wrapper needs Linux")
RUN = [sys.executable, "-m", "cudnn_doctor", "run", "--"]
OURS = b"cudnn-doctor: "  # begins what the wrapper itself says, after the program's last line


def nothing(job: Job) -> None:
    pass


def interrupt(job: Job) -> None:
    job.until(b"ready")
    job.press(b"\x03", signal.SIGINT)


def suspend(job: Job) -> None:
    job.until(b"ready")
    job.press(b"\x1a", signal.SIGTSTP)
    job.stopped()
    job.go_on()
    time.sleep(0.1)
    job.press(b"\x03", signal.SIGINT)


def resize(job: Job) -> None:
    job.until(b"ready")
    job.resize(31, 97)
    job.until(b"size 31x97" if job.terminal >= 0 else b"signal 28")
    job.press(b"\x03", signal.SIGINT)


def type_words(job: Job) -> None:
    job.type(b"some words\n")


CELLS: dict[str, tuple[list[str], Callable[[Job], None]]] = {
    "exit 3": (["exit"], nothing),
    "SIGSEGV": (["segv"], nothing),
    "SIGKILL": (["kill"], nothing),
    "Ctrl-C": (["pause"], interrupt),
    "Ctrl-C handled": (["handle", "1"], interrupt),
    "Ctrl-Z and fg": (["pause"], suspend),
    "resize": (["handle", "9"], resize),
    "stdin": (["copy"], type_words),
    "orphan": (["orphan", "2"], nothing),
    "flood": (["flood", "20000"], nothing),
    "kinds": (["kinds"], nothing),
}


def without_ours(seen: Outcome) -> Outcome:
    return seen._replace(output=seen.output.partition(OURS)[0])


@pytest.mark.parametrize("place", get_args(Place))
@pytest.mark.parametrize("name", CELLS)
def test_equal_to_the_bare_program(name: str, place: Place, program: str, tmp_path: Path) -> None:
    words, act = CELLS[name]
    bare = outcome([program, *words], place, tmp_path, act)
    wrapped = outcome([*RUN, program, *words], place, tmp_path, act)
    if name == "resize" and place == "pty":  # the size may be told twice: the second time it is the right one
        *_, last = re.findall(rb"size \S+\r\n", wrapped.output)
        once = re.sub(rb"(size \S+\r\n)+", last, wrapped.output)
        wrapped = wrapped._replace(output=once)
    assert without_ours(wrapped) == bare


def test_a_mode_that_the_program_sets_is_set_on_the_terminal(tmp_path: Path) -> None:
    """As curses does, on standard output; the terminal is left as the bare program would leave it."""
    modes = []
    command = ["sh", "-c", "stty -echo -icanon <&1; echo set; sleep 0.2; stty -a <&2 | grep -c -e '-icanon'"]
    for words in (command, [*RUN, *command]):
        job = Job(words, "pty", tmp_path)
        job.until(b"set")
        job.until(b"1\r\n")
        modes.append(termios.tcgetattr(job.terminal)[3])
        assert job.end().statuses == (0,)
    assert modes[0] == modes[1]
    assert not modes[0] & (termios.ECHO | termios.ICANON)


def test_a_signal_that_the_caller_ignores_stays_ignored(program: str) -> None:
    """`nohup`: a hang-up of the group leaves the program alone."""
    command = ["nohup", *RUN, program, "pause"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.4)
        os.killpg(process.pid, signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM
