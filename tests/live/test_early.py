"""Children of the live check that start before it is known which cuDNN they are to open."""

from __future__ import annotations

import time

import pytest

from cudnn_doctor.live import process
from cudnn_doctor.live.checks import EarlyChecks, live_check
from cudnn_doctor.model.live import ScenarioResult
from tests.live.test_parent import children_of_this_process
from tests.native import build


@pytest.fixture(autouse=True)
def stub_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build.cuda().parent))
    monkeypatch.setenv("STUB_DEVICES", "2")


def calls(result: ScenarioResult) -> list[str]:
    return [s.call for s in result.steps if s.status is not None and not s.call.startswith("dlopen")]


def test_an_early_child_makes_the_same_calls() -> None:
    early = EarlyChecks([0], 20.0)
    time.sleep(1.5)
    (result,) = live_check([0], [(str(build.cudnn()), ())], 10.0, early)
    (late,) = live_check([0], [(str(build.cudnn()), ())], 10.0)
    assert result.fate.kind == late.fate.kind == "completed"
    assert set(calls(result)) == set(calls(late))
    assert calls(result)[:3] == ["cuInit", "cuDeviceGet", "cuDeviceGetName"]
    assert (result.cudnn, result.cudnn_version) == (late.cudnn, "9.19.0")
    assert next(s.value for s in result.steps if s.call == "waited") > 100
    assert result.ms < 1400  # the wait does not count


def test_the_first_copy_takes_them_the_others_start_their_own() -> None:
    copies = [(str(build.cudnn(9)), ()), (str(build.cudnn(8)), ())]
    results = live_check([0, 1], copies, 20.0, EarlyChecks([0, 1], 20.0))
    assert [(r.device, r.cudnn_version, r.fate.kind) for r in results] == [
        (0, "9.19.0", "completed"),
        (1, "9.19.0", "completed"),
        (0, "8.9.7", "completed"),
        (1, "8.9.7", "completed"),
    ]
    assert [any(s.call == "waited" for s in r.steps) for r in results] == [True, True, False, False]


def test_those_that_nobody_takes_are_ended() -> None:
    process.reap()
    early = EarlyChecks([0, 1], 10.0)
    assert live_check([0, 1], [], 10.0, early) == ()
    assert early.children == {}
    process.reap()
    assert children_of_this_process() == []


@pytest.mark.parametrize(
    ("call", "status", "last"),
    [("cuInit", 803, "cudnnCreate"), ("cuDevicePrimaryCtxRetain", 46, "cuDevicePrimaryCtxRetain")],
)
def test_a_driver_that_refuses(monkeypatch: pytest.MonkeyPatch, call: str, status: int, last: str) -> None:
    monkeypatch.setenv("STUB_STATUS", f"{call}:{status},cudnnCreate:1001")
    (result,) = live_check([0], [(str(build.cudnn()), ())], 10.0, EarlyChecks([0], 10.0))
    assert result.cudnn_version == "9.19.0"
    assert calls(result)[-1] == last
    assert (call, status) in [(s.call, s.status) for s in result.steps]


@pytest.mark.parametrize("what", ["segv", "hang"])
def test_a_driver_that_dies_early(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setenv("STUB_DO", f"cuDevicePrimaryCtxRetain:{what}")
    early = EarlyChecks([0], 2.0)
    time.sleep(0.3)
    (result,) = live_check([0], [(str(build.cudnn()), ())], 2.0, early)
    assert result.fate.kind == {"segv": "signal", "hang": "timeout"}[what]
    assert result.fate.last_step == "cuDevicePrimaryCtxRetain"
    assert result.cudnn == str(build.cudnn())
