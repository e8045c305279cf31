"""The lines that `matrix` prints are those that were resolved and imported: tests/bench/lines.yaml against the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cudnn_doctor.matrix.solve import all_pythons, newest_python
from cudnn_doctor.model.versions import dotted
from tests.bench.check_lines import lines

DATA: dict[str, Any] = yaml.safe_load((Path(__file__).parent.parent / "bench" / "lines.yaml").read_text("utf-8"))
CUDA_LINKED = ("tensorflow-gpu==1.13.2",)  # cannot be imported without the toolkit


def told(part: str) -> Iterator[tuple[str, str, str]]:
    """Column, Python and requirements of a part of the data."""
    for words, columns in DATA[part].items():
        for column, ranges in columns.items():
            yield from ((column, dotted(python), words) for python in all_pythons(ranges))


@pytest.mark.parametrize("framework", ["tensorflow", "torch", "jax"])
def test_every_line_was_resolved_or_is_listed_as_open(framework: str) -> None:
    assert set(lines(framework)) <= set(told("resolved")) | set(told("not_asked"))


def test_nothing_is_both_resolved_and_open() -> None:
    assert not set(told("resolved")) & set(told("not_asked"))


def test_every_tensorflow_was_imported_on_its_newest_python() -> None:
    imported = {(words.partition(" ")[0], python) for words, python in DATA["imported"].items()}
    newest: dict[str, str] = {}
    for column, python, words in lines("tensorflow"):
        if column == "linux":
            name = words.partition(" ")[0]
            newest[name] = newest_python(f"{newest.get(name, python)} {python}")
    assert {n for n in newest.items() if n[0] not in CUDA_LINKED} <= imported


def test_a_line_with_a_constraint_was_imported_with_it() -> None:
    imported = {words.partition(" ")[0]: words.split(" ")[1:] for words in DATA["imported"]}
    for _, _, words in lines("tensorflow"):
        name, *pins = words.split(" ")
        if name not in CUDA_LINKED:
            wanted = {p for p in pins if not p.startswith("nvidia-")}
            assert wanted <= set(imported[name]), words
