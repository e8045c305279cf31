"""Every build of TensorFlow, PyTorch and JAX on 15 GPUs, 15 drivers, 10 Pythons and 3 machines: each way that the
solver could print is judged anew by other means. By hand: `python -m tests.bench.bench_matrix`. On 2026-12-01:
1,644,750 questions, 678,000 ways, none that does not hold, 28.5 s of processor time.
"""

from __future__ import annotations

import sys
from functools import cache
from time import process_time

from cudnn_doctor.matrix.builds import Catalog
from cudnn_doctor.matrix.compat import cudnn_for_gpu, driver_for_cuda, driver_for_gpu, service
from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.matrix.solve import Option, Solver, least_driver
from cudnn_doctor.matrix.target import Target
from cudnn_doctor.model.versions import in_python_range, numbers
from tests.matrix.test_solve import DRIVERS, GPUS, PLACES, PYTHONS

MATRIX = load_matrix()


@cache
def gpu_is_served(capabilities: tuple[str, ...], cc: str) -> bool:
    return service(capabilities, cc) != "none"


@cache
def driver_serves(cuda: str, driver: str, cc: str, system: str, ptx: bool) -> bool:
    known = driver_for_gpu(MATRIX, cc, driver, system=system).verdict
    return known == "ok" and driver_for_cuda(MATRIX, cuda, driver, system=system, ptx=ptx).verdict == "ok"


@cache
def cudnn_has_code(cudnn: str, cuda: str, cc: str, machine: str) -> bool:
    found = cudnn_for_gpu(MATRIX, cudnn, cc, flavour=numbers(cuda)[0], machine=machine)
    return found.verdict == "ok" or (found.verdict == "problem" and found.severity == "warning")


def faults(option: Option, target: Target) -> list[str]:
    """What speaks against a printed way, worked out from the tables one by one."""
    build, cc = option.build, target.capabilities[0]
    found = []
    if option.fit.verdict != "fits":
        found.append("undecided")
    if not build.gpu or build.pre:
        found.append("no GPU build, or a candidate")
    if not in_python_range(option.python or target.python or option.build.pythons.rpartition("-")[2], build.pythons):
        found.append("python")
    if build.capabilities and not gpu_is_served(build.capabilities, cc):
        found.append("code")
    if option.fit.line.cudnn and not cudnn_has_code(option.fit.line.cudnn, build.cuda, cc, build.machine):
        found.append("cudnn")
    driver = target.driver
    if "driver" in option.changes and option.driver:
        driver = least_driver(option.driver)
    ptx = bool(build.capabilities) and service(build.capabilities, cc) == "ptx"
    if driver and not driver_serves(build.cuda, driver, cc, target.driver_system, ptx):
        found.append("driver")
    return found


def run() -> bool:
    """Writes how many ways were judged, and those that do not hold; whether there are any."""
    start, asked, printed, wrong = process_time(), 0, 0, []
    for system, machine in PLACES:
        solver = Solver(Catalog(MATRIX, system, machine))
        builds = [b for f in ("tensorflow", "torch", "jax") for b in solver.catalog.builds(f)]
        for cc in GPUS:
            for driver in DRIVERS:
                for python in PYTHONS:
                    target = Target(system=system, machine=machine, capabilities=(cc,), driver=driver, python=python)
                    asked += len(builds)
                    for option in solver.ways(builds, target):
                        printed += 1
                        if why := faults(option, target):
                            wrong.append((option.build.requirement, cc, driver, python, why))
    seconds = process_time() - start
    lines = [f"{asked} questions, {printed} ways, {len(wrong)} that do not hold, {seconds:.1f} s of processor time"]
    sys.stdout.write("\n".join([*lines, *(" ".join(map(str, row)) for row in wrong[:20])]) + "\n")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(run())
