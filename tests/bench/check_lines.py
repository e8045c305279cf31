"""Resolves every line for PyPI that `matrix` can print, for each Python and system that it is said for, with uv's
resolver and wheels alone; the result is tests/bench/lines.yaml. It needs uv and PyPI, nothing is installed. By hand:

    python -m tests.bench.check_lines --of tensorflow --minutes 20 > new.json

Builds of download.pytorch.org are not asked for: its index lists gigabytes, and was out of reach on 2026-12-01.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from cudnn_doctor.matrix.builds import Catalog
from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.matrix.solve import Solver, all_pythons
from cudnn_doctor.matrix.target import Target
from cudnn_doctor.model.versions import dotted
from tests.matrix.test_solve import GPUS, PLACES

PLATFORMS = {
    ("linux", "x86_64"): ("linux", "x86_64-manylinux_2_28"),
    ("linux", "aarch64"): ("aarch64", "aarch64-manylinux_2_28"),
    ("windows", "x86_64"): ("windows", "x86_64-pc-windows-msvc"),
}
LEAST = (3, 7)  # uv resolves for no older Python
Line = tuple[str, str, str]  # column of `pythons`, Python, requirements


def lines(framework: str) -> Iterator[Line]:
    """The newest patch of each minor, with the pins for each GPU; the newest Python first."""
    matrix, found = load_matrix(), set[Line]()
    for system, machine in PLACES:
        solver = Solver(Catalog(matrix, system, machine))
        builds = [b for b in solver.catalog.newest_patches(framework) if not b.index]
        for cc in GPUS:
            target = Target(system=system, machine=machine, capabilities=(cc,))
            for option in solver.ways(builds, target):
                words = " ".join(option.fit.line.arguments)
                for python in all_pythons(option.build.pythons):
                    if python >= LEAST:
                        found.add((PLATFORMS[system, machine][0], dotted(python), words))
    yield from sorted(found, key=lambda x: (x[2], [int(n) for n in x[1].split(".")]), reverse=True)


def resolved(line: Line) -> str:
    """ "ok", or what uv says."""
    column, python, words = line
    platform = next(p for c, p in PLATFORMS.values() if c == column)
    command = ["uv", "pip", "compile", "-q", "--no-header", "--only-binary", ":all:", "--python-version", python]
    try:
        ran = subprocess.run(
            [*command, "--python-platform", platform, "-"],
            input="\n".join(words.split(" ")), text=True, capture_output=True, timeout=300, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "no answer in 300 s"
    return "ok" if ran.returncode == 0 else " ".join(ran.stderr.split())[-300:]


def run(framework: str, minutes: float, known: dict[str, str]) -> dict[str, str]:
    """The results by "column|Python|requirements"; those that are known are not asked for again."""
    end = monotonic() + 60 * minutes

    def one(line: Line) -> None:
        key = "|".join(line)
        if known.get(key) != "ok" and monotonic() < end:
            known[key] = resolved(line)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(one, lines(framework)))
    return known


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", default="tensorflow", choices=("tensorflow", "torch", "jax"))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--known", help="a file with earlier results")
    asked = parser.parse_args()
    earlier = {}
    if asked.known:
        with open(asked.known, encoding="utf-8") as file:
            earlier = json.load(file)
    sys.stdout.write(json.dumps(run(asked.of, asked.minutes, earlier), indent=0) + "\n")
