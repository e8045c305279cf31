"""The cheapest change that makes a framework run: a pin, a build from an index, another release, another Python, the
driver. The search is small and exact: every build of a framework is judged by the one predicate of fits.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Literal

import msgspec

from cudnn_doctor.matrix.builds import Build, Catalog
from cudnn_doctor.matrix.compat import driver_for_cuda, driver_for_gpu
from cudnn_doctor.matrix.fits import NEWEST, Fit, Judge, only_ptx
from cudnn_doctor.matrix.pins import driver_branch
from cudnn_doctor.matrix.tables import Matrix
from cudnn_doctor.matrix.target import Target
from cudnn_doctor.model.versions import at_least, dotted, in_python_range, numbers, padded

Change = Literal["pin", "build", "release", "python", "driver"]
ORDER: tuple[Change, ...] = ("pin", "build", "release", "python", "driver")  # cheapest first
MOST = 4  # options that a person still reads


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """What a build needs of the driver: the least release, and the branch to install."""

    least: str
    branch: str  # "" when no maintained branch serves build and GPU


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One way: a line that fits once `changes` are made. `python` and `driver` are what is needed of them: set when
    they must change, or when nothing was said of them."""

    fit: Fit
    changes: tuple[Change, ...]
    python: str = ""  # the version to take
    driver: Driver | None = None

    @property
    def build(self) -> Build:
        return self.fit.line.build

    @property
    def rank(self) -> tuple[int, int, int]:
        """Fewer warnings first, then fewer changes, then the cheaper of them; a pin costs nothing."""
        costs = [ORDER.index(c) for c in self.changes if c != "pin"]
        return self.fit.cautions, len(costs), max(costs, default=0)


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """`asked` is the answer to the question as it stands, None when no release was named; `options` what fits, the
    cheapest change first."""

    asked: Fit | None
    options: tuple[Option, ...]


