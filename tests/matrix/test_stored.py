"""The compiled matrix is that of the YAML, and gives way to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudnn_doctor.matrix import stored as module
from cudnn_doctor.matrix.load import matrix_file, read_matrix


def test_the_compiled_matrix_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE", tmp_path / "compiled.json")
    assert module.stored(matrix_file()) is None  # not made yet
    matrix = read_matrix(matrix_file())
    module.write(matrix_file(), matrix)
    assert module.stored(matrix_file()) == matrix


def test_another_yaml_or_a_broken_file_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE", tmp_path / "compiled.json")
    module.write(matrix_file(), read_matrix(matrix_file()))
    changed = tmp_path / "compat_matrix.yaml"
    changed.write_bytes(matrix_file().read_bytes() + b"# a remark\n")
    assert module.stored(changed) is None
    module.FILE.write_text("{")
    assert module.stored(matrix_file()) is None
