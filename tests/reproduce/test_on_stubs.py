"""Every state through the real child on the stub driver: the way from a plan to the paragraph, without a GPU."""

from __future__ import annotations

import time

import pytest

from cudnn_doctor.model.base import known
from cudnn_doctor.model.live import ScenarioResult, Step
from cudnn_doctor.model.reproduction import Reproduction
from cudnn_doctor.reproduce.report import report
from cudnn_doctor.scenarios import scenarios
from tests.native import build
from tests.reproduce import model

MISMATCH = {
    "after-fork", "handle-in-own-context", "other-context", "context-destroyed",
    "handle-destroyed", "primary-reset", "stream-destroyed", "device-assert", "illegal-address", "trap",
}  # fmt: skip
OTHERWISE = {
    "handle-in-capture",
    "malformed-devices",
    "no-device",
    "null-handle",
    "memory-before-create",
    "memory-before-set",
}


@pytest.fixture(autouse=True)
def stub_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build.cuda().parent))


def answers(results: tuple[ScenarioResult, ...], scenario: str) -> dict[str, int | None]:
    return {s.label: s.status for r in results if r.scenario == scenario for s in r.steps if s.label}


def whole(major: int, devices: int = 1) -> Reproduction:
    results = model.run(major=major, devices=devices, faults=True, memory=True)
    return report(results, [model.copy(major)], [model.device(i) for i in range(devices)])


@pytest.mark.parametrize("major", [8, 9])
def test_all_states(major: int) -> None:
    document = whole(major)
    (c,) = document.conclusions
    assert c.status == {8: 7, 9: 2007}[major]
    assert c.control
    assert set(c.can) == MISMATCH
    assert c.ends == ("garbage-stream",)
    assert set(c.other) == OTHERWISE
    assert c.unmade == ("green-context: cuDeviceGetDevResource gave 801 CUDA_ERROR_NOT_SUPPORTED",)
    assert {t.split(":")[0] for t in c.not_tried} >= {"other-device", "other-device-current", "sub-library-foreign"}
    every = {*c.can, *c.ends, *c.other, *c.cannot, *(t.split(":")[0] for t in (*c.unmade, *c.not_tried))}
    assert every == set(scenarios()) - {"valid-stream"}
    assert "an earlier kernel that ended with an exception (719)" in c.text.split(" cannot ")[0]
    assert "a stack limit of 256 KiB" in c.text.split(" cannot ")[1]


def test_two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DEVICES", "2")
    results = model.run("other-device", "other-device-current", "valid-stream", devices=2)
    assert {(r.scenario, r.device, r.fate.kind) for r in results} == {
        (s, d, "completed") for d in (0, 1) for s in ("valid-stream", "other-device", "other-device-current")
    }
    assert answers(tuple(r for r in results if r.device == 0), "other-device") == {
        "first GPU": 0,
        "second GPU": 0,
        "stream's GPU current": 2007,
        "handle's GPU current": 2007,
        "own stream, other GPU current": 0,
        "other way round": 2007,
    }


def test_a_forked_child_and_its_parent() -> None:
    found = answers(model.run("after-fork"), "after-fork")
    assert {k: v for k, v in found.items() if ":" in k} == {
        "child: synchronize": 3,
        "child: own stream": 2007,
        "child: new handle": 1001,
        "parent: own stream": 0,
    }


def test_a_hang_in_a_shared_child_costs_only_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudnn_doctor.reproduce.plan.CHILD_SECONDS", 1.0)
    monkeypatch.setenv("STUB_DO", "cuCtxGetStreamPriorityRange:hang")
    start = time.monotonic()
    results = model.run("null-handle", "other-context", "stream-priority", "valid-stream")
    assert time.monotonic() - start < 6.0
    assert {r.scenario: r.fate.kind for r in results} == {
        "null-handle": "completed",
        "other-context": "completed",
        "stream-priority": "timeout",
        "valid-stream": "completed",
    }
    assert len(results) == 4


def test_a_crash_in_a_shared_child_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DO", "cuCtxGetStreamPriorityRange:segv")
    results = model.run("other-context", "stream-priority", "valid-stream")
    document = report(results, [model.copy()], [model.device()])
    (killed,) = (f for f in document.findings if f.code == "CD622" and f.status == "problem")
    assert killed.title == "stream-priority ended its process"
    assert document.exit_code == 1
    assert next(r for r in results if r.scenario == "valid-stream").verdict == "as-expected"


@pytest.mark.parametrize("what", ["hang", "spam", "close", "kill"])
def test_a_library_that_misbehaves_in_create(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Acceptance 5 of part 2: the report is whole and on time."""
    monkeypatch.setenv("STUB_DO", f"cudnnCreate:{what}")
    start = time.monotonic()
    results = model.run("valid-stream", "null-handle", "garbage-stream", "no-device", timeout=4.0)
    assert time.monotonic() - start < 6.0
    document = report(results, [model.copy()], [model.device()])
    assert {r.scenario for r in results} == {"valid-stream", "null-handle", "garbage-stream", "no-device"}
    if what == "spam":
        assert document.conclusions[0].control
    else:
        assert document.exit_code == 1
        assert document.conclusions[0].text.startswith("On stub with cuDNN 9.19.0 even a valid stream does not work")


def test_repetitions_show_a_distribution() -> None:
    results = model.run("stream-destroyed", "valid-stream", repeat=3)
    document = report(results, [model.copy()], [model.device()])
    assert next(r.seen for r in document.rows if r.scenario == "stream-destroyed") == {"2007": 3}
    assert next(r.seen for r in document.rows if r.label == "legacy stream") == {"0": 3}


def test_every_step_of_a_state_has_a_name() -> None:
    (result,) = model.run("memory-before-set", memory=True)
    named = {s.label: s.name for s in result.steps if s.label and s.status is not None}
    assert named["another handle"] == "CUDNN_STATUS_INTERNAL_ERROR"
    assert named["streams until one fails"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert named["own stream"] == "CUDNN_STATUS_SUCCESS"


def test_progress_counts_states() -> None:
    heard: list[tuple[int, int, str]] = []
    from cudnn_doctor.model.reproduction import Request
    from cudnn_doctor.reproduce.run import run_states

    wanted = Request(states=("valid-stream", "null-handle", "garbage-stream"))
    run_states(wanted, [model.copy()], [model.device()], known(False, "test"), {}, lambda *h: heard.append(h))
    assert sorted(h[0] for h in heard) == [heard[0][0], 3]
    assert {h[1] for h in heard} == {3}


def test_the_library_is_cut_off_by_its_descriptor() -> None:
    """A hidden sub-library is not found beside a library that was opened as /proc/self/fd/N."""
    (result,) = model.run("sub-library-missing")
    assert result.steps[0] == Step(call=f"dlopen {build.cudnn()}", status=0, name="loaded")
    assert result.fate.kind == "completed"
