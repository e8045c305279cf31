"""CUDA_VISIBLE_DEVICES: what CUDA did with each spelling on a machine with one H200 (driver 580.159.04, 2026-11-30)."""

from __future__ import annotations

import pytest

from cudnn_doctor.model.visible_devices import visible_devices

UUID = "GPU-d1fc59d2-80c8-ecc5-ce98-e545dc3e5196"

# value -> cuInit's code; with 0, cuDeviceGetCount gave 1
MEASURED = {
    "": 100, " ": 100, "-1": 100, "0": 0, "00": 0, "0x0": 0, "+0": 0, " 0": 0, "0 ": 0, "0,1": 0, "0, 1": 0,
    "1,0": 100, "0,0": 101, "1,1": 100, "0,1,1": 0, "1": 100, "2": 100, "0,2,1": 0, "0,-1,1": 0, "-1,0": 100,
    "0,foo": 0, "foo": 100, "foo,0": 100, "none": 100, "NoDevFiles": 100, "all": 100, "void": 100, "cuda:0": 100,
    "gpu0": 100, "0;1": 0, "0abc": 0, "0.5": 0, "'0'": 100, '"0"': 100, "[0]": 100, UUID: 0, UUID[:12]: 0, "GPU-": 100,
    UUID[4:]: 100, UUID.upper(): 0, UUID.lower(): 100, f"{UUID},GPU-none": 0, f"{UUID},1": 0, f"1,{UUID}": 100,
    f"{UUID},{UUID}": 101, "GPU-ffffffff": 100, f"{UUID},GPU-ffffffff": 0, f"MIG-{UUID}/0/0": 100, ",": 100, "0,": 0,
    ",0": 100, "0,,1": 0,
}  # fmt: skip


@pytest.mark.parametrize(("value", "code"), MEASURED.items())
def test_as_cuda_reads_it(value: str, code: int) -> None:
    seen = visible_devices(value, [UUID])
    assert seen.devices == (("0",) if code == 0 else ())
    assert bool(seen.twice) == (code == 101)


@pytest.mark.parametrize(
    ("value", "ended_at", "why"),
    [
        ("", "", "it is empty"),
        ("0,1", "1", "there is 1 GPU"),
        ("0,-1,1", "-1", "a negative number ends the list"),
        ("0," + "9" * 5000, "9" * 5000, "there is 1 GPU"),
        ("cuda:0", "cuda:0", "it is neither a number nor a UUID"),
        (UUID.lower(), UUID.lower(), "it is neither a number nor a UUID: GPU- must be in capitals"),
        ("GPU-ffffffff", "GPU-ffffffff", "no GPU has that UUID"),
        (f"MIG-{UUID}/0/0", f"MIG-{UUID}/0/0", "there is no such MIG slice"),
    ],
)
def test_where_it_ends_and_why(value: str, ended_at: str, why: str) -> None:
    seen = visible_devices(value, [UUID])
    assert (seen.ended_at, seen.why) == (ended_at, why)


@pytest.mark.parametrize("value", ["0;1", "0abc", "0.5"])
def test_what_follows_the_number_is_dropped(value: str) -> None:
    assert visible_devices(value, [UUID]).dropped == value


@pytest.mark.parametrize("value", ["0", " 0 ", "0x0", "+0", UUID])
def test_nothing_is_dropped(value: str) -> None:
    assert visible_devices(value, [UUID]).dropped == ""


def test_several_gpus_and_slices() -> None:
    uuids = ["GPU-aa11", "GPU-aa22", "GPU-bb33"]
    assert visible_devices("2,1", uuids).devices == ("2", "1")
    assert visible_devices("0,2,-1,1", uuids).devices == ("0", "2")  # the programming guide's own example
    assert visible_devices("GPU-bb,GPU-aa2", uuids).devices == ("2", "1")
    assert visible_devices("GPU-aa", uuids).why == "that beginning fits several UUIDs"
    assert visible_devices("3", uuids).why == "there are 3 GPUs"
    assert visible_devices("010", uuids).why == "there are 3 GPUs"  # octal 8
    assert visible_devices("MIG-1", uuids, ["MIG-1234"]).devices == ("MIG-1",)
    assert visible_devices("MIG-GPU-aa11/1/0", uuids, ["MIG-1234"]).devices == ("MIG-GPU-aa11/1/0",)


A, B = "GPU-f1ea18d0", "GPU-5e93c133"

# On a machine with two H200s (driver 580.159.04): how many devices cuDeviceGetCount gave, or cuInit's code 101
MEASURED_WITH_TWO = {
    "1,0": 2, "0,1": 2, "0, 1": 2, "0,1,1": 101, "1,1": 101, f"{A},1": 1, f"1,{A}": 1, f"{B},{A}": 2, f"0,{A}": 1,
    "0;1": 1, "0,-1,1": 1,
}  # fmt: skip


@pytest.mark.parametrize(("value", "count"), MEASURED_WITH_TWO.items())
def test_as_cuda_reads_it_with_two_gpus(value: str, count: int) -> None:
    seen = visible_devices(value, [A, B])
    assert (101 if seen.twice else len(seen.devices)) == count