class Solver:
    """Answers questions on one system and machine."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.matrix = catalog.matrix
        self._judge = Judge(catalog.matrix)
        self._needs: dict[tuple[str, tuple[str, ...], str, bool], Driver] = {}

    def solve(self, framework: str, target: Target, *, release: str = "", variant: str | None = None) -> Solution:
        """What of a framework fits the machine, and what must change.

        `release` and `variant` are what was asked for; None for the variant takes what pip takes by default.
        """
        start = self._asked(framework, release, variant) if release else None
        asked = self._judge.fit(start, target) if start else None
        if asked and asked.verdict == "fits" and not asked.cautions and start:
            ways: Iterable[Option] = self._way(start, target, start)
        else:
            ways = self._ways(framework, target, start)
        return Solution(asked=asked, options=tuple(_cheapest(ways, start)))

    def fit(self, build: Build, target: Target) -> Fit:
        """The predicate for one build."""
        return self._judge.fit(build, target)

    def _asked(self, framework: str, release: str, variant: str | None) -> Build | None:
        found = [b for b in self.catalog.builds(framework) if b.release == release]
        if variant is not None:
            return next((b for b in found if b.variant == variant), None)
        usable = [b for b in found if b.gpu and b.pythons]
        return next(iter(usable or found), None)

    def _ways(self, framework: str, target: Target, start: Build | None) -> Iterator[Option]:
        """Every build that fits after some change, judged as it would then be."""
        candidates = self.catalog.newest_patches(framework)
        if start:
            candidates += tuple(b for b in self.catalog.of_release(framework, start.release) if b not in candidates)
        yield from self.ways(candidates, target, start)

    def ways(self, builds: Iterable[Build], target: Target, start: Build | None = None) -> Iterator[Option]:
        """Each of those builds that fits after some change. Whatever `solve` offers is one of these."""
        for build in builds:
            yield from self._way(build, target, start)

    def _way(self, build: Build, target: Target, start: Build | None) -> Iterator[Option]:
        here = self._judge.fit(build, target)
        if "build" in here.axes or (here.verdict == "undecided" and not here.axes):
            return
        changes: list[Change] = []
        if start and build.release != start.release:
            changes.append("release")
        elif start and build.variant != start.variant:
            changes.append("build")
        if here.line.cudnn_wanted:
            changes.append("pin")
        python = self._other_python(build, target, start) if build.pythons else ""
        if python:
            changes.append("python")
        need = self.needed_driver(build, target)
        then = here
        if here.axes:
            moved = target
            if "driver" in here.axes:
                if not need.branch:
                    return
                changes.append("driver")
                moved = msgspec.structs.replace(target, driver=least_driver(need), serves="", compat="")
            then = self._judge.fit(build, msgspec.structs.replace(moved, python=python or moved.python))
        if then.verdict == "fits":
            yield Option(
                fit=then,
                changes=tuple(sorted(changes, key=ORDER.index)),
                python=python,
                driver=need if "driver" in changes or _short(target.driver, need.least) else None,
            )

    def _other_python(self, build: Build, target: Target, start: Build | None) -> str:
        """The Python to change to; "" when none is to be changed. Where none was named and an older release is to be
        taken, the newest Python of the release asked for stands for it."""
        here = target.python
        if not here and start and start.pythons and not start.pre and build.minor < start.minor:
            here = newest_python(start.pythons)
        if not here or in_python_range(here, build.pythons):
            return ""
        return nearest_python(build.pythons, here)

    def needed_driver(self, build: Build, target: Target) -> Driver:
        """The least driver for a build and the GPUs, and the branch to install."""
        ptx = only_ptx(build, target)
        key = (build.cuda, target.capabilities, target.driver_system, ptx)
        if key not in self._needs:
            self._needs[key] = driver_for(self.matrix, build.cuda, target, ptx=ptx)
        return self._needs[key]


def _short(driver: str, least: str) -> bool:
    """Whether the driver that was named does not tell: none, or a branch alone whose first releases are too old."""
    return not driver or ("." not in driver and bool(least) and numbers(least)[0] == numbers(driver)[0])


def _cheapest(ways: Iterable[Option], start: Build | None) -> list[Option]:
    """Of equal changes the best; without those that need all that a cheaper one needs and give nothing newer."""
    best: dict[frozenset[Change], Option] = {}
    for way in ways:  # newest release first; of a release the default build first
        kind = frozenset(c for c in way.changes if c != "pin")
        if kind not in best or _preference(way, start) < _preference(best[kind], start):
            best[kind] = way
    kept: list[Option] = []
    for way in sorted(best.values(), key=lambda w: w.rank):
        if not any(_covers(k, way, start) for k in kept):
            kept.append(way)
    return kept[:MOST]


def _preference(way: Option, start: Build | None) -> tuple[int, bool]:
    """Fewer warnings, then the minor that was asked for."""
    return way.fit.cautions, start is not None and way.build.minor != start.minor


def _covers(kept: Option, way: Option, start: Build | None) -> bool:
    """Whether a kept option makes another one pointless."""
    if kept.fit.cautions > way.fit.cautions:
        return False
    fewer = set(kept.changes) - {"pin"} <= set(way.changes) - {"pin"}
    if fewer and (start is not None or numbers(kept.build.release) >= numbers(way.build.release)):
        return True
    older = start is not None and numbers(way.build.release) < numbers(start.release)
    stays = "release" not in kept.changes and "driver" not in kept.changes
    return older and stays and len(kept.changes) <= len(way.changes)


def all_pythons(ranges: str) -> list[tuple[int, ...]]:
    """ "2.7 3.9-3.10" -> (2, 7), (3, 9), (3, 10)."""
    found: list[tuple[int, ...]] = []
    for part in ranges.split():
        first, _, last = part.partition("-")
        low, high = padded(first, 2), padded(last or first, 2)
        found += [(low[0], m) for m in range(low[1], high[1] + 1)]
    return found


@cache
def newest_python(ranges: str) -> str:
    """ "2.7 3.9-3.12" -> "3.12"."""
    return dotted(max(all_pythons(ranges)))


@cache
def nearest_python(ranges: str, wanted: str) -> str:
    """The Python that is nearest to the one here: the newest that is not newer, else the oldest."""
    found = all_pythons(ranges)
    older = [p for p in found if p <= padded(wanted, 2)]
    return dotted(max(older) if older else min(found))


def driver_for(matrix: Matrix, cuda: str, target: Target, *, ptx: bool = False) -> Driver:
    """What programs of a CUDA and the GPUs need of the driver. The branch is the oldest maintained one that serves the
    CUDA and the GPUs, else the newest of all that do."""
    system = target.driver_system
    own = matrix.cuda_row(cuda) if cuda else None
    span = matrix.minor_compat_row(cuda) if cuda else None
    least = ""
    if span and not ptx:
        least = span.windows if system == "windows" else span.linux
    elif own:
        least = (own.windows if system == "windows" else own.linux) or own.linux
    for cc in target.capabilities:
        gpu = matrix.gpu(cc)
        first = (gpu.windows_driver_min if system == "windows" else gpu.driver_min) if gpu else ""
        if first and (not least or at_least(least, first) is False):
            least = first
    return Driver(least=least, branch=_branch(matrix, cuda, target, ptx=ptx))


def _branch(matrix: Matrix, cuda: str, target: Target, *, ptx: bool) -> str:
    if not cuda:
        return ""
    maintained = driver_branch(matrix, cuda, target.capabilities)
    if maintained:
        return maintained
    for row in reversed(matrix.branches):
        if row.kind == "jetpack":
            continue
        last = f"{row.branch}.{NEWEST}"
        knows = all(driver_for_gpu(matrix, cc, last).verdict != "problem" for cc in target.capabilities)
        if knows and driver_for_cuda(matrix, cuda, last, ptx=ptx).verdict == "ok":
            return row.branch
    return ""


def least_driver(need: Driver) -> str:
    """A release of the branch to install, for judging: the least one when that is of the branch."""
    same = need.least and numbers(need.least)[0] == int(need.branch)
    return need.least if same else f"{need.branch}.{NEWEST}"
