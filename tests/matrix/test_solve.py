"""The predicate and the solver over many machines: no cure that is undecided or that the predicate rejects."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_doctor.matrix.builds import Catalog
from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.matrix.solve import ORDER, Solver, least_driver
from cudnn_doctor.matrix.target import Target
from cudnn_doctor.model.versions import in_python_range

MATRIX = load_matrix()
PLACES: tuple[tuple[Literal["linux", "windows"], str], ...] = (
    ("linux", "x86_64"),
    ("linux", "aarch64"),
    ("windows", "x86_64"),
)
SOLVERS = {(system, machine): Solver(Catalog(MATRIX, system, machine)) for system, machine in PLACES}
GPUS = ("3.5", "3.7", "5.2", "6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "11.0", "12.0", "12.1")
DRIVERS = ("", "440.33.01", "450.80.02", "460.32.03", "470.82.01", "510.47.03", "525.60.13", "535.104.05", "550.54.14",
           "560.35.03", "570.86.10", "580.65.06", "590.44.01", "595.45.04", "620.10")  # fmt: skip
PYTHONS = ("", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
RELEASES = tuple(
    (f, b.release) for f in ("tensorflow", "torch", "jax") for b in SOLVERS["linux", "x86_64"].catalog.builds(f)
)


def assert_sound(solver: Solver, framework: str, release: str, target: Target) -> None:
    """Each option fits once its changes are made, by the predicate asked anew."""
    found = solver.solve(framework, target, release=release)
    ranks = [o.rank for o in found.options]
    assert ranks == sorted(ranks)
    for option in found.options:
        changed = target
        if option.python:
            assert "python" in option.changes
            changed = msgspec.structs.replace(changed, python=option.python)
        if "driver" in option.changes:
            assert option.driver is not None
            changed = msgspec.structs.replace(changed, driver=least_driver(option.driver))
        again = Solver(solver.catalog).fit(option.build, changed)
        assert again.verdict == "fits", (option.build.requirement, again.errors)
        assert not option.build.pre or option.build.release == release
        assert list(option.changes) == sorted(option.changes, key=ORDER.index)
        if changed.python:
            assert in_python_range(changed.python, option.build.pythons)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(SOLVERS)),
    st.sampled_from(RELEASES),
    st.sampled_from(GPUS),
    st.sampled_from(DRIVERS),
    st.sampled_from(PYTHONS),
)
def test_no_cure_is_undecided_or_rejected(
    place: tuple[Literal["linux", "windows"], str], asked: tuple[str, str], cc: str, driver: str, python: str
) -> None:
    system, machine = place
    target = Target(
        system=system,
        machine=machine,
        capabilities=(cc,),
        driver=driver,
        python=python,
    )
    assert_sound(SOLVERS[place], *asked, target)


@pytest.mark.parametrize("framework", ["tensorflow", "torch", "jax"])
def test_every_build_says_for_which_python_and_gpu_it_is(framework: str) -> None:
    for build in SOLVERS["linux", "x86_64"].catalog.builds(framework):
        assert build.gpu
        needs_what_is_not_there = build.release in ("2.15.0", "0.4.22")
        assert build.pythons or needs_what_is_not_there, build.requirement
        assert build.capabilities or framework == "jax", build.requirement
        assert build.cuda or build.pre, build.requirement


def test_a_branch_alone_is_taken_as_its_newest_release() -> None:
    solver = SOLVERS["linux", "x86_64"]
    build = next(b for b in solver.catalog.builds("torch") if b.requirement == "torch==2.15.0")
    assert solver.fit(build, Target(driver="580")).verdict == "fits"
    assert solver.fit(build, Target(driver="570")).axes == {"driver"}


def test_what_was_not_said_is_not_judged() -> None:
    solver = SOLVERS["linux", "x86_64"]
    build = next(b for b in solver.catalog.builds("jax") if b.release == "0.5.0")
    assert solver.fit(build, Target()).verdict == "fits"
    assert solver.fit(build, Target(capabilities=("12.0",))).verdict == "undecided"


def test_several_gpus_must_all_be_served() -> None:
    solver = SOLVERS["linux", "x86_64"]
    found = solver.solve("torch", Target(capabilities=("6.1", "9.0")))
    assert found.options[0].build.requirement == "torch==2.14.1+cu126"
    assert solver.solve("torch", Target(capabilities=("3.7", "12.0"))).options == ()
