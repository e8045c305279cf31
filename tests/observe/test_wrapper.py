"""What else must not change under `run`, and what it must leave behind: nothing."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wrapper needs Linux")
RUN = [sys.executable, "-m", "cudnn_doctor", "run", "--"]


def test_arguments_environment_and_folder_are_the_programs(tmp_path: Path) -> None:
    show = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ.get('MINE'))"
    done = subprocess.run([*RUN, sys.executable, "-c", show, "--help", "--", "-o", "a b"], cwd=tmp_path, check=True,
                          env={**os.environ, "MINE": "1"}, capture_output=True, text=True)  # fmt: skip
    assert (done.stdout, done.stderr) == (f"['--help', '--', '-o', 'a b'] {tmp_path} 1\n", "")


def test_inherited_descriptors_stay(program: str) -> None:
    read, write = os.pipe()
    words = f"import os; os.write({write}, b'kept\\n')"
    subprocess.run([*RUN, sys.executable, "-c", words], pass_fds=[write], check=True, stdin=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as file:
        assert file.read() == "kept\n"  # and its end: no relay holds the pipe open


@pytest.mark.parametrize("fd", [0, 1, 2])
def test_a_descriptor_that_the_caller_closed_is_closed(fd: int) -> None:
    other = 2 if fd == 1 else 1
    words = f"[ -e /proc/self/fd/{fd} ] && echo open >&{other} || echo closed >&{other}"
    done = subprocess.run(["sh", "-c", f'exec "$@" {fd}>&-', "sh", *RUN, "sh", "-c", words],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout + done.stderr == "closed\n"


def test_a_script_without_interpreter_line_runs_as_in_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo from sh $1\n")
    script.chmod(0o755)
    done = subprocess.run([*RUN, str(script), "x"], capture_output=True, text=True, check=True)
    assert done.stdout == "from sh x\n"


@pytest.mark.parametrize(("command", "code"), [("./no-such-program", 127), ("/etc/passwd", 126)])
def test_a_program_that_cannot_start(command: str, code: int) -> None:
    done = subprocess.run([*RUN, command], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.startswith(f"cudnn-doctor: {command} could not be started: ")


def test_nested(program: str) -> None:
    done = subprocess.run([*RUN, *RUN, program, "exit"], capture_output=True, check=False)
    assert done.returncode == 3
    assert done.stdout == b"out\nout again\n"
    assert done.stderr.startswith(b"err\n")


def test_a_signal_to_the_wrapper_alone_is_passed_on_once(program: str) -> None:
    process = subprocess.Popen([*RUN, program, "handle", "2"], stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == f"signal {signal.SIGUSR1}\n".encode()
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30)[0] == f"signal {signal.SIGTERM}\n".encode()
    assert process.returncode == 0


def test_a_signal_to_the_group_reaches_the_program_once(program: str) -> None:
    process = subprocess.Popen([*RUN, program, "handle", "2"], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGUSR1)
    assert process.stdout.readline() == f"signal {signal.SIGUSR1}\n".encode()
    assert not select.select([process.stdout], [], [], 0.3)[0]
    os.killpg(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=30)[0] == f"signal {signal.SIGTERM}\n".encode()


def test_the_program_goes_on_when_the_wrapper_is_killed(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    words = "echo ready; read line; echo $line; echo on"
    process = subprocess.Popen([*RUN, "sh", "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdout
    assert process.stdin
    assert process.stdout.readline() == b"ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.kill()
    process.wait(timeout=30)
    process.stdin.write(b"go\n")
    process.stdin.close()
    assert process.stdout.read() == b"go\non\n"
    until = time.monotonic() + 10
    while list(tmp_path.iterdir()):  # the echo takes the folder away
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_reader_that_goes_away_ends_the_program_as_ever(program: str) -> None:
    process = subprocess.Popen([*RUN, program, "flood", "5000000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout
    assert process.stdout.readline().startswith(b"line 0 ")
    process.stdout.close()
    assert process.wait(timeout=30) == -signal.SIGPIPE


def test_a_folder_that_cannot_be_made_changes_nothing(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path / "missing")}
    done = subprocess.run([*RUN, "sh", "-c", "echo out; exit 5"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "out\n")


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("unshare"), reason="a PID namespace needs root")
def test_as_pid_1_it_reaps_what_others_leave(program: str) -> None:
    words = f"{program} orphan 0; sleep 0.2; exit 7"
    command = ["unshare", "--pid", "--fork", "--mount-proc", *RUN, "sh", "-c", words]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 7
    assert done.stdout.splitlines().count(b"done") == 1


def test_nothing_is_left_behind(program: str, tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path), "MARK": str(tmp_path)}
    for words in (["exit"], ["kill"], ["flood", "50"]):
        subprocess.run([*RUN, program, *words], env=env, capture_output=True, check=False)
    assert list(tmp_path.iterdir()) == []
    mark = f"MARK={tmp_path}".encode()
    left = [p for p in Path("/proc").iterdir() if p.name.isdigit() and mark in _environment(p)]
    assert left == []


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def test_a_program_that_takes_our_folder_away_keeps_its_exit_status(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([*RUN, "sh", "-c", 'rm -rf "$TMPDIR"/*; exit 5'], env=env, capture_output=True, check=False)
    assert done.returncode == 5
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_changes_nothing(program: str) -> None:
    """/dev/full is no folder, a file of it no disk: what is written there fails as on a full disk."""
    env = {**os.environ, "TMPDIR": "/dev/full"}
    done = subprocess.run([*RUN, program, "exit"], env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (3, b"out\nout again\n")
