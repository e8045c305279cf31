"""Times of `cudnn-doctor engines` on this machine: the quick form against its goal, and what the harness itself costs.

python -m tests.bench.bench_engines LIBCUDNN [PRELOAD ...]     three quick runs; exit 1 above 10 s
python -m tests.bench.bench_engines                            no GPU: the harness on the stub, milliseconds a plan
"""

from __future__ import annotations

import sys
import time
from statistics import median

from cudnn_doctor.engines.run import run
from cudnn_doctor.model.engines import EngineOptions

GOAL_S = 10.0  # the quick form on one H200


def main(arguments: list[str]) -> int:
    """Prints the times; the exit code says whether the goal was met."""
    if not arguments:
        return harness()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        report = run(EngineOptions(cudnn=arguments[0], preload=tuple(arguments[1:]), quick=True))
        times.append(time.perf_counter() - start)
        print(f"{times[-1]:.2f} s, {report.totals.plans} plans, {report.verdict}: {report.reason}")  # noqa: T201
    print(f"median {median(times):.2f} s, goal {GOAL_S} s")  # noqa: T201
    return int(median(times) > GOAL_S or report.verdict != "ok")


def harness() -> int:
    """All four tests of plans that cost nothing: what is left is Python and the wire."""
    from tests.engines.stub import stub

    paths = stub()
    start = time.perf_counter()
    options = EngineOptions(cudnn=str(paths.cudnn), preload=(str(paths.cuda),), operations=("attention",), width=1)
    report = run(options)
    ms = (time.perf_counter() - start) * 1000
    print(f"{ms / report.totals.plans:.2f} ms a plan ({report.totals.plans} plans, {ms:.0f} ms)")  # noqa: T201
    return int(report.verdict != "ok")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
