"""`--env` on environments with TensorFlow 2.17 and with torch: facts, winner and verdicts, without importing either."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Finding
from cudnn_doctor.probe import collect
from cudnn_doctor.probe.target_env import find_target_env
from cudnn_doctor.rules.judge import judge
from tests.probe.elf_builder import library, needs_gcc
from tests.probe.site import venv, wheel
from tests.probe.test_loader import TORCH_2_11, cudnn, tensorflow, torch, winners

pytestmark = needs_gcc
PARTS_8 = ("adv_infer", "adv_train", "cnn_infer", "cnn_train", "ops_infer", "ops_train")


def cudnn_wheel(site: Path, name: str, version: str, major: int, parts: tuple[str, ...]) -> Path:
    folder = cudnn(site / "nvidia/cudnn/lib", major, parts=parts)
    wheel(site, name, version, {f"nvidia/cudnn/lib/{p.name}": p.read_bytes() for p in folder.iterdir()})
    return folder


def examined(env: Path, environ: dict[str, str], root: Path) -> tuple[Examination, dict[tuple[str, str], Finding]]:
    facts = Examination(snapshot=collect(find_target_env(str(env), environ), environ, root=root))
    report = judge(facts, Options(live=False), date(2026, 12, 1))
    assert facts.snapshot.failures == ()
    assert not {"tensorflow", "torch", "jax"} & sys.modules.keys()
    return facts, {(f.code, f.subject): f for f in report.findings}


def test_tensorflow_2_17_with_its_own_cudnn_and_with_an_older_one_before_it(tmp_path: Path) -> None:
    site = venv(tmp_path / "env")
    own = cudnn_wheel(site, "nvidia-cudnn-cu12", "8.9.7.29", 8, PARTS_8)
    tensorflow(site)
    facts, findings = examined(tmp_path / "env", {}, tmp_path / "root")
    assert winners(facts.snapshot.resolutions, "libcudnn.so.8")["tensorflow"][0] == f"{own}/libcudnn.so.8"
    (copy,) = facts.snapshot.cudnn
    assert value_or(copy.version, "") == "8.9.7"
    assert {c: findings[c, "tensorflow 2.17.0"].status for c in ("CD302", "CD304", "CD406", "CD409")} == {
        "CD302": "ok",
        "CD304": "ok",
        "CD406": "ok",
        "CD409": "ok",
    }

    old = tmp_path / "old"
    cudnn(old, 8, parts=PARTS_8)
    (old / "libcudnn.so.8").rename(old / "libcudnn.so.8.5.0")
    (old / "libcudnn.so.8").symlink_to("libcudnn.so.8.5.0")
    facts, findings = examined(tmp_path / "env", {"LD_LIBRARY_PATH": str(old)}, tmp_path / "root")
    assert winners(facts.snapshot.resolutions, "libcudnn.so.8")["tensorflow"] == (
        f"{old}/libcudnn.so.8",
        "LD_LIBRARY_PATH",
    )
    assert findings["CD406", "tensorflow 2.17.0"].status == "problem"  # compiled with 8.9, would load 8.5


def test_torch_is_deaf_to_the_older_copy(tmp_path: Path) -> None:
    site = venv(tmp_path / "env")
    parts = ("graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled")
    own = cudnn_wheel(site, "nvidia-cudnn-cu12", "9.1.0.70", 9, parts)
    library(site / "nvidia/cublas/lib/libcublasLt.so.12", soname="libcublasLt.so.12")
    torch(site, TORCH_2_11)
    old = tmp_path / "old"
    cudnn(old, 9, parts=())
    facts, findings = examined(tmp_path / "env", {"LD_LIBRARY_PATH": str(old)}, tmp_path / "root")
    assert winners(facts.snapshot.resolutions)["torch"][0] == f"{own}/libcudnn.so.9"
    assert findings["CD302", "torch 2.11.0"].status == "ok"
    assert findings["CD406", "torch 2.11.0"].status == "ok"
