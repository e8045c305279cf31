"""`examine.gather` and `live_targets`: live children against the stub libraries of tests/native, probes that fail."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cudnn_doctor import examine
from cudnn_doctor.live import choose
from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination
from cudnn_doctor.probe import kernel_log, packages
from cudnn_doctor.render import FORMATS, render
from cudnn_doctor.rules.judge import judge
from cudnn_doctor.rules.sample import sample
from tests import _cli
from tests._cli import TODAY, judged
from tests.native import build
from tests.probe import site

# ---------------------------------------------------------------- gather


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """A machine with one GPU, the stub driver and the stub cuDNN 9, and an empty environment to examine."""
    monkeypatch.setattr(choose, "devices_to_check", lambda *_, **__: (0,))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{build.cudnn().parent}:{build.cuda().parent}")
    for name in ("LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "STUB_DO", "STUB_STATUS"):
        monkeypatch.delenv(name, raising=False)
    site.venv(tmp_path / "venv")
    return Options(env=str(tmp_path / "venv"), timeout=20.0)


def ours(facts: Examination) -> Any:
    """The stub among the copies of cuDNN that this machine may have."""
    (copy,) = (c for c in facts.snapshot.cudnn if c.real_path == str(build.cudnn().resolve()))
    return copy


def test_a_live_machine(box: Options) -> None:
    facts = examine.gather(box, os.environ)
    assert ours(facts).version == Known(value="9.19.0", source="cudnnGetVersion in a child process")
    assert ours(facts).asked == Known(value="ok", source="child process")
    init = facts.snapshot.driver.init
    assert isinstance(init, Known)
    assert (init.value.code, init.value.name, init.value.library) == (0, "CUDA_SUCCESS", str(build.cuda().resolve()))
    assert facts.snapshot.driver.cuda == Known(value="13.0", source="cuDriverGetVersion")
    (result,) = (r for r in facts.scenarios if r.cudnn == str(build.cudnn().resolve()))
    assert (result.scenario, result.device, result.cudnn_version) == ("live-check", 0, "9.19.0")
    assert (result.fate.kind, result.fate.error) == ("completed", "")
    assert facts.snapshot.failures == ()
    assert facts.snapshot.patient.chosen_by == "--env"


def test_without_live_work_no_device_is_opened(box: Options) -> None:
    facts = examine.gather(msgspec.structs.replace(box, live=False), os.environ)
    assert facts.scenarios == ()
    assert isinstance(ours(facts).version, Absent)  # only the stub itself says it, and nothing of it runs
    assert ours(facts).asked.reason == "not-examined"
    report = judge(facts, msgspec.structs.replace(box, live=False), TODAY)
    assert {f.status for f in report.findings if f.code == "CD601"} == {"skipped"}


@pytest.mark.parametrize(
    ("trouble", "code", "title"),
    [
        ("cudnnCreate:segv", "CD602", "cudnnCreate"),
        ("cudnnCreate:abort", "CD603", "libcublasLt.so.12 is missing"),
        ("cuDevicePrimaryCtxRetain:hang", "CD604", "cuDevicePrimaryCtxRetain did not return in "),
    ],
)
def test_trouble_of_a_library_is_a_finding(
    box: Options, monkeypatch: pytest.MonkeyPatch, trouble: str, code: str, title: str
) -> None:
    monkeypatch.setenv("STUB_DO", trouble)
    options = msgspec.structs.replace(box, timeout=1.5)
    report = judge(examine.gather(options, os.environ), options, TODAY)
    found = [f for f in report.findings if f.code == code and f.status == "problem"]
    assert [title in f.title for f in found] == [True]
    assert [f for f in report.findings if f.status == "crashed"] == []


@pytest.mark.parametrize(
    "hang",
    [
        "cudnnGetVersion:stubborn",
        "cuInit:stubborn",
        "cudnnConvolutionForward:hang",
        "cudnnGetVersion:hang,cuInit:hang,cudnnCreate:hang",
    ],
)
def test_the_timeout_bounds_everything(box: Options, monkeypatch: pytest.MonkeyPatch, hang: str) -> None:
    monkeypatch.setenv("STUB_DO", hang)
    options = msgspec.structs.replace(box, timeout=1.0, all_cudnn=True)
    start = time.monotonic()
    facts = examine.gather(options, os.environ)
    assert time.monotonic() - start < 2.0
    assert "OK" not in judge(facts, options, TODAY).verdict


def test_a_driver_library_that_hangs_in_nvml(box: Options, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = "#include <unistd.h>\nint nvmlInitWithFlags(unsigned f) { for (;;) pause(); }\n"
    library = tmp_path / "libnvidia-ml.so.1"
    flags = ["-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run([os.environ.get("CC") or "cc", *flags], input=source, text=True, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}:{os.environ['LD_LIBRARY_PATH']}")
    options = msgspec.structs.replace(box, timeout=1.5)
    start = time.monotonic()
    facts = examine.gather(options, os.environ)
    assert time.monotonic() - start < 2.5
    assert isinstance(facts.snapshot.driver.nvml, Absent)
    assert facts.snapshot.driver.nvml.reason == "timeout"
    assert facts.snapshot.driver.nvml.detail.endswith("no answer before the deadline in nvmlInit")
    assert ours(facts).version.value == "9.19.0"  # the rest of the machine was examined


def test_a_device_that_is_not_there(box: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> tuple[int, ...]:
        raise ValueError("--device 9: a program started here sees 1 device(s), numbered from 0.")

    monkeypatch.setattr(choose, "devices_to_check", refuse)
    with pytest.raises(UsageError, match="--device 9: a program started here sees 1"):
        examine.gather(msgspec.structs.replace(box, devices=(9,)), os.environ)


# ---------------------------------------------------------------- probes that fail


def broken(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("division by zero")


@pytest.fixture
def failed(box: Options, monkeypatch: pytest.MonkeyPatch) -> Examination:
    """Two probes raise, and so does the live check."""
    from cudnn_doctor.live import checks

    monkeypatch.setattr(kernel_log, "probe_xids", broken)
    monkeypatch.setattr(packages, "probe_packages", broken)
    monkeypatch.setattr(checks, "live_check", broken)
    return examine.gather(box, os.environ)


def test_a_probe_that_raises_is_told_and_the_others_go_on(failed: Examination) -> None:
    told = {f.probe: f.error for f in failed.snapshot.failures}
    assert told == dict.fromkeys(("packages", "kernel log", "live work"), "ZeroDivisionError: division by zero")
    assert failed.snapshot.xids == Absent(
        reason="error", detail="probe kernel log failed: ZeroDivisionError: division by zero"
    )
    assert ours(failed).version.value == "9.19.0"
    assert isinstance(failed.snapshot.host.kernel, Known)


def test_a_failed_probe_is_shown_in_every_form(failed: Examination) -> None:
    report = judged(failed, only=("CD504",))
    assert (report.verdict, report.exit_code) == ("no-verdict", 2)
    for fmt in FORMATS:
        text = render(report, fmt, width=200)
        assert "CD512" in text, fmt
        assert "ZeroDivisionError" in text, fmt


@pytest.mark.parametrize(
    "options", [{}, {"owner": "node"}, {"only": ("CD504",)}, {"skip": ("environment",)}, {"fail_on": "note"}], ids=str
)
def test_a_failed_probe_is_never_a_pass(options: dict[str, Any]) -> None:
    healthy = sample()
    facts = Examination(snapshot=healthy.snapshot, scenarios=healthy.scenarios)
    assert judged(facts, **options).verdict == "ok"
    facts = Examination(
        snapshot=msgspec.structs.replace(healthy.snapshot, failures=(_cli.FAILED,)), scenarios=healthy.scenarios
    )
    report = judged(facts, **options)
    assert report.verdict == "no-verdict"
    assert report.reason == "CD512 kernel log could not be judged: ZeroDivisionError: division by zero"


# ---------------------------------------------------------------- live commands


def variables(**values: str) -> Mapping[str, str]:
    return {"PATH": os.environ.get("PATH", ""), **values}


def test_bench_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.venv(tmp_path / "venv")
    options = Options(env=str(tmp_path / "venv"))
    monkeypatch.setattr(choose, "devices_to_check", lambda *_, **__: ())
    with pytest.raises(UsageError, match="no NVIDIA GPU that a program started here could use; `cudnn-doctor check`"):
        examine.live_targets(options, variables(), None)
    monkeypatch.setattr(choose, "devices_to_check", lambda *_, **__: (0, 1))
    with pytest.raises(UsageError, match="--cudnn /nowhere: no libcudnn"):
        examine.live_targets(options, variables(), "/nowhere")
    found = examine.live_targets(options, variables(), str(build.cudnn().parent))
    assert (found.devices, found.copies) == ((0, 1), ((str(build.cudnn().resolve()), ()),))
