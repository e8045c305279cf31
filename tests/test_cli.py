"""The command line: its answers, what it says to wrong usage, every command. Most runs are in this process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from cudnn_doctor.model.base import Absent
from cudnn_doctor.render import Format
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.sample import sample
from tests import _cli
from tests._cli import call, complaint, run, save

FORMATS = get_args(Format)


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return save(tmp_path, sample())


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return save(tmp_path, _cli.cases()["mixed"], "mixed.json")


# ---------------------------------------------------------------- answers


@_cli.without_gpu
def test_a_machine_without_a_gpu() -> None:
    done = run("check")
    assert (done.returncode, done.stderr) == (2, "")
    assert "No NVIDIA GPU on this machine" in done.stdout
    assert done.stdout.startswith("NO VERDICT: CD101 No NVIDIA GPU on this machine: ")
    assert "[✓] GPU" not in done.stdout  # nothing was seen: nothing is in order
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("name", "code"), [("healthy", 0), ("mixed", 1), ("no-gpu", 2)])
def test_a_replay_ends_alike_in_every_format(tmp_path: Path, fmt: str, name: str, code: int) -> None:
    done = call("check", "--replay", save(tmp_path, _cli.cases()[name]), "--format", fmt)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.endswith("\n")


def test_a_report_can_be_replayed_too(tmp_path: Path, mixed: Path) -> None:
    written = tmp_path / "report.json"
    assert call("check", "--replay", mixed, "--format", "json", "-o", written).returncode == 1
    again = json.loads(call("check", "--replay", written, "--format", "json").stdout)
    first = json.loads(written.read_text())
    assert again["findings"] == first["findings"]
    assert again["notes"][-1].startswith(f"Replayed from {written}, recorded 2026-11-30T12:00:00Z")


def test_only_and_skip(mixed: Path) -> None:
    def codes(*words: str) -> set[str]:
        document = json.loads(call("check", "--replay", mixed, "--format", "json", *words).stdout)
        return {f["code"] for f in document["findings"]}

    assert codes("--only", "CD306") == {"CD306"}
    assert codes("--only", "cd306", "--only", "gpu") >= {"CD306", "CD201"}
    assert {c[:3] for c in codes("--only", "gpu", "--only", "CD5")} == {"CD2", "CD5"}
    assert codes() - codes("--skip", "cudnn") == {c for c in codes() if c.startswith("CD3")}
    assert call("check", "--replay", mixed, "--skip", "CD306").returncode == 0
    assert call("check", "--replay", mixed, "--only", "CD307").returncode == 0


def test_fail_on_owner_and_exit_style(tmp_path: Path, mixed: Path) -> None:
    warned = save(tmp_path, _cli.cases()["xid"], "xid.json")  # CD210, a warning of the node's owner
    assert call("check", "--replay", warned).returncode == 0
    assert call("check", "--replay", warned, "--fail-on", "warning").returncode == 1
    assert call("check", "--replay", warned, "--fail-on", "warning", "--owner", "environment").returncode == 0
    assert call("check", "--replay", warned, "--exit-style", "nagios").returncode == 1
    assert call("check", "--replay", mixed, "--owner", "node").returncode == 0
    done = call("check", "--replay", mixed, "--exit-style", "nagios")
    assert (done.returncode, done.stdout.count("\n")) == (2, 1)
    assert done.stdout.startswith("CUDNN CRITICAL - CD306 ")


def test_quiet(healthy: Path, mixed: Path) -> None:
    done = call("check", "--quiet", "--replay", healthy)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = call("check", "-q", "--replay", mixed)
    assert (done.returncode, done.stderr) == (1, "")
    assert re.fullmatch(r"error: CD306 .*; fix: .*\n", done.stdout)


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("gpu", "CD101"),
        ("driver", "CD114"),
        ("cudnn", "CD301"),
        ("tensorflow", "CD415"),
        ("torch", "CD415"),
        ("jax", "CD415"),
    ],
)
def test_what_is_required_and_not_there_is_a_problem(tmp_path: Path, what: str, code: str) -> None:
    bare = save(tmp_path, _cli.no_gpu())
    for more in ((), ("--only", "CD5"), ("--skip", code)):  # a requirement is answered whatever else is left out
        done = call("check", "--replay", bare, "--require", what, "--format", "json", *more)
        assert done.returncode == 1
        (found,) = (f for f in json.loads(done.stdout)["findings"] if f["status"] == "problem")
        assert found["code"] == code
        assert found["fixes"]


def test_what_is_required_and_there_is_none(healthy: Path) -> None:
    words = [w for what in ("gpu", "driver", "cudnn", "torch") for w in ("--require", what)]
    assert call("check", "--replay", healthy, *words).returncode == 0


def test_what_is_required_and_cannot_be_told_leaves_no_verdict(tmp_path: Path) -> None:
    case = sample({"packages": Absent(reason="error", detail="probe packages failed"), "frameworks": ()})
    done = call("check", "--replay", save(tmp_path, case), "--require", "jax")
    assert done.returncode == 2
    assert "NO VERDICT: CD415" in done.stdout


def test_the_list_of_rules() -> None:
    done = call("check", "--list")
    assert done.returncode == 0
    listed = re.findall(r"(?m)^  (CD\d{3})  (?:error|warning|note) +(?:node|environment|program) +\S", done.stdout)
    assert listed == [r.code for r in all_rules()]


def test_the_page_of_a_github_job(tmp_path: Path, mixed: Path) -> None:
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    done = call("check", "--replay", mixed, "--format", "github", GITHUB_STEP_SUMMARY=str(page))
    assert done.returncode == 1
    assert done.stdout.startswith("::error title=CD306 ")
    assert page.read_text().startswith("before\n# cudnn-doctor")
    lost = call("check", "--replay", mixed, "--format", "github", GITHUB_STEP_SUMMARY="/nowhere/page")
    assert (lost.returncode, lost.stdout) == (1, done.stdout)
    assert lost.stderr == "cudnn-doctor: no job summary: /nowhere/page: No such file or directory\n"


# ---------------------------------------------------------------- wrong usage


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--only CD999", "'CD999' matches no rule; --only and --skip take a code (CD101), a prefix (CD1) or one of "),
        ("--skip nonsense", "'nonsense' matches no rule"),
        ("--only CD1 --skip driver", "--only and --skip together leave no rule to run."),
        ("--require cuda", "--require cuda: not known; it takes gpu, driver, cudnn, tensorflow, torch, jax."),
        ("--format yaml", "Invalid value for '--format': 'yaml' is not one of 'text', 'json', "),
        ("--owner me", "Invalid value for '--owner': 'me' is not one of 'node', 'environment', 'program'."),
        ("--fail-on fatal", "Invalid value for '--fail-on': 'fatal' is not one of 'note', 'warning', 'error'."),
        ("--device -1", "Invalid value for '--device': -1 is not in the range x>=0."),
        ("--timeout 0", "Invalid value for '--timeout': 0.0 is not in the range x>=0.1."),
        ("--timeout nan", "Invalid value for '--timeout': nan is no number of seconds below 1,000,000."),
        ("--timeout inf", "Invalid value for '--timeout': inf is no number of seconds below 1,000,000."),
        ("--env /nowhere", "--env /nowhere: not there. It takes a virtual environment, a conda prefix or a python "),
        ("--env /etc/passwd", "--env /etc/passwd: a file, but no python executable"),
        ("--replay example:nope", "no example 'nope'; there are "),
        ("--replay /nowhere.json", "cannot read '/nowhere.json': No such file or directory. It takes a file of "),
        ("--replay /etc", "cannot read '/etc': Is a directory. It takes a file of `cudnn-doctor snapshot`."),
        ("--replay /dev/zero", "/dev/zero has more than 64 MiB: no snapshot or report of cudnn-doctor."),
        ("--matrix /nowhere.yaml", "/nowhere.yaml: cannot be read: No such file or directory"),
        ("--no-such-option", "No such option: --no-such-option"),
        ("--replay example:h200-two-copies --env /opt/venv", "--env is for this machine, and --replay judges a "),
        ("--replay example:h200-two-copies --device 0", "--device is for this machine, and --replay judges a "),
        ("--replay example:h200-two-copies --all-cudnn", "--all-cudnn is for this machine, and --replay judges a "),
        (
            "--no-live --device 0",
            "--device is for the live check, and --no-live leaves that out: leave one of them out.",
        ),
        ("--no-live --all-cudnn", "--all-cudnn is for the live check, and --no-live leaves that out"),
        ("--no-live --deep", "--deep, --reproduce and --engines use the GPUs, and --no-live leaves them alone."),
        ("--quiet --verbose", "--quiet and --verbose contradict each other: leave one of them out."),
    ],
)
def test_wrong_usage_is_one_line(words: str, told: str) -> None:
    assert complaint(call("check", *words.split())).startswith(told)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("snapshot --no-live --device 0", "--device is for the live check"),
        ("report --no-live --engines", "--deep, --reproduce and --engines use the GPUs"),
        ("report --replay example:h200-two-copies --env /opt/venv", "--env is for this machine"),
        ("explain 7 --snapshot box.json --here", "--snapshot is of another machine, --here and --env are of this one"),
        ("explain 7 --env /opt/venv", "--env says where to look with --here"),
    ],
)
def test_options_that_contradict_each_other(words: str, told: str) -> None:
    assert complaint(call(*words.split())).startswith(told)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_recording_as_windows_writes_it(tmp_path: Path, healthy: Path, encoding: str) -> None:
    path = tmp_path / "box.json"
    path.write_text(healthy.read_text(), encoding=encoding)
    assert call("check", "--replay", path).stdout.startswith("OK: examined, nothing wrong\n")


def test_a_recording_from_stdin(healthy: Path, mixed: Path) -> None:
    assert run("check", "--replay", "-", input=healthy.read_text()).returncode == 0
    assert run("check", "--replay", "-", input=mixed.read_text()).returncode == 1


def test_an_archive_is_no_recording_yet(tmp_path: Path, healthy: Path) -> None:
    path = tmp_path / "ticket.zip"
    assert call("report", "--replay", healthy, "-o", path).returncode == 0
    told = f"{path} is an archive: unpack report.json (of `report -o FILE.zip`) and give that one."
    assert complaint(call("check", "--replay", path)) == told


def test_an_empty_env_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # "--env $VENV" with VENV unset must not examine what lies here
    assert complaint(call("check", "--env", "")).startswith("--env is empty; it takes a virtual environment")
    assert complaint(call("check", "--replay", "")).startswith("cannot read '': Is a directory.")


NO_SNAPSHOT = "is not a snapshot or report of cudnn-doctor: "


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", NO_SNAPSHOT + "Input data was truncated."),
        (b"hello", NO_SNAPSHOT + "JSON is malformed: invalid character (byte 0)."),
        (b"\x7fELF\x02\x01\xff\xfe" * 999, NO_SNAPSHOT + "JSON is malformed: invalid character (byte 0)."),
        (b"[1]", NO_SNAPSHOT + "Expected `object`, got `array`."),
        (b'{"a": 1}', NO_SNAPSHOT + "Object missing required field `schema`."),
        (b'{"schema": "cudnn-doctor/snapshot/1"}', NO_SNAPSHOT + "Object missing required field `tool`."),
        (b'{"schema": "cudnn-doctor/report/2"}', "has schema 'cudnn-doctor/report/2'; this version reads "),
        (b'{"schema": "cudnn-doctor/manifest/1"}', "has schema 'cudnn-doctor/manifest/1'; this version reads "),
        (b'{"schema": "cudnn-doctor/snapshot/1", "x": ' + b"[" * 200_000, NO_SNAPSHOT + "maximum recursion depth "),
        (b"\0" * 50_000_000, NO_SNAPSHOT + "JSON is malformed: invalid character (byte 0)."),
    ],
    ids=["empty", "text", "binary", "array", "other", "hollow", "later", "manifest", "deep", "50 MB"],
)
def test_a_recording_that_is_none(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "box.json"
    path.write_bytes(content)
    for words in (("check",), ("report",)):
        assert complaint(call(*words, "--replay", path)).startswith(f"{path} {told}")


def test_a_recording_cut_short_anywhere(tmp_path: Path, healthy: Path) -> None:
    whole = healthy.read_bytes()
    path = tmp_path / "cut.json"
    for length in range(1, len(whole) - 2, 997):
        path.write_bytes(whole[:length])
        assert NO_SNAPSHOT in complaint(call("check", "--replay", path))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("tensorflow: [", "not YAML: "),
        ("hello", 'not a compatibility matrix: its first line must be "schema: cudnn-doctor/compat-matrix/1"'),
        ("schema: cudnn-doctor/compat-matrix/1\ntensorflow:\n  rows: 3\n", ""),
    ],
)
def test_a_broken_matrix(tmp_path: Path, healthy: Path, content: str, told: str) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(content)
    assert complaint(call("check", "--replay", healthy, "--matrix", path)).startswith(f"{path}: {told}")
    assert complaint(call("matrix", "tensorflow", "2.15", "--matrix", path)).startswith(f"{path}: {told}")


@pytest.mark.parametrize("style", ["--exit-style nagios", "--exit-style=nagios"])
def test_wrong_usage_is_unknown_to_nagios(style: str) -> None:
    assert "not one of" in complaint(run("check", *style.split(), "--format", "yaml"), 3)


def test_a_device_that_is_not_there() -> None:
    told = "--device 9: a program started here sees 2 device(s), numbered from 0."
    assert complaint(run("check", "--device", "9", gpus=2)) == told


def test_a_long_argument_is_not_quoted_in_full() -> None:
    told = complaint(call("check", "--only", "x" * 100_000))
    assert len(told) < 2100
    assert told.endswith("shows all.")


def test_what_is_quoted_cannot_act() -> None:
    told = complaint(call("check", "--replay", "\x1b[31m\u202e\nnew line"))
    assert told.startswith(r"cannot read '\x1b[31m\u202e\nnew line': No such file")


# ---------------------------------------------------------------- the other commands


def test_matrix_answers() -> None:
    fits = call("matrix", "tensorflow", "2.15")
    assert fits.returncode == 0
    assert '$ python -m pip install "tensorflow[and-cuda]==2.15.1"' in fits.stdout
    bad = call("matrix", "tensorflow", "2.18", "--gpu", "Tesla K80", "--format", "json")
    assert (bad.returncode, json.loads(bad.stdout)["verdict"]) == (1, "problem")
    everything = call("matrix")
    assert everything.returncode == 0
    assert "  matrix driver ...               384 to 620\n" in everything.stdout
    assert "  driver for CUDA 13.x            580.65.06 and newer (Linux)" in everything.stdout
    newer = call("matrix", "tensorflow", "9.99")
    assert newer.returncode == 0
    assert "[?]    TensorFlow 9.99 is newer than the matrix" in newer.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("foo 1", "matrix foo: no such subject. Subjects: tensorflow, torch, jax, cudnn, gpu, driver, cuda, what."),
        ("tensorflow abc", "matrix tensorflow abc: not a version number, such as 12.5 or 535.54.03."),
        ("gpu Nonsense", "matrix gpu Nonsense: no GPU of that name is known."),
        ("torch 2.6 --driver x", "--driver x: not a version number"),
        ("cudnn", "matrix cudnn: name a version. `cudnn-doctor matrix` shows what there is."),
        ("gpus", 'matrix gpu: name a GPU, such as "RTX 5090". `cudnn-doctor matrix` shows what there is.'),
        ("--driver 535.54", "matrix: the machine belongs to a subject, such as tensorflow 2.18."),
    ],
)
def test_matrix_refuses(words: str, told: str) -> None:
    assert complaint(call("matrix", *words.split())).startswith(told)


def test_explain_a_code_a_file_and_stdin(tmp_path: Path) -> None:
    line = "F cuda_dnn.cc:211] Check failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)Failed to set cuDNN stream."
    log = tmp_path / "train.log"
    log.write_text(f"epoch 1\nE cuda_event.cc:29] CUDA_ERROR_ILLEGAL_ADDRESS\n{line}\n")
    assert call("explain", "7").stdout.startswith("cuDNN 5 to 8: 7 CUDNN_STATUS_MAPPING_ERROR\n")
    of_file = json.loads(call("explain", log, "--format", "json").stdout)
    of_stdin = json.loads(run("explain", "-", "--format", "json", input=log.read_text()).stdout)
    assert of_file["verdict"] == "cause-found"
    assert of_file["causes"] == of_stdin["causes"]
    assert of_file["causes"][0]["cause"] == "prior-cuda-fault"
    for told in (call("explain", log).stdout, call("explain", log, "--format", "markdown").stdout):
        assert "An earlier GPU kernel failed" in told


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("/nowhere.log", "/nowhere.log cannot be read: No such file or directory"),
        ("/etc", "/etc is a directory; name the files in it"),
        ("/dev/null", "nothing to explain: /dev/null is empty"),
        ("--snapshot /nowhere 7", "cannot read '/nowhere': No such file or directory."),
    ],
)
def test_explain_refuses(word: str, told: str) -> None:
    assert complaint(call("explain", *word.split())).startswith(told)


@_cli.without_gpu
@pytest.mark.parametrize("command", ["reproduce", "engines"])
def test_live_commands_without_a_gpu(command: str) -> None:
    assert complaint(call(command)).startswith("no NVIDIA GPU that a program started here could use")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "reproduce --scenario moon",
            "there is no state 'moon'; `cudnn-doctor reproduce --list` shows all 34 of them.",
        ),
        ("engines --op moon", "--op moon: not known. Known are conv-forward, conv-backward-data, conv-backward-filter"),
        ("engines --dtype fp15", "--dtype fp15: not known. Known are fp16, bf16, fp32, int8."),
    ],
)
def test_a_wrong_name_is_told_before_the_machine_is_read(words: str, told: str) -> None:
    assert complaint(call(*words.split())).startswith(told)


def test_the_states_can_be_listed_anywhere() -> None:
    done = call("reproduce", "--list")
    assert done.returncode == 0
    assert "other-context" in done.stdout


def test_a_snapshot_is_what_check_replays(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    assert call("snapshot", "--no-live", "-o", path).returncode == 0
    here, there = call("check", "--no-live", "--format", "json"), call("check", "--replay", path, "--format", "json")
    assert here.returncode == there.returncode
    assert [(f["code"], f["status"]) for f in json.loads(here.stdout)["findings"]] == [
        (f["code"], f["status"]) for f in json.loads(there.stdout)["findings"]
    ]


# ---------------------------------------------------------------- completion

AS_INSTALLED = "import sys; sys.argv[0] = 'cudnn-doctor'; from cudnn_doctor.__main__ import main; main()"


def completed(words: str) -> set[str]:
    """What bash would offer after these words."""
    env = _cli.environment(
        _CUDNN_DOCTOR_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split(" ")) - 1)
    )
    done = subprocess.run(
        [sys.executable, "-c", AS_INSTALLED], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert done.stderr == ""
    return set(done.stdout.split())


def test_completion_of_commands_options_and_values() -> None:
    assert completed("cudnn-doctor rep") == {"reproduce", "report"}
    assert completed("cudnn-doctor check --fo") == {"--format", "--force"}
    assert completed("cudnn-doctor check --format ") == set(FORMATS)


def test_the_script_for_the_shell() -> None:
    start = [sys.executable, "-c", AS_INSTALLED, "--show-completion", "bash"]
    done = subprocess.run(
        start, capture_output=True, text=True, env=_cli.environment(SHELL="/bin/bash"), timeout=60, check=True
    )
    assert "complete -o default -F _cudnn_doctor_completion cudnn-doctor" in done.stdout
