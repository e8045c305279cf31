"""Real runs of every state, judged anew: what an H200 answered is what the states expect, and the words follow."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.reproduction import Copy, Device, Reproduction
from cudnn_doctor.reproduce.compare import judged
from cudnn_doctor.reproduce.report import report
from cudnn_doctor.scenarios import scenarios

FOLDER = Path(__file__).parents[1] / "recordings" / "reproduce"
VERSIONS = ("8.9.7", "9.1.0", "9.14.0", "9.19.0")


class Recording(msgspec.Struct):
    recorded_on: str
    machine: str
    scenarios: tuple[ScenarioResult, ...]


def replay(name: str) -> Reproduction:
    recording = msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Recording)
    results = [judged(r) for r in recording.scenarios]
    first = next(r for r in results if r.cudnn_version)
    copy = Copy(path=first.cudnn, major=int(first.cudnn_version.split(".", maxsplit=1)[0]), version=first.cudnn_version)
    devices = [
        Device(ordinal=d, name="NVIDIA H200") for d in sorted({r.device for r in results if r.device is not None})
    ]
    return report(results, [copy], devices)


@cache
def recorded() -> frozenset[str]:
    """States that ran on a real GPU under one version at least."""
    return frozenset(r.scenario for path in FOLDER.glob("*.json") for r in replay(path.stem).rows)


@pytest.mark.parametrize("state", scenarios())
def test_every_state_is_recorded(state: str) -> None:
    if state not in recorded():
        pytest.skip(
            f"not recorded yet: run `python -m tests.bench.states` on a GPU and keep its result in {FOLDER.name}/"
        )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_answer_is_the_expected_one(version: str) -> None:
    document = replay(f"h200-cudnn-{version}")
    assert {r.cudnn_version for r in document.rows if r.scenario != "sub-library-foreign"} == {version}
    assert {r.scenario for r in document.rows} == recorded() - {
        "other-device",
        "other-device-current",
        *(["cublas-missing"] if version != "8.9.7" else ["sub-library-foreign"]),
    }
    assert [
        (r.scenario, r.label, r.outcome) for r in document.rows if r.verdict in ("differs", "unknown-version")
    ] == []
    assert (document.verdict, document.exit_code) == ("ok", 0)
    assert not [f for f in document.findings if f.status in ("problem", "crashed")]


ALWAYS = {"after-fork", "handle-in-own-context", "other-context", "handle-destroyed"}
FAULTS = {"device-assert", "illegal-address", "trap"}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_can_give_the_mismatch_and_what_cannot(version: str) -> None:
    (c,) = replay(f"h200-cudnn-{version}").conclusions
    assert c.status == (7 if version == "8.9.7" else 2007)
    assert set(c.can) >= ALWAYS | FAULTS
    assert set(c.cannot) >= {
        "threads-share-handle", "no-context", "other-context-current", "context-retained-elsewhere",
        "stream-in-capture", "stream-priority", "green-context", "stack-limit", "handle-cost",
    }  # fmt: skip
    assert set(c.other) >= {
        "memory-before-create",
        "memory-before-set",
        "no-device",
        "malformed-devices",
        "null-handle",
    }
    assert "garbage-stream" in c.ends
    assert c.unmade == () or version == "9.14.0"
    assert f"On NVIDIA H200 with cuDNN {version}, status {c.status} from cudnnSetStream can come from:\n- a " in c.text


def test_a_handle_of_cudnn_8_takes_thirty_times_the_memory() -> None:
    cost = {
        v: next(float(r.outcome) for r in replay(f"h200-cudnn-{v}").rows if r.label == "MiB a handle") for v in VERSIONS
    }
    assert cost == {"8.9.7": 264.0, "9.1.0": 8.0, "9.14.0": 8.0, "9.19.0": 8.0}


def test_cudnn_8_names_the_missing_cublas_and_aborts() -> None:
    document = replay("h200-cudnn-8.9.7")
    (result,) = (r for r in document.scenarios if r.scenario == "cublas-missing")
    assert (result.fate.kind, result.fate.signal, result.fate.last_label) == ("signal", "SIGABRT", "create")
    assert result.fate.stderr.startswith(
        "Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: cannot open"
    )


@pytest.mark.parametrize(("version", "mismatch"), [("8.9.7", "7"), ("9.19.0", "2007")])
def test_two_devices(version: str, mismatch: str) -> None:
    document = replay(f"two-h200-cudnn-{version}")
    for device in (0, 1):
        rows = {r.label: r.outcome for r in document.rows if r.scenario == "other-device" and r.device == device}
        assert rows == {
            "stream's GPU current": mismatch,
            "handle's GPU current": mismatch,
            "own stream, other GPU current": "0",
            "other way round": mismatch,
        }
    assert not [r for r in document.rows if r.verdict in ("differs", "unknown-version")]
    assert len(document.conclusions) == 2
    assert all("other-device" in c.can for c in document.conclusions)
    first = f"status {mismatch} from cudnnSetStream can come from:"
    assert [c.text.split("\n")[0] for c in document.conclusions] == [
        f"On NVIDIA H200 (device {d}) with cuDNN {version}, {first}" for d in (0, 1)
    ]


def test_with_another_device_current_only_cudnn_8_fails_and_only_later() -> None:
    for version, answers in (("8.9.7", ["0", "8", ""]), ("9.19.0", ["0", "0", "0"])):
        document = replay(f"two-h200-cudnn-{version}")
        for device in (0, 1):
            rows = [r for r in document.rows if r.scenario == "other-device-current" and r.device == device]
            assert [(r.label, r.outcome) for r in rows] == list(
                zip(("own stream", "convolution", "wrong values"), answers, strict=True)
            )
        kind = "other" if version == "8.9.7" else "cannot"
        assert all("other-device-current" in getattr(c, kind) for c in document.conclusions)


def test_memory_was_refused_while_another_process_used_the_gpu() -> None:
    document = replay("h200-in-use")
    refused = {r.scenario: r.skipped for r in document.scenarios if r.skipped.startswith("refused")}
    why = "refused: 1 other process(es) use the GPU (PID 3178); --yes runs it all the same"
    assert refused == {"memory-before-create": why, "memory-before-set": why}


def test_a_state_that_is_no_more_does_not_stop_a_replay() -> None:
    """That recording is older than the last change of the states."""
    names = {r.scenario for r in replay("h200-in-use").scenarios}
    assert "context-destroyed-new-stream" in names - set(scenarios())
