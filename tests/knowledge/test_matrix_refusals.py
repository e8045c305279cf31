"""Bad files: each is refused, and the message names the file, the table, the row and what it clashes with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cudnn_doctor.knowledge.load import HERE, parse_yaml
from cudnn_doctor.matrix import load as matrix_module
from cudnn_doctor.matrix.load import load_matrix, matrix_file, read
from cudnn_doctor.matrix.tables import MatrixError

SHIPPED = matrix_file().read_text()


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout whose compat_matrix.yaml the test may spoil."""
    (tmp_path / "cudnn_doctor" / "knowledge").mkdir(parents=True)
    monkeypatch.setattr(matrix_module, "HERE", tmp_path / "cudnn_doctor" / "knowledge")
    load_matrix.cache_clear()
    yield tmp_path / "compat_matrix.yaml"
    load_matrix.cache_clear()


FAULTS = [  # (what to replace, by what, words that the message must hold)
    ('version: "2.10",', "version: 2.10,", ["tensorflow, row 28", "Expected `str`, got `float`", "version"]),
    ('cuda: "12.5", cudnn: "9.3", wheel_cuda: "12.5.1"', 'cuda: "12.4", cudnn: "9.3", wheel_cuda: "12.5.1"',
     ["tensorflow, row '2.18'", "wheel_cuda 12.5.1", "tested cuda 12.4"]),
    ('cudnn_pin: "nvidia-cudnn-cu12==9.3.0.75"', 'cudnn_pin: "nvidia-cudnn-cu12==9.3.0.76"',
     ["tensorflow, row '2.18'", "nvidia-cudnn-cu12==9.3.0.76", "no such release in cudnn_wheels"]),
    ('cudnn_pin: "nvidia-cudnn-cu12==8.9.4.25"', 'cudnn_pin: "nvidia-cudnn-cu11==8.9.4.19"',
     ["tensorflow, row '2.15'", "for CUDA 11, the wheel for CUDA 12"]),
    ('cudnn_pin: "nvidia-cudnn-cu13==9.24.0.43"', 'cudnn_pin: "nvidia-cudnn-cu13==9.25.0.15"',
     ["torch, row '2.14'", "yanked in cudnn_wheels"]),
    ('cudnn_pin: "nvidia-cudnn-cu12==9.3.0.75"', 'cudnn_pin: "nvidia-cudnn-cu12==9.2.1.18"',
     ["tensorflow, row '2.18'", "older than built_cudnn 9.3"]),
    ('cudnn_pin: "nvidia-cudnn-cu12==9.3.0.75"', 'cudnn_pin: "cudnn 9.3"',
     ["tensorflow, row '2.18'", "names no distribution of cudnn_wheels"]),
    ('releases: "2.12.0 2.12.1"', 'releases: "2.12.0 2.13.1"',
     ["tensorflow, row '2.12'", "release 2.13.1 is not one of 2.12"]),
    ('built_cudnn: "8.6", capabilities', 'built_cudnn: "9.6", capabilities',
     ["tensorflow, row '2.12'", "built_cudnn 9.6 is of another major than cudnn 8.6"]),
    ("sm_70 sm_75 compute_80", "sm_70 sm_7.5 compute_80", ["tensorflow, row '2.4'", "capability 'sm_7.5'"]),
    ("sm_70 sm_75 compute_80", "sm_70 sm_77 compute_80", ["tensorflow, row '2.4'", "sm_77 has no row in gpus"]),
    ('python: "3.9-3.13"', 'python: "3.9 to 3.13"', ["tensorflow, row '2.20'", "python 'to'"]),
    ('{version: "2.21", releases', '{version: "2.20", releases', ["tensorflow, row 39", "'2.20'", "given before"]),
    ('{cuda: "12.2", linux: "535.54.03"', '{cuda: "12.2", linux: "525.54.03"',
     ["cuda, row '12.2'", "525.54.03 is not above that of CUDA 12.1, 530.30.02"]),
    ('{cuda: "12.2", linux: "535.54.03"', '{cuda: "12.2", linux: "536.54.03"',
     ["cuda, row '12.2'", "branch that branches does not have"]),
    ('{branch: "535", cuda: "12.2"', '{branch: "535", cuda: "12.1"',
     ["cuda, row '12.2'", "535 serves CUDA 12.1 by branches"]),
    ('{cuda: "12.8", base: "535"}', '{cuda: "12.8", base: "535 580"}',
     ["forward_compat, row '12.8'", "base 580 serves CUDA 12.8 without compat"]),
    ('{cuda: "12.8", base: "535"}', '{cuda: "12.8", base: "536"}',
     ["forward_compat, row '12.8'", "base 536 is not in branches"]),
    ('{major: "13", linux', '{major: "14", linux', ["minor_compat, row '14'", "CUDA 14 has no row in cuda"]),
    ('cudnn_min: "9.7", driver_min: "570.26"', 'cudnn_min: "seven", driver_min: "570.26"',
     ["gpus, row '10.0'", "cudnn_min 'seven' is not a version number"]),
    ('cuda_min: "6.5", cuda_max: "11.8"', 'cuda_min: "12.5", cuda_max: "11.8"',
     ["gpus, row '3.7'", "minimum 12.5 is above maximum 11.8"]),
    ('{cc: "8.7", arch', '{cc: "8.75", arch', ["gpu_names", "8.7 has no row in gpus"]),
    ('first: "9.11", last: "9.12", cuda: "12.0-12.9"', 'first: "9.10", last: "9.12", cuda: "12.0-12.9"',
     ["cudnn, row 'cu12 9.10'", "9.10 to 9.12 overlaps row 'cu12 9.7', 9.7 to 9.10"]),
    ('first: "9.11", last: "9.12", cuda: "12.0-12.9"', 'first: "9.13", last: "9.12", cuda: "12.0-12.9"',
     ["cudnn", "given before"]),
    ('first: "9.11", last: "9.12", cuda: "12.0-12.9"', 'first: "9.11", last: "9.12", cuda: "11.8"',
     ["cudnn, row 'cu12 9.11'", "CUDA 11.8 is not of the flavour cu12"]),
    ('sass: "75 80 90 100 120", ptx: "120"}', 'sass: "80 75 90 100 120", ptx: "120"}',
     ["cudnn, row 'cu12 9.11'", "not ascending"]),
    ('first: "9.21", last: "9.28", cuda: "12.0-12.9"', 'first: "9.21", last: "9.27", cuda: "12.0-12.9"',
     ["cudnn_wheels, row 'nvidia-cudnn-cu12'", "9.28.0.42, has no row in cudnn for CUDA 12"]),
    ('kind: full, first: "9.22", last: "9.28"', 'kind: full, first: "9.22", last: "9.27"',
     ["cudnn_wheels, row 'nvidia-cudnn-cu12'", "has no row in cudnn_files"]),
    ('yanked: "8.9.4.19"', 'yanked: "8.9.4.18"',
     ["cudnn_wheels, row 'nvidia-cudnn-cu11'", "yanked 8.9.4.18 is not among versions"]),
    ("8.5.0.96 8.6.0.163", "8.6.0.163 8.5.0.96", ["cudnn_wheels, row 'nvidia-cudnn-cu11'", "not ascending"]),
    ("rule: same-minor, confidence: B", "rule: guess, confidence: B", ["loader, row 1", "rule"]),
    ("gpus_min: 2", "gpus_least: 2", ["cautions, row 3", "gpus_least"]),
    ("severity: warning,", "severity: awful,", ["cautions, row 4", "severity"]),
    ("\nloader:\n  checked_on: 2026-11-30", "\nloader:\n  looked_at: 2026-11-30",
     ["table loader needs source, checked_on"]),
    ("\nloader:\n", "\nloaders:\n", ["there is no table 'loaders'", "loader"]),
    ("schema: cudnn-doctor/compat-matrix/1", "schema: cudnn-doctor/compat-matrix/9", ["not a compatibility matrix"]),
    ("\nloader:\n", "\nloader: [\n", ["not YAML", "line"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), FAULTS, ids=[f"{i}-{f[2][0]}" for i, f in enumerate(FAULTS)])
def test_a_bad_file_is_refused_by_row(shipped: Path, old: str, new: str, words: list[str]) -> None:
    assert old in SHIPPED
    shipped.write_text(SHIPPED.replace(old, new, 1))
    with pytest.raises(MatrixError) as error:
        load_matrix()
    for word in ["compat_matrix.yaml", *words]:
        assert word in str(error.value)


def test_the_unspoilt_file_is_taken(shipped: Path) -> None:
    shipped.write_text(SHIPPED)
    assert load_matrix().file == str(shipped)


def test_a_missing_table_is_named(shipped: Path) -> None:
    start, end = SHIPPED.index("\ncuda:\n"), SHIPPED.index("\nminor_compat:\n")
    shipped.write_text(SHIPPED[:start] + SHIPPED[end:])
    with pytest.raises(MatrixError, match=r"table cuda is missing"):
        load_matrix()


def test_a_row_that_is_no_mapping(shipped: Path) -> None:
    shipped.write_text(SHIPPED.replace('  - {major: "13", linux', '  - 13\n  - {major: "13", linux', 1))
    with pytest.raises(MatrixError, match=r"minor_compat, row 3: not a mapping: 13"):
        load_matrix()


# ---------------------------------------------------------------- keys given twice


@pytest.mark.parametrize("file", sorted((*HERE.glob("*.yaml"), matrix_file())), ids=lambda f: f.name)
def test_no_key_of_ours_is_given_twice(file: Path) -> None:
    assert parse_yaml(file.read_bytes(), unique=True) == parse_yaml(file.read_bytes())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("torch:\n  rows: []\njax:\n  rows: []\ntorch:\n", "line 6, the key 'torch' was given before, in line 2"),
        ("torch:\n  source: x\n  rows:\n  - version: '9.9'\n    cuda: '13'\n    version: '9.8'\n",
         "line 7, the key 'version' was given before, in line 5"),
        ("torch: &a {source: x}\njax: *a\ntorch: *a\n", "line 4, the key 'torch' was given before, in line 2"),
        ("torch: {rows: []}\n---\njax: {}\n",
         "line 3, expected a single document in the stream, but found another document"),
    ],
)  # fmt: skip
def test_a_key_given_twice_is_told_with_its_lines(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(f"schema: cudnn-doctor/compat-matrix/1\n{text}")
    with pytest.raises(MatrixError) as error:
        read(path)
    assert str(error.value) == f"{path}: not YAML: {told}"


def test_an_alias_is_no_second_key(tmp_path: Path) -> None:
    text = "a: &a {x: 1}\nb: [*a, *a]\nc: &c [*a, {x: *a}]\n"
    assert parse_yaml(text, unique=True) == {"a": {"x": 1}, "b": [{"x": 1}] * 2, "c": [{"x": 1}, {"x": {"x": 1}}]}
    assert parse_yaml("", unique=True) is None


# ---------------------------------------------------------------- a company's own rows

ACME = """\
schema: cudnn-doctor/compat-matrix/1
tensorflow:
  checked_on: 2027-02-01
  source: "ACME build farm, job 4711"
  rows:
  - {version: "2.15.0+acme", releases: "2.15.0+acme", python: "3.11", cuda: "12.4", cudnn: "9.1", built_cudnn: "9.1",
     wheel_cuda: "12.4", wheel_cudnn: "9", capabilities: "sm_70 sm_90", cudnn_pin: "nvidia-cudnn-cu12==9.1.0.70"}
  - {version: "2.21", releases: "2.21.0", cuda: "12.9", cudnn: "9.10", built_cudnn: "9.10", capabilities: sm_120}
"""


def test_own_rows_are_laid_over_and_keep_their_source(tmp_path: Path) -> None:
    own = tmp_path / "acme.yaml"
    own.write_text(ACME)
    matrix = load_matrix(own)
    row = matrix.framework("tensorflow", "2.15.0+acme")
    assert row is not None
    assert (row.built_cudnn, row.capabilities) == ("9.1", ("sm_70", "sm_90"))
    assert row.cited == "ACME build farm, job 4711"
    assert row.checked_on.isoformat() == "2027-02-01"
    replaced, kept = matrix.framework("tensorflow", "2.21.0"), matrix.framework("tensorflow", "2.15.1")
    assert replaced is not None
    assert kept is not None
    assert (replaced.cuda, replaced.cited) == ("12.9", "ACME build farm, job 4711")
    assert (kept.cuda, kept.built_cudnn) == ("12.2", "8.9")
    assert len(matrix.tensorflow) == len(load_matrix().tensorflow) + 1
    assert matrix.checked_on == "2026-11-30"  # the oldest counts


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'cudnn_pin: "nvidia-cudnn-cu12==9.1.0.70"',
            'cudnn_pin: "nvidia-cudnn-cu12==9.1.0.71"',
            ["row '2.15.0+acme'", "no such release"],
        ),
        ('cuda: "12.4", cudnn: "9.1"', 'cuda: "12.7", cudnn: "9.1"', ["row '2.15.0+acme'", "12.7"]),
        ("  checked_on: 2027-02-01\n", "", ["table tensorflow needs source, checked_on"]),
        ("tensorflow:\n", "tensorflo:\n", ["there is no table 'tensorflo'"]),
        ('version: "2.21"', "versoin: 2", ["tensorflow, row 2 (versoin: 2"]),
    ],
)
def test_own_rows_are_checked_alike(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    own = tmp_path / "acme.yaml"
    assert old in ACME
    own.write_text(ACME.replace(old, new, 1))
    with pytest.raises(MatrixError) as error:
        load_matrix(own)
    for word in [str(own), *words]:
        assert word in str(error.value)


def test_own_patterns_are_checked(tmp_path: Path) -> None:
    own = tmp_path / "acme.yaml"
    own.write_text(
        "schema: cudnn-doctor/compat-matrix/1\ngpu_names:\n  checked_on: 2027-02-01\n  source: here\n"
        "  rows:\n  - {cc: '9.0', regex: 'ACME ('}\n"
    )
    with pytest.raises(MatrixError, match=r"acme\.yaml: gpu_names, row '9\.0 ACME \(': not a regular expression"):
        load_matrix(own)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"none\.yaml: cannot be read: No such file"):
        load_matrix(tmp_path / "none.yaml")
