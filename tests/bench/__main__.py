"""`python -m tests.bench [--floor FLOOR] [-n 15]`: start-up and run time of the commands, each beside its yardstick.

Goals: `check` without a GPU at most 3 times the imports that any such tool needs; `explain` of one ticket at most 2.5
times; live `check` at most 1.5 times FLOOR (floor.c compiled: the same calls in C), and ten times faster than
`python -m torch.utils.collect_env`. Columns: median, minimum, and the ratio of both to the yardstick's; the goal is for
the minima. Exit code 1 when one is missed. Measure an installed wheel: bench_start.py says why.

The other benches need more and have their own command line:
    python -m tests.bench.bench_engines LIBCUDNN       `engines --quick` against 10 s, on a GPU
    python -m tests.bench.bench_engines                what its harness costs, on stubs
    python -m tests.bench.bench_matrix                 every way that `matrix` could print, judged by other means
    python -m tests.bench.states --floor FLOOR --cudnn LIBCUDNN      `reproduce` beside the floor, on a GPU
"""

from __future__ import annotations

import argparse

from tests.bench import bench_start


def main() -> int:
    """Parses and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--floor", default="", help="tests/bench/floor.c compiled")
    parser.add_argument("-n", type=int, default=15, help="runs of each")
    given = parser.parse_args()
    return bench_start.main(given.floor, given.n)


if __name__ == "__main__":
    raise SystemExit(main())
