"""`python -m tests.bench.record_states ZIP`: the states of `tests.bench.broken` as recordings of the suite.

Each NAME.json of the zip becomes tests/recordings/states/NAME.json: a snapshot file, redacted, on one line, without
what only explains: the places of each search of the loader, requirements of packages, native calls that succeeded. What
the rules find must be the same before and after; where it is not, nothing is written.
"""

from __future__ import annotations

import sys
import zipfile
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import replace

from cudnn_doctor.model.base import Known
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Finding
from cudnn_doctor.recordings import load, snapshot_file
from cudnn_doctor.redact.redactor import Identity, redact
from cudnn_doctor.rules.judge import judge

STATES = Path(__file__).parent.parent / "recordings/states"
USERS = ("torch", "tensorflow", "jax", "cupy", "onnxruntime")
TODAY = date(2026, 12, 1)


def small(snapshot: Snapshot) -> Snapshot:
    """The snapshot without what only explains."""
    packages = snapshot.packages
    if isinstance(packages, Known):
        kept = (replace(p, requires=(), location="") for p in packages.value if p.name.startswith(("nvidia-", *USERS)))
        packages = replace(packages, value=tuple(kept))
    searches = tuple(replace(r, steps=()) for r in snapshot.resolutions)
    return replace(snapshot, packages=packages, resolutions=searches)


def brief(result: ScenarioResult) -> ScenarioResult:
    """What failed and what was noted; of calls that succeeded the first alone."""
    return replace(result, steps=tuple(s for s in result.steps if s.status != 0 or s.call == "cuInit"))


def problems(examined: Examination) -> list[Finding]:
    found = judge(examined, Options(), TODAY).findings
    return [replace(f, consequence_of="", evidence=()) for f in found if f.status == "problem"]


def main() -> None:
    STATES.mkdir(exist_ok=True)
    with zipfile.ZipFile(sys.argv[1]) as archive, TemporaryDirectory() as folder:
        for name in sorted(n for n in archive.namelist() if n != "summary.json"):
            examined = load(archive.extract(name, folder))
            clean = redact(snapshot_file(examined), Identity(users=("root",), homes=("/root",), hosts=()))[0]
            short = Examination(
                snapshot=small(clean.snapshot), scenarios=tuple(map(brief, clean.scenarios)), trials=clean.trials
            )
            if problems(short) != problems(replace(examined, replayed="")):
                raise SystemExit(f"{name}: other findings than before")
            (STATES / name).write_bytes(msgspec.json.encode(snapshot_file(short)) + b"\n")


if __name__ == "__main__":
    main()
