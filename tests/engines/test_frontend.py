"""Agreement with nvidia-cudnn-frontend: on this machine's GPU where there is one, and as recorded on an H200."""

from __future__ import annotations

import gzip
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cudnn_doctor.engines.problems import OPERATIONS, Problem, problems
from cudnn_doctor.model.base import decode
from cudnn_doctor.model.engines import CaptureSeen
from tests.engines.frontend import (
    Built,
    Crosscheck,
    Pair,
    Proposal,
    Said,
    crosscheck,
    disagreements,
    key_of,
    strays,
    summary,
)

FOLDER = Path(__file__).parents[1] / "recordings" / "engines"
RECORDINGS = sorted(p.name for p in FOLDER.glob("frontend-*.json.gz"))

# ---------------------------------------------------------------- the comparison itself


@pytest.mark.parametrize(
    ("name", "key"),
    [("eng0", "e0"), ("eng17_k2=1_k5=0", "e17 k2=1 k5=0"), ("eng4_k24=-1", "e4 k24=-1")],
)
def test_names_of_configurations(name: str, key: str) -> None:
    assert key_of(name) == key


@pytest.mark.parametrize("name", ["", "eng", "INVALID_ENGINE_NAME_CFG", "ConvFwd_eng1", "eng1_k2"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of an engine's configuration"):
        key_of(name)


def side(first: str, second: str, **changes: Any) -> Said:
    """One side's words on two configurations, the first of them built."""
    plan = {"numerical": ("TENSOR_CORE", "FFT"), "behaviour": ("RUNTIME_COMPILATION",), "workspace": 16, "output": "a1"}
    ran = {"given": CaptureSeen(given=2, kernels=2), "control": CaptureSeen(plan=2, kernels=2)}
    built = Built(name=first, **{**plan, **ran, **changes})
    listed = (Proposal(name=first, behaviour=("RUNTIME_COMPILATION",)), Proposal(name=second))
    return Said(engines=9, proposed={"A": listed, "FALLBACK": listed[1:]}, built=(built,))


PROBLEM = problems()[0]
OURS = side("e1 k2=0", "e3")
THEIRS = side("eng1_k2=0", "eng3")


def against(**changes: Any) -> list[str]:
    """What is found where the frontend says otherwise than `OURS`."""
    return disagreements(Pair(problem=PROBLEM, ours=OURS, theirs=msgspec.structs.replace(THEIRS, **changes)))


def test_agreement() -> None:
    assert against() == []
    assert strays(Pair(problem=PROBLEM, ours=OURS, theirs=THEIRS)) == []
    other_order = side("eng1_k2=0", "eng3", numerical=("FFT", "TENSOR_CORE"))
    assert disagreements(Pair(problem=PROBLEM, ours=OURS, theirs=other_order)) == []


def test_differences_in_what_is_proposed() -> None:
    listed = THEIRS.proposed["A"]
    assert against(engines=8) == ["engines: 9, theirs 8"]
    fewer = against(proposed={**THEIRS.proposed, "A": listed[:1]})
    assert fewer == ["A: 2 and 1, first at 1: [('e3', [])], theirs []"]
    swapped = against(proposed={**THEIRS.proposed, "A": listed[::-1]})
    assert swapped == [
        "A: 2 and 2, first at 0: [('e1 k2=0', ['RUNTIME_COMPILATION'])], theirs [('e3', [])]",
    ]
    noted = against(proposed={**THEIRS.proposed, "FALLBACK": (Proposal(name="eng3", behaviour=("X",)),)})
    assert noted == ["FALLBACK: 1 and 1, first at 0: [('e3', [])], theirs [('e3', ['X'])]"]
    assert against(built=()) == ["plans: ['e1 k2=0'], theirs []"]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"numerical": ("FFT",)}, "numerical notes: ['FFT', 'TENSOR_CORE'], theirs ['FFT']"),
        ({"numerical": None}, "numerical notes: ['FFT', 'TENSOR_CORE'], theirs None"),
        ({"behaviour": ()}, "behaviour notes: ['RUNTIME_COMPILATION'], theirs []"),
        ({"workspace": 0}, "workspace: 16, theirs 0"),
        (
            {"given": CaptureSeen(plan=2, kernels=2)},
            "nodes with handle B: (2, 0, 0, 2, False), theirs (0, 2, 0, 2, False)",
        ),
        (
            {"control": CaptureSeen(error="no")},
            "nodes with handle A: (0, 2, 0, 2, False), theirs (0, 0, 0, 0, True)",
        ),
        ({"output": "b2"}, "output: a1, theirs b2"),
        ({"output": ""}, ""),  # two of its runs differ: nothing to compare
        ({"failure": "no"}, "failure '', theirs 'no'"),
    ],
)
def test_differences_of_a_plan(changes: dict[str, Any], found: str) -> None:
    pair = Pair(problem=PROBLEM, ours=OURS, theirs=side("eng1_k2=0", "eng3", **changes))
    assert disagreements(pair) == ([f"e1 k2=0: {found}"] if found else [])


