"""The shared child of the first copy, started before it is known which copy that is."""

from __future__ import annotations

import os
import time

import pytest

from cudnn_doctor.live import process
from cudnn_doctor.model.reproduction import Request
from cudnn_doctor.reproduce.prestart import EarlyStates
from cudnn_doctor.reproduce.run import run_states
from tests.live.test_parent import children_of_this_process
from tests.native import build
from tests.reproduce import model


@pytest.fixture(autouse=True)
def stub_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build.cuda().parent))
    monkeypatch.setenv("STUB_DEVICES", "2")


def test_the_same_answers_as_without_it() -> None:
    request = Request()
    copies, devices = [model.copy(9), model.copy(8)], [model.device(0), model.device(1)]
    early = EarlyStates(request, [0, 1], os.environ)
    time.sleep(0.2)
    with_it = run_states(request, copies, devices, model.NO_MPS, os.environ, None, early)
    assert early.children == {}
    without = run_states(request, copies, devices, model.NO_MPS, os.environ)

    def told(results: object) -> dict[tuple[str, int | None, str], tuple[object, ...]]:
        return {
            (r.scenario, r.device, r.cudnn_version): (
                r.verdict,
                r.fate.kind,
                r.skipped,
                tuple((s.label, s.status) for s in r.steps if s.label and s.call.startswith("cudnnSetStream")),
            )
            for r in results  # type: ignore[attr-defined]
            if r.scenario not in ("threads-share-handle", "threads-own-handles")
        }

    assert told(with_it) == told(without)
    early_one = next(r for r in with_it if any(s.call == "waited" for s in r.steps))
    assert (early_one.device, early_one.cudnn) == (0, copies[0].path)


@pytest.mark.parametrize("request_", [Request(repeat=2), Request(memory=True), Request(states=("stream-destroyed",))])
def test_when_there_is_none(request_: Request) -> None:
    assert EarlyStates(request_, [0], os.environ).children == {}


def test_those_that_nobody_takes_are_ended() -> None:
    process.reap()
    early = EarlyStates(Request(states=("valid-stream",)), [0, 1], os.environ)
    assert len(children_of_this_process()) == 2
    early.abandon()
    assert children_of_this_process() == []


def test_other_states_than_were_started_get_a_child_of_their_own() -> None:
    early = EarlyStates(Request(states=("null-handle", "valid-stream")), [0], os.environ)
    wanted = Request(states=("valid-stream",))
    (result,) = run_states(wanted, [model.copy()], [model.device()], model.NO_MPS, os.environ, None, early)
    assert (result.scenario, result.verdict) == ("valid-stream", "as-expected")
    assert not any(s.call == "waited" for s in result.steps)
