"""How long `merge` takes and how much memory it needs: 10,000 reports at most 10 s and 300 MB, linear from 100 on, all
planted outliers found and none invented. `python -m tests.bench.bench_merge [NUMBER ...]`; needs 1.9 GB of disk for
10,000 reports, in $TMPDIR."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.merge.fleet_of import fleet


def main(numbers: list[int]) -> None:
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            planted = {}
            for name, section, data in fleet(number):
                Path(folder, f"{name}.json").write_bytes(data)
                if section:
                    planted[name] = section
            start = time.perf_counter()
            command = [sys.executable, "-m", "cudnn_doctor", "merge", folder, "--format", "json"]
            done = subprocess.run(command, capture_output=True, check=True)
            seconds = time.perf_counter() - start
        picture = json.loads(done.stdout)
        found = {
            n["name"]: section["name"]
            for n in picture["nodes"]
            for section, group in zip(picture["sections"], n["groups"], strict=True)
            if group >= 0 and section["groups"][group]["role"] == "different"
        }
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        exact = "exact" if found == planted else f"WRONG: {len(found)} found"
        sys.stdout.write(
            f"{number} reports: {seconds:.2f} s, {seconds / number * 1000:.2f} ms each, at most {peak:.0f} MB, "
            f"{len(planted)} outliers planted, {exact}\n"
        )


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]] or [100, 1_000, 10_000])
