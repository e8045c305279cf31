"""Files, streams, terminals, encodings and signals: how a command ends in surroundings that are not friendly."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from cudnn_doctor.model.base import Known
from cudnn_doctor.rules.sample import sample
from tests import _cli
from tests._cli import call, complaint, run, save
from tests.native import build


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return save(tmp_path, sample())


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return save(tmp_path, _cli.cases()["mixed"], "mixed.json")


# ---------------------------------------------------------------- files and streams


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path, mixed: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text("precious")
    words = ("check", "--replay", mixed, "--format", "markdown", "-o", path)
    assert complaint(call(*words)) == f"{path} is there already and was kept; --force replaces it."
    assert path.read_text() == "precious"
    done = call(*words, "--force")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"cudnn-doctor: written to {path}\n")
    assert path.read_text().startswith("# cudnn-doctor")


@pytest.mark.parametrize("command", ["check", "report"])
def test_where_nothing_can_be_written(tmp_path: Path, healthy: Path, command: str) -> None:
    for place, told in (
        (tmp_path / "none" / "r.md", f"there is no folder {tmp_path}/none; nothing was written."),
        (Path("/sys/r.md"), "/sys/r.md could not be written: "),  # not even by root
    ):
        assert complaint(call(command, "--replay", healthy, "-o", place)).startswith(told)


def test_a_dash_and_dev_stdout_are_stdout(tmp_path: Path, healthy: Path) -> None:
    plain = call("check", "--replay", healthy).stdout
    assert call("check", "--replay", healthy, "-o", "-").stdout == plain
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as out:
        done = run("check", "--replay", healthy, "-o", "/dev/stdout", stdout=out, stderr=subprocess.PIPE)
    assert done.returncode == 0
    assert log.read_text() == "before\n" + plain
    assert Path("/dev/stdout").is_symlink()


def test_a_full_stdout(mixed: Path) -> None:
    with open("/dev/full", "w") as full:
        done = run("check", "--replay", mixed, "--format", "json", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == "cudnn-doctor: the report could not be written to stdout: No space left on device.\n"


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_a_reader_that_stops_early_takes_no_verdict_away(mixed: Path, fmt: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = run("check", "--replay", mixed, "--format", fmt, stdout=closed, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "")


def shell(redirections: str, *words: str | Path, **options: str) -> subprocess.CompletedProcess[str]:
    start = ["sh", "-c", f'exec "$@" {redirections}', "sh", *_cli.command(*words)]
    return subprocess.run(
        start, capture_output=True, encoding="utf-8", timeout=60, env=_cli.environment(**options), check=False
    )


def test_closed_streams(mixed: Path) -> None:
    done = shell(">&-", "check", "--replay", mixed)
    assert done.returncode == 2
    assert done.stderr == (
        "cudnn-doctor: stdout is closed, the report has nowhere to go; -o FILE writes it to a file.\n"
    )
    assert shell("2>&-", "check", "--replay", "/nowhere").returncode == 2
    assert shell("<&- >&- 2>&-", "check", "--quiet", "--replay", mixed).returncode == 2
    assert shell("<&-", "check", "--replay", mixed).returncode == 1
    assert "standard input is closed" in complaint(shell("<&-", "explain", "-"))


def test_closed_streams_lead_no_library_into_our_pipes(tmp_path: Path) -> None:
    """A descriptor that the caller closed is not taken by the pipe that a child reports on."""
    path = tmp_path / "snapshot.json"
    paths = f"{build.cudnn().parent}:{build.cuda().parent}"
    assert shell("<&- >&- 2>&-", "snapshot", "-o", path, LD_LIBRARY_PATH=paths).returncode == 0
    (copy,) = (
        c for c in json.loads(path.read_text())["snapshot"]["cudnn"] if c["real_path"] == str(build.cudnn().resolve())
    )
    assert copy["version"] == {"kind": "known", "value": "9.19.0", "source": "cudnnGetVersion in a child process"}


# ---------------------------------------------------------------- terminals and encodings


def on_a_terminal(*words: str | Path, **env: str | None) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        _cli.command(*words), stdin=theirs, stdout=theirs, stderr=theirs, env=_cli.environment(**env)
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # EIO: the other side is closed
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    assert process.wait(10) == 1
    return said.decode()


def test_colours_are_for_terminals_that_have_them(mixed: Path) -> None:
    words = ("check", "--replay", mixed)
    coloured = on_a_terminal(*words, TERM="xterm-256color", COLUMNS="100")
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).replace("\r\n", "\n") == call(*words).stdout
    assert "\x1b" not in on_a_terminal(*words, TERM="dumb")
    assert "\x1b" not in on_a_terminal(*words, TERM="xterm", NO_COLOR="1")


@pytest.mark.parametrize("columns", ["1", "40", "80", "200", "9999", "many"])
def test_widths(mixed: Path, columns: str) -> None:
    done = call("check", "--replay", mixed, COLUMNS=columns)
    assert (done.returncode, done.stderr) == (1, "")
    width = {"1": 40, "9999": 200, "many": 100}.get(columns) or int(columns)
    too_long = [line for line in done.stdout.splitlines() if len(line) > width]
    assert [line for line in too_long if not re.search(r"/|cudnn-doctor |pip install ", line)] == []  # never broken
    assert width > 40 or done.stdout.count("\n") > 40


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437:strict", "utf-16"])
def test_text_in_what_the_stream_can_say(mixed: Path, encoding: str) -> None:
    done = run("check", "--replay", mixed, env={"PYTHONIOENCODING": encoding}, encoding=encoding.partition(":")[0])
    assert (done.returncode, done.stderr) == (1, "")
    assert ("[✗] cuDNN" if encoding == "utf-16" else "[FAIL]  cuDNN") in done.stdout


def test_documents_are_utf_8_whatever_the_stream_says(tmp_path: Path) -> None:
    place = "/home/rené/Ünïcode 环境"
    case = sample({"patient.prefix": place, "cudnn.0.sublibraries.2.version": Known(value="9.1.0", source=place)})
    done = run("check", "--replay", save(tmp_path, case), "--format", "json", env={"PYTHONIOENCODING": "latin-1"})
    assert json.loads(done.stdout)["snapshot"]["patient"]["prefix"] == place


def test_the_c_locale(mixed: Path) -> None:
    plain = {"LC_ALL": "C", "LANG": None, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = run("check", "--replay", mixed, env=plain)
    assert (done.returncode, done.stderr, done.stdout.isascii()) == (1, "", True)


# ---------------------------------------------------------------- surroundings


def test_a_folder_that_is_gone_and_no_home(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    start = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    env = _cli.environment(HOME=None, USER=None, LOGNAME=None, TMPDIR="/proc/nowhere", PATH="")
    done = subprocess.run(
        ["/bin/sh", "-c", start.replace("rmdir", "/bin/rmdir"), "sh", *_cli.command("check", "--no-live")],
        capture_output=True, encoding="utf-8", timeout=60, env=env, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == (done.returncode if _cli.HAS_GPU else 2)
    assert "\ncudnn-doctor " in done.stdout


def test_ctrl_c_in_a_hang_ends_at_once_and_leaves_no_child(tmp_path: Path) -> None:
    mark = f"CUDNN_DOCTOR_TEST={os.getpid()}-{tmp_path.name}"
    env = _cli.environment(
        LD_LIBRARY_PATH=str(build.cudnn().parent), STUB_DO="cudnnGetVersion:stubborn", **dict([mark.split("=")])
    )

    def mine() -> list[str]:
        found = []
        for entry in os.scandir("/proc"):
            with suppress(OSError):
                if entry.name.isdigit() and mark.encode() in Path(entry.path, "environ").read_bytes():
                    found.append(entry.name)
        return found

    process = subprocess.Popen(
        _cli.command("check", "--timeout", "30"), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    end = time.monotonic() + 20
    while len(mine()) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)  # the child is in the call by now
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=10)
    assert time.monotonic() - start < 3
    assert (process.returncode, said, complained) == (2, b"", b"cudnn-doctor: interrupted\n")
    end = time.monotonic() + 3
    while mine() and time.monotonic() < end:
        time.sleep(0.02)
    assert mine() == []
