"""Trials against the stub libraries: one thing changed in a child, and that a sound machine pays nothing."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cudnn_doctor import trials
from cudnn_doctor.live import choose, open_files
from cudnn_doctor.model.base import Known
from cudnn_doctor.model.live import Trial
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Finding, Report
from cudnn_doctor.probe import environment
from cudnn_doctor.rules import switches
from cudnn_doctor.rules.remedies import unset
from tests._cli import TODAY
from tests.native import build
from tests.probe import site


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """One GPU, the stub driver and the stub cuDNN 9; the rules that have something to say of stubs."""
    monkeypatch.setattr(choose, "devices_to_check", lambda *_, **__: (0,))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{build.cudnn().parent}:{build.cuda().parent}")
    for name in ("LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "STUB_DO", "STUB_STATUS", "CUDA_FORCE_PTX_JIT"):
        monkeypatch.delenv(name, raising=False)
    site.venv(tmp_path / "venv")
    return Options(env=str(tmp_path / "venv"), timeout=20.0, only=("CD513", "CD6"))


def check(options: Options) -> Report:
    return trials.check(options, os.environ, None, TODAY)[1]


def of(report: Report, code: str) -> Finding:
    (found,) = (f for f in report.findings if f.code == code and f.status == "problem")
    return found


def test_a_variable_is_proved_and_becomes_the_cause(box: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stub's own switch stands for a variable of CUDA: the convolution fails as long as it is set."""
    monkeypatch.setattr(environment, "ALLOWED", environment.ALLOWED | {"STUB_STATUS"})
    monkeypatch.setitem(switches.CAN_BREAK, "STUB_STATUS", "the stub refuses")
    monkeypatch.setenv("STUB_STATUS", "cudnnConvolutionForward:5003")
    report = check(box)
    cause, effect = of(report, "CD513"), of(report, "CD606")
    assert (cause.severity, cause.fixes[0].command) == ("error", "unset STUB_STATUS")
    assert cause.fixes[0].proof
    assert cause.fixes[0].proof.text.startswith("proved: with STUB_STATUS unset the same calls work (")
    assert report.findings[int(effect.consequence_of.rpartition("/")[2])] == cause
    assert report.reason.startswith("CD513 STUB_STATUS=cudnnConvolutionForward:5003: the stub refuses")


def test_a_variable_that_is_innocent(box: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_FORCE_PTX_JIT", "1")
    monkeypatch.setenv("STUB_STATUS", "cudnnConvolutionForward:5003")
    report = check(box)
    assert (of(report, "CD513").severity, of(report, "CD606").consequence_of) == ("note", "")
    (trial,) = (t for t in report.trials if t.change == unset("CUDA_FORCE_PTX_JIT"))
    assert trial.works is False
    assert trial.outcome == "cudnnConvolutionForward answers 5003 CUDNN_STATUS_EXECUTION_FAILED_CUDART"


@pytest.mark.parametrize("changes", [{}, {"trials": False}])
def test_nothing_is_tried_without_need(box: Options, monkeypatch: pytest.MonkeyPatch, changes: dict[str, bool]) -> None:
    monkeypatch.setenv("CUDA_FORCE_PTX_JIT", "1")
    if changes:
        monkeypatch.setenv("STUB_STATUS", "cudnnConvolutionForward:5003")

    def refuse(*_: object) -> tuple[Trial, ...]:
        raise AssertionError("tried")

    monkeypatch.setattr(trials, "tried", refuse)
    report = check(msgspec.structs.replace(box, **changes))
    assert report.verdict == ("problem" if changes else "ok")


def test_a_hang_leaves_no_time(box: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_FORCE_PTX_JIT", "1")
    monkeypatch.setenv("STUB_DO", "cudnnConvolutionForward:hang")
    report = check(msgspec.structs.replace(box, timeout=1.0))
    assert of(report, "CD604").title.startswith("cudnnConvolutionForward did not return in")
    assert {(t.works, t.outcome) for t in report.trials} == {(None, "no time was left")}
    assert of(report, "CD513").fixes[0].proof
    assert of(report, "CD513").fixes[0].proof.text == "not tried: no time was left"  # type: ignore[union-attr]  # there


def test_a_folder_on_the_path(box: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A libcuda of the toolkit's stubs comes first; the search is worked out again without its folder."""
    stubs = tmp_path / "lib64/stubs"
    stubs.mkdir(parents=True)
    (stubs / "libcuda.so.1").write_bytes(b"")
    path = os.environ["LD_LIBRARY_PATH"]
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{stubs}:{path}")
    report = check(msgspec.structs.replace(box, only=("CD113", "CD6")))
    (trial,) = (t for t in report.trials if t.change.name == "LD_LIBRARY_PATH" and t.change.value == path)
    assert (trial.works, trial.outcome) == (True, "the same calls work")
    assert any(c.startswith("CD6") for c in trial.cleared)


def test_a_recording_keeps_its_trials(box: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudnn_doctor import recordings
    from cudnn_doctor.model.base import encode
    from cudnn_doctor.rules.judge import judge

    monkeypatch.setenv("CUDA_FORCE_PTX_JIT", "1")
    monkeypatch.setenv("STUB_STATUS", "cudnnConvolutionForward:5003")
    report = check(box)
    (tmp_path / "report.json").write_bytes(encode(report))
    again = judge(recordings.load(str(tmp_path / "report.json")), box, TODAY)
    assert again.trials == report.trials
    assert again.findings == report.findings


# ---------------------------------------------------------------- limits


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); import runpy, sys; " + (
    "sys.argv = ['cudnn-doctor', 'check']; runpy.run_module('cudnn_doctor', run_name='__main__')"
)


@pytest.mark.parametrize(("soft", "hard"), [(24, 24), (24, 256), (20, 20)])
def test_few_open_files_never_give_a_traceback(soft: int, hard: int) -> None:
    code = LIMITED.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 2)
    told = done.stdout + done.stderr
    assert f"Only {soft} open files are allowed" in told or "too many open files for this limit" in told


def test_room_is_made_and_the_given_limit_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    from cudnn_doctor.probe.host import probe_limits

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(open_files, "_given", None)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        open_files.make_room()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == open_files.ROOM
        assert (open_files.given(), open_files.raised(), open_files.enough()) == (200, True, True)
        read = probe_limits().open_files
        assert isinstance(read, Known)
        assert read.value == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