def test_what_was_not_seen_by_either_side_is_no_agreement() -> None:
    pair = Pair(problem=PROBLEM, ours=side("e1", "e3", given=None), theirs=side("eng1", "eng3", given=None))
    assert disagreements(pair) == ["e1: nodes with handle B: None, theirs None"]
    both = Pair(problem=PROBLEM, ours=side("e1", "e3", failure="1"), theirs=side("eng1", "eng3", failure="2"))
    assert disagreements(both) == []
    broken = Pair(problem=PROBLEM, ours=OURS, theirs=THEIRS, errors=("Traceback\n  File\nValueError: no\n",))
    assert disagreements(broken) == ["ValueError: no"]


def test_kernels_in_another_stream_and_controls_that_show_nothing() -> None:
    astray = side("eng1", "eng3", given=CaptureSeen(given=1, plan=1, kernels=2))
    assert strays(Pair(problem=PROBLEM, theirs=astray)) == [
        "eng1: 1 of 2 graph nodes are in the stream of the handle that built the plan"
    ]
    blind = side("eng1", "eng3", control=CaptureSeen(given=2, kernels=2))
    assert strays(Pair(problem=PROBLEM, theirs=blind)) == ["eng1: the control shows nothing"]


# ---------------------------------------------------------------- for real


def agrees(seen: Crosscheck, chosen: tuple[Problem, ...]) -> None:
    """Both sides say the same of every problem, and every captured plan stays in the given stream."""
    assert [p.problem for p in seen.pairs] == list(chosen)
    assert {p.problem.id: d for p in seen.pairs if (d := disagreements(p))} == {}
    assert {p.problem.id: s for p in seen.pairs if (s := strays(p))} == {}
    assert seen.frontend
    built = [b for p in seen.pairs for b in p.theirs.built]
    assert sum(1 for b in built if b.given and not b.given.error) > 0


def test_live() -> None:
    """The quick form's problems, on the libcudnn of the wheel that is installed here."""
    if not os.path.exists("/dev/nvidiactl"):
        pytest.skip("no NVIDIA GPU here")
    if find_spec("cudnn") is None:
        pytest.skip("nvidia-cudnn-frontend is not installed")
    wheel = find_spec("nvidia.cudnn") if find_spec("nvidia") else None
    if wheel is None or not wheel.submodule_search_locations:
        pytest.skip("no cuDNN wheel is installed")
    library = Path(next(iter(wheel.submodule_search_locations))) / "lib" / "libcudnn.so.9"
    chosen = problems(quick=True)
    agrees(crosscheck(str(library), chosen), chosen)


@cache
def recording(name: str) -> Crosscheck:
    return decode(gzip.decompress((FOLDER / name).read_bytes()), Crosscheck)


def test_as_recorded() -> None:
    assert RECORDINGS
    for name in RECORDINGS:
        seen = recording(name)
        agrees(seen, problems())
        assert {p.problem.operation for p in seen.pairs if p.theirs.built} == set(OPERATIONS)


def test_how_much_was_recorded() -> None:
    assert summary(recording("frontend-9.19.0.json.gz")) == (
        "frontend 1.18.0, cuDNN 9.19.0, NVIDIA H200: 0 of 118 problems differ; 2853 configurations proposed, "
        "843 built, 843 captured, 0 failed on both sides or one"
    )
