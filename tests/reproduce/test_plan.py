"""What runs where, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cudnn_doctor.live.one_device import only
from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import GpuProcess
from cudnn_doctor.model.reproduction import Copy, Device, Request
from cudnn_doctor.reproduce.plan import Plan, UnknownStateError, make_plan, without
from cudnn_doctor.scenarios import scenarios

NINE = Copy(path="/a/libcudnn.so.9", major=9, version="9.19.0", other="/b")
EIGHT = Copy(path="/c/libcudnn.so.8", major=8, version="8.9.7", preload=("/d/libcublasLt.so.12", "/d/libz.so"))
NO_MPS = known(False, "test")
FREE = known(100 << 30, "test")


def device(ordinal: int = 0, **changes: Any) -> Device:
    fields: dict[str, Any] = {
        "users": known((), "test"),
        "memory_free": FREE,
        "memory_used": known(0, "test"),
        **changes,
    }
    return Device(ordinal=ordinal, **fields)


def plan(
    *copies: Copy,
    devices: tuple[Device, ...] = (device(),),
    mps: Known[bool] | Absent = NO_MPS,
    environ: dict[str, str] | None = None,
    **request: Any,
) -> Plan:
    return make_plan(Request(**request), copies or (NINE,), devices, mps, environ or {})


def children(p: Plan) -> list[list[str]]:
    return [[t.id for t in j.tasks] for phase in p.phases for j in phase.jobs]


def refused(p: Plan) -> dict[str, str]:
    return {r.scenario: r.skipped for r in p.skipped}


def test_the_default_is_harmless_and_killers_each_in_the_right_child() -> None:
    p = plan()
    shared, *single = children(p)
    assert shared == [k for k, (_, s) in scenarios().items() if s.danger == "harmless" and not s.alone]
    assert all(len(c) == 1 for c in single)
    assert {c[0] for c in single} == {
        k for k, (_, s) in scenarios().items() if (s.danger == "kills-process" or s.alone) and 9 in s.majors
    }
    assert set(refused(p)) == {
        "cublas-missing", "other-device", "other-device-current", "memory-before-create", "memory-before-set",
        "device-assert", "illegal-address", "trap",
    }  # fmt: skip


def test_what_measures_and_fills_memory_has_the_device_to_itself() -> None:
    p = plan(NINE, EIGHT, devices=(device(0), device(1)), faults=True, memory=True)
    nine, eight, rest = p.phases
    for phase in (nine, eight):
        shared = [j for j in phase.jobs if len(j.tasks) > 1]
        assert [j.device for j in shared] == [0, 1]  # one a device at a time
        assert [t.id for t in shared[0].tasks][-2:] == ["memory-before-create", "memory-before-set"]
        assert {t.id for j in phase.jobs if j not in shared for t in j.tasks} == {"no-device", "malformed-devices"}
    assert not {t.id for j in rest.jobs for t in j.tasks} & {"handle-cost", "memory-before-set"}


@pytest.mark.parametrize("state", ["device-assert", "illegal-address", "trap"])
def test_faults_are_refused_under_mps_and_when_that_is_unknown(state: str) -> None:
    assert state not in refused(plan(faults=True))
    under = refused(plan(faults=True, mps=known(True, "/tmp/nvidia-mps/control")))[state]
    assert under == "refused: MPS runs, and a fault would end all its clients (/tmp/nvidia-mps/control)"
    unknown = refused(plan(faults=True, mps=Absent(reason="no-permission", detail="hidden")))[state]
    assert unknown == "refused: whether MPS runs could not be read (hidden)"
    assert refused(plan(faults=True, yes=True, mps=known(True, "x")))[state]  # --yes is not for faults


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"users": known((GpuProcess(pid=7, name=known("x", "t"), memory=known(1, "t"), kind="compute"),), "t")},
            "PID 7",
        ),
        ({"users": Absent(reason="error", detail="no NVML")}, "who uses the GPU could not be read (no NVML)"),
        ({"memory_used": known(3 << 30, "t")}, "3072 MiB of the GPU are in use though no process is visible"),
    ],
)
def test_memory_is_refused_while_others_use_the_gpu_unless_yes(changes: dict[str, Any], why: str) -> None:
    p = plan(memory=True, devices=(device(**changes),))
    assert why in refused(p)["memory-before-create"]
    assert refused(p)["memory-before-set"].endswith("--yes runs it all the same")
    assert "memory-before-set" not in refused(plan(memory=True, yes=True, devices=(device(**changes),)))


def test_memory_is_refused_under_mps_whatever_is_said() -> None:
    p = plan(memory=True, yes=True, mps=known(True, "pipe"))
    assert refused(p)["memory-before-create"] == "refused: MPS runs, others share this GPU (pipe)"


def test_a_copy_without_another_of_its_major_has_no_foreign_sub_library() -> None:
    assert refused(plan(EIGHT))["sub-library-foreign"] == "needs a second cuDNN 8 of another version on this machine"
    (job,) = plan(NINE, states=("sub-library-foreign",)).phases[0].jobs
    assert job.tasks[0].args["preload"] == ("/b/libcudnn_graph.so.9",)


def test_hiding_cublas(tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.mkdir()
    (held / "libcublasLt.so.12").touch()
    other = tmp_path / "other"
    other.mkdir()
    path = f"{held}:{other}:/nowhere"
    (job,) = plan(EIGHT, states=("cublas-missing",), environ={"LD_LIBRARY_PATH": path}).phases[0].jobs
    assert job.set_env["LD_LIBRARY_PATH"] == f"{other}:/nowhere"
    assert job.tasks[0].args["preload"] == ("/d/libz.so",)
    assert job.tasks[0].args["hide"] == ("libcublas",)
    assert without("", ("libcublas",)) == ""
    cached = Copy(path=EIGHT.path, major=8, cublas_in_cache="/lib/libcublasLt.so.12")
    why = refused(plan(cached, states=("cublas-missing",)))["cublas-missing"]
    assert why == "the loader finds /lib/libcublasLt.so.12 whatever the environment says"


def test_with_two_gpus_each_child_sees_its_own() -> None:
    p = plan(devices=(device(0), device(1)), states=("valid-stream", "other-device"))
    jobs = [j for phase in p.phases for j in phase.jobs]
    seen = [(j.device, j.tasks[0].id, j.set_env.get("CUDA_VISIBLE_DEVICES"), j.tasks[0].args) for j in jobs]
    assert [(d, i, v, a["device"], a.get("other_device")) for d, i, v, a in seen] == [
        (0, "valid-stream", "0", 0, None),
        (1, "valid-stream", "1", 0, None),
        (0, "other-device", None, 0, 1),
        (1, "other-device", None, 1, 0),
    ]


@pytest.mark.parametrize(
    ("listed", "ordinal", "left"),
    [
        (None, 3, "3"),
        ("2,5", 0, "2"),
        ("2, 5", 1, "5"),
        ("GPU-1,GPU-2", 1, "GPU-2"),
        ("MIG-a", 0, "MIG-a"),
        ("", 0, ""),
    ],
)
def test_one_device_of_those_that_are_shown(listed: str | None, ordinal: int, left: str) -> None:
    assert only(ordinal, {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}) == left


def test_nothing_is_written_to_the_compute_cache() -> None:
    assert {j.set_env["CUDA_CACHE_DISABLE"] for phase in plan(faults=True).phases for j in phase.jobs} == {"1"}


def test_a_small_card_gets_fewer_children_at_a_time() -> None:
    assert plan().phases[-1].width == 16
    assert plan(devices=(device(memory_free=known(3 << 30, "t")),)).phases[-1].width == 3
    assert plan(devices=(device(memory_free=known(1, "t")),)).phases[-1].width == 1
    assert plan(devices=(device(memory_free=Absent(reason="error")),)).phases[-1].width == 4


def test_repetitions() -> None:
    p = plan(states=("valid-stream", "null-handle", "stream-destroyed"), repeat=2)
    assert children(p) == [
        ["null-handle", "valid-stream", "null-handle#1", "valid-stream#1"],
        ["stream-destroyed"],
        ["stream-destroyed"],
    ]


def test_an_unknown_state() -> None:
    with pytest.raises(
        UnknownStateError, match=r"^there is no state 'nope'; `cudnn-doctor reproduce --list` shows all 3"
    ):
        plan(states=("nope",))
