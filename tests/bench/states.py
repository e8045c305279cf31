"""`python -m tests.bench.states --floor FLOOR [--cudnn LIB] [-n 5]`: the live commands beside the same calls in C.

FLOOR is bench/floor.c compiled. Runs alternate, so that a busy machine slows all alike; medians of wall time. Goals:
the live check at most 1.5 times `floor conv`, the harmless states at most 3 times `floor`, all states at most 15 times.
The last row bounds what a fork server could save: children that do nothing, as many at once as all states need.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from cudnn_doctor.live.parent import Job, Task, run_jobs
from cudnn_doctor.scenarios import scenarios


def command(*words: str) -> Callable[[], None]:
    def run() -> None:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    return run


def idle(children: int) -> Callable[[], None]:
    task = Task(id="idle", body="tests.live.bodies:count", args={"add": 1})

    def run() -> None:
        run_jobs([Job(tasks=(task,))] * children, deadline=60.0)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--floor", required=True)
    parser.add_argument("--cudnn", required=True)
    parser.add_argument("-n", type=int, default=5)
    given = parser.parse_args()
    doctor = (sys.executable, "-m", "cudnn_doctor")
    harmless = [w for k, (_, s) in scenarios().items() if s.danger == "harmless" for w in ("--scenario", k)]
    states = (*doctor, "reproduce", "--cudnn", given.cudnn, "--format", "json")
    alone = sum(not s.shares_a_child for _, s in scenarios().values())
    rows: dict[str, tuple[Callable[[], None], str]] = {
        "floor": (command(given.floor, given.cudnn), ""),
        "floor conv": (command(given.floor, given.cudnn, "conv"), ""),
        "check": (command(*doctor, "check", "--format", "json"), "floor conv"),
        "harmless states": (command(*states, *harmless), "floor"),
        "default states": (command(*states), "floor"),
        "all states": (command(*states, "--faults", "--memory"), "floor"),
        f"{alone} idle children": (idle(alone), "all states"),
    }
    times: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(given.n):
        for name, (run, _against) in rows.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    for name, (_, against) in rows.items():
        middle = statistics.median(times[name])
        ratio = f"{middle / statistics.median(times[against]):.2f} times {against}" if against else ""
        low, high = min(times[name]) * 1000, max(times[name]) * 1000
        sys.stdout.write(f"{name:20} {middle * 1000:7.0f} ms ({low:.0f} to {high:.0f})  {ratio}\n")


if __name__ == "__main__":
    main()
