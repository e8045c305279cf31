"""The minimal program of CD653 (tests/native/shared_plan.c) on the stub: it sees a plan that must not be shared, and no
other. On a GPU: `shared_plan LIBCUDNN`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.engines.stub import stub

SOURCE = Path(__file__).parents[1] / "native" / "shared_plan.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("program") / "shared_plan"
    subprocess.run(["cc", "-O1", "-w", "-o", target, SOURCE, "-ldl", "-lpthread"], check=True)
    return target


@pytest.mark.parametrize(("faults", "wrong"), [("", []), ("3:race", [3])])
def test_it_counts_the_plans_that_must_not_be_shared(program: Path, faults: str, wrong: list[int]) -> None:
    paths = stub()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(paths.cuda.parent), "STUB_ENGINES": faults}
    done = subprocess.run(
        [program, paths.cudnn, "10"], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    first, *plans, last = done.stdout.splitlines()
    assert first == "cuDNN 91900, 10 rounds"
    assert len(plans) == 14
    assert [i for i, line in enumerate(plans) if not line.endswith("with a shared plan 0")] == wrong
    assert all("wrong with a plan each 0," in line for line in plans)
    assert last == f"14 plans: shared, {len(wrong)} wrong; a plan each, 0 wrong"
