"""Broken states made on an H200 (tests/bench/broken.py), replayed: one cause, the right one, and what its trial proved.

Driver 580.159.04, torch 2.11 with cuDNN 9.19.0 of its wheel and Debian's cuDNN 9.14.0, 2026-12-01.
"""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path

import pytest

from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Report
from cudnn_doctor.model.verdict import heading
from cudnn_doctor.recordings import load
from cudnn_doctor.render import render, summary
from cudnn_doctor.rules.judge import judge

STATES = Path(__file__).parent / "recordings/states"
TODAY = date(2026, 12, 1)
PARTS = ("adv", "cnn", "engines_precompiled", "engines_runtime_compiled", "graph", "heuristic", "ops")
CUT = ("cnn", "engines_precompiled", "graph", "heuristic", "ops", "libcudnn")
LEAVE = "export LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib"
UNSET = "unset CUDA_VISIBLE_DEVICES"
# State: the one cause, its first cure (its command, or a word of its text), and whether that was proved.
BROKEN: dict[str, tuple[str, str, str]] = {
    **{f"missing-{part}": ("CD307", LEAVE, "proved") for part in PARTS},
    **{f"cut-{part}": ("CD312", LEAVE, "proved") for part in CUT},
    "foreign-ops": ("CD306", LEAVE, "proved"),
    "foreign-graph": ("CD306", LEAVE, "proved"),
    "lone-foreign-ops": ("CD307", LEAVE, "proved"),
    "path-on-system-cudnn": ("CD306", LEAVE, "proved"),
    "preload-system-cudnn": ("CD508", "unset LD_PRELOAD", "proved"),
    "stub-libcuda": ("CD113", LEAVE, "proved"),
    "empty-libcuda": ("CD111", LEAVE, "proved"),
    "force-ptx": ("CD513", "unset CUDA_FORCE_PTX_JIT", "proved"),
    **{f"visible-{n}": ("CD501", UNSET, "proved") for n in ("hidden", "no-such-device", "device-twice", "bad-name")},
    "mask-nvidia-uvm": ("CD108", "Start the container anew", ""),
    "mask-uvm-by-file": ("CD108", "Start the container anew", ""),
    "mask-nvidiactl": ("CD106", "Start the container anew", ""),
    "mask-nvidia0": ("CD106", "Start the container anew", ""),
    "mask-all": ("CD106", "Start the container anew", ""),
    "address-space-4g": ("CD514", "ulimit -v unlimited", "not-tried"),
    "address-space-soft-4g": ("CD514", "ulimit -v unlimited", "proved"),
    "open-files-24": ("CD507", "ulimit -n 4096", "not-tried"),
    "open-files-28": ("CD507", "ulimit -n 4096", "not-tried"),
    "open-files-40": ("CD507", "ulimit -n 4096", "not-tried"),
    "open-files-60": ("CD507", "ulimit -n 4096", "not-tried"),
    "open-files-soft-24": ("CD507", "ulimit -n 4096", "proved"),
    "full-gpu": ("CD201", "Look at the processes", ""),
}
TWO = {"two-faults": ("CD307", "CD513")}
NAMES = sorted(p.stem for p in STATES.glob("*.json"))
SOUND = sorted(set(NAMES) - set(BROKEN) - set(TWO))


@cache
def report(name: str) -> Report:
    return judge(load(str(STATES / f"{name}.json")), Options(), TODAY)


def test_the_table_and_the_recordings_agree() -> None:
    assert {*BROKEN, *TWO} <= set(NAMES)
    assert len(BROKEN) >= 30
    assert "healthy" in SOUND
    assert max(p.stat().st_size for p in STATES.glob("*.json")) < 60_000


@pytest.mark.parametrize("name", BROKEN)
def test_one_cause_and_its_cure(name: str) -> None:
    code, cure, outcome = BROKEN[name]
    found = report(name)
    causes = summary.causes(found, "error", "warning")
    assert [c.finding.code for c in causes] == [code]
    first = causes[0].finding.fixes[0]
    assert first.command == cure or first.text.startswith(cure)
    assert (first.proof.outcome if first.proof else "") == outcome
    assert found.reason.startswith(f"{code} ")
    assert found.exit_code == 1
    if outcome == "proved":
        assert first.proof
        assert first.proof.text in render(found, "markdown").replace("\\", "")


@pytest.mark.parametrize("name", [*BROKEN, *TWO])
def test_nothing_is_said_twice(name: str) -> None:
    found = report(name)
    shown = summary.causes(found, "error", "warning", "note")
    titles = [t for c in shown for t in (c.heading, *map(heading, c.consequences))]
    assert len(titles) == len(set(titles)), titles
    causes = summary.causes(found, "error", "warning")
    assert len(render(found, "quiet").splitlines()) == len(causes)


@pytest.mark.parametrize("name", TWO)
def test_two_faults_are_two_causes(name: str) -> None:
    causes = summary.causes(report(name), "error", "warning")
    assert tuple(c.finding.code for c in causes) == TWO[name]
    proofs = [c.finding.fixes[0].proof for c in causes]
    assert all(p and p.outcome == "partly" and "proved together with" in p.text for p in proofs), proofs


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_machine_with_odd_variables_is_sound(name: str) -> None:
    found = report(name)
    assert (found.verdict, found.trials) == ("ok", ())


def test_what_cudnn_logs_is_one_line() -> None:
    (note,) = (f for f in report("cudnn-log").findings if f.code == "CD610" and f.status == "problem")
    assert note.title.startswith("cuDNN logs ")
    assert all("\n" not in e.value for e in note.evidence)
