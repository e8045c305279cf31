"""Speed and memory of `cudnn-doctor explain`, beside the measures that it is held to.

python -m tests.bench.bench_explain [FOLDER]     the logs are made in FOLDER (2.3 GB; default: the temporary folder)

Large logs: the same file by `grep -c -E` with the same alternatives, in turn; explain must reach half of grep's
throughput, in the same memory for 10 MB and 1 GB, and in time linear in the size. One ticket: at most 5 times
`python -c "import argparse, json, re"`: the rules of `check` judge what it states. Exit code 1 where a goal is missed.
Best of several runs: what else the machine does only adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cudnn_doctor.logs.patterns import write
from cudnn_doctor.logs.scan import alternatives

HERE = Path(__file__).parents[1] / "explain"
SIZES = (10_000_000, 100_000_000, 1_000_000_000)  # bytes
RUNS = 5
TICKET_RUNS = 25
GOAL_GREP = 0.5  # of grep's throughput on the largest log
GOAL_TICKET = 5.0  # times an interpreter that imports argparse, json and re
GOAL_LINEAR = 1.3  # times the size's ratio
# Prints the peak memory of the program itself: what a parent reads holds what the parent had before.
CHILD = """
import sys
from cudnn_doctor.__main__ import main
try:
    main()
finally:
    status = open("/proc/self/status").read()
    print(status[status.index("VmHWM"):].split()[1], file=sys.stderr)
"""


def log(size: int) -> Iterator[bytes]:
    """A long run: the true logs of provoked faults, each among the lines that training prints for hours."""
    faults = [p.read_bytes() for p in sorted((HERE / "logs").glob("*.log"))]
    step = total = 0
    while total < size:
        lines = []
        for _ in range(6000):
            step += 1
            numbers = (step // 5000, step % 5000 // 50, step % 5000, step // 3600, step // 60 % 60, 7 / step**0.5)
            lines.append(
                b"Epoch %d: %d%%|###| %d/5000 [%02d:%02d, 1.94it/s, loss=%.5f, v_num=3, lr=1.0e-4]\n" % numbers
            )
        for block in (*lines, faults[step // 6000 % len(faults)]):
            yield block[: size - total]
            total += len(block)


def make(path: Path, size: int) -> None:
    """Writes the log; one of the right size from an earlier run is kept."""
    if not path.exists() or path.stat().st_size != size:
        with path.open("wb", buffering=1 << 20) as file:
            file.writelines(log(size))


def seconds(words: list[str]) -> tuple[float, str]:
    """Wall time of a program and what it wrote on stderr."""
    start = time.perf_counter()
    # Through pipes: when it writes to /dev/null, grep stops at the first match.
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return time.perf_counter() - start, done.stderr


def large(folder: Path) -> bool:
    """Prints throughput and memory for each size; whether the goals are met."""
    best: dict[int, float] = {}
    peaks: dict[int, int] = {}
    ratio = 0.0
    for size in SIZES:
        path = folder / f"explain-{size // 1_000_000}MB.log"
        make(path, size)
        grep, ours = [], []
        for _ in range(RUNS):
            grep.append(seconds(["grep", "-c", "-E", alternatives(), str(path)])[0])
            took, told = seconds([sys.executable, "-c", CHILD, "explain", "--format", "json", str(path)])
            ours.append(took)
            peaks[size] = max(peaks.get(size, 0), int(told.split()[-1]))
        best[size] = min(ours)
        ratio = min(grep) / min(ours)
        print(  # noqa: T201
            f"{size / 1e6:.0f} MB: grep {min(grep):.3f} s, explain {min(ours):.3f} s "
            f"({size / 1e6 / min(ours):.0f} MB/s, {ratio:.2f} of grep's throughput), peak {peaks[size] / 1024:.1f} MiB"
        )
    small, big = SIZES[0], SIZES[-1]
    growth = best[big] / best[SIZES[1]] / (big / SIZES[1])
    print(f"{SIZES[1] / 1e6:.0f} MB to {big / 1e6:.0f} MB: time grew {growth:.2f} times as much as the size")  # noqa: T201
    print(f"peak memory of the largest: {peaks[big] / peaks[small]:.2f} times that of the smallest")  # noqa: T201
    return ratio >= GOAL_GREP and growth <= GOAL_LINEAR and peaks[big] < 1.5 * peaks[small]


def tickets() -> bool:
    """Prints the time of single tickets; whether the goal is met."""
    program = Path(sys.executable).parent / "cudnn-doctor"
    plain: list[float] = []
    ours: dict[str, list[float]] = {}
    names = [p.stem for p in sorted((HERE / "tickets").glob("*.txt"))][::16]
    for _ in range(TICKET_RUNS):
        plain.append(seconds([sys.executable, "-c", "import argparse, json, re"])[0])
        for name in names:
            words = [str(program), "explain", "--format", "json", str(HERE / "tickets" / f"{name}.txt")]
            ours.setdefault(name, []).append(seconds(words)[0])
    ratios = {name: min(times) / min(plain) for name, times in ours.items()}
    print(f"import argparse, json, re: {min(plain) * 1000:.0f} ms")  # noqa: T201
    print("one ticket: " + ", ".join(f"{n} {min(ours[n]) * 1000:.0f} ms ({r:.2f})" for n, r in ratios.items()))  # noqa: T201
    return max(ratios.values()) <= GOAL_TICKET


def main(arguments: list[str]) -> int:
    """Both measures."""
    folder = Path(arguments[0] if arguments else tempfile.gettempdir())
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    write()  # and what the build makes of the YAML
    met = [tickets(), large(folder)]
    return int(not all(met))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
