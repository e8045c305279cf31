"""The problems and the bytes that are put to the engines."""

from __future__ import annotations

import struct

import pytest

from cudnn_doctor.engines.graphs import Tensor, packed
from cudnn_doctor.engines.keys import engine_of, plan_key, split_step, step_name
from cudnn_doctor.engines.memory import pattern
from cudnn_doctor.engines.problems import CONV_SHAPES, DATA_TYPES, OPERATIONS, SIZE, problems


def test_the_full_form_covers_every_operation_and_data_type() -> None:
    every = problems()
    assert len(every) == len({p.id for p in every}) == 118
    assert {p.operation for p in every} == set(OPERATIONS)
    assert {p.data_type for p in every} == set(DATA_TYPES)
    assert len({p.group for p in every}) == 32


def test_the_quick_form_is_the_plain_convolutions_on_the_shape_of_the_210_plans() -> None:
    assert [p.id for p in problems(quick=True)] == [
        f"{operation}/{data_type}/nhwc/3x3"
        for operation in ("conv-forward", "conv-backward-data", "conv-backward-filter")
        for data_type in ("fp16", "bf16", "fp32")
    ]


def test_the_quick_form_of_a_named_operation_keeps_its_layouts() -> None:
    assert [p.id for p in problems(operations=["matmul"], data_types=["fp16"], quick=True)] == [
        "matmul/fp16/row-major/b4-128x128x64",
        "matmul/fp16/row-major/b1-256x64x128",
    ]


def test_int8_is_forward_and_channels_last() -> None:
    chosen = problems(data_types=["int8"])
    assert {(p.operation, p.layout) for p in chosen} == {
        ("conv-forward", "nhwc"),
        ("conv-bias-relu", "nhwc"),
        ("matmul", "row-major"),
    }


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"operations": ["conv"]},
            "--op conv: not known. Known are conv-forward, conv-backward-data, conv-backward-filter, conv-bias-relu, "
            "matmul, attention.",
        ),
        ({"data_types": ["tf32"]}, "--dtype tf32: not known. Known are fp16, bf16, fp32, int8."),
        (
            {"operations": ["attention"], "data_types": ["fp32"]},
            "no problem is both of attention and of fp32.",
        ),
    ],
)
def test_wrong_choices_say_what_there_is(given: dict[str, list[str]], text: str) -> None:
    with pytest.raises(ValueError, match=r".") as e:
        problems(**given)  # type: ignore[arg-type]
    assert str(e.value) == text


def test_output_sizes_of_the_convolutions() -> None:
    assert {name: (s.p, s.q) for name, s in CONV_SHAPES.items()} == {
        "3x3": (32, 32),
        "1x1-stride2": (16, 16),
        "grouped": (16, 16),
        "depthwise": (32, 32),
    }


def test_strides() -> None:
    assert packed((8, 64, 32, 16)) == (32768, 512, 16, 1)
    assert packed((8, 64, 32, 16), channels_last=True) == (32768, 1, 1024, 64)
    assert packed((4, 128, 64)) == (8192, 64, 1)


DECODE = {
    "fp32": lambda b: struct.unpack(f"<{len(b) // 4}f", b),
    "fp16": lambda b: struct.unpack(f"<{len(b) // 2}e", b),
    "bf16": lambda b: struct.unpack(f"<{len(b) // 2}f", b"".join(b"\0\0" + b[i : i + 2] for i in range(0, len(b), 2))),
    "int8": lambda b: struct.unpack(f"<{len(b)}b", b),
}


@pytest.mark.parametrize("data_type", DECODE)
def test_inputs_are_small_whole_numbers(data_type: str) -> None:
    data = pattern(Tensor(uid=3, role="input", data_type=data_type, elements=20000))
    assert len(data) == 20000 * SIZE[data_type]
    values = DECODE[data_type](data)
    assert set(values) == {-1, 0, 1}
    assert 4000 < sum(1 for v in values if v == 1) < 6000
    assert values[:4099] == values[4099:8198] != values[4096:8195]


def test_two_inputs_differ() -> None:
    a, b = (pattern(Tensor(uid=uid, role="input", data_type="int8", elements=4099)) for uid in (1, 2))
    assert a != b


def test_plan_keys() -> None:
    assert plan_key(17, ()) == "e17"
    assert plan_key(17, ((2, 1), (5, 0))) == "e17 k2=1 k5=0"
    assert engine_of("e17 k2=1 k5=0") == engine_of("e17") == 17
    assert split_step(step_name("e17 k2=1", "build")) == ("e17 k2=1", "build")
    assert split_step(step_name("", "heuristics A")) == ("", "heuristics A")
