"""Processes by /proc alone."""

from __future__ import annotations

from pathlib import Path

from cudnn_doctor.probe.processes import parent_of


def test_the_parent_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/stat").write_text("7 (a) name) S 42 7 7 0 -1")
    assert parent_of(tmp_path, 7) == 42
    assert parent_of(tmp_path, 8) is None
