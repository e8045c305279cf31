"""`cudnn-doctor merge` as a user has it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from cudnn_doctor.schemas import path_of
from tests._cli import command, environment
from tests.merge import fleet_of

HOSTILE = 'x"><script>alert(1)</script>\x1b[31m'


def merge(*words: str | Path, stdin: bytes = b"") -> tuple[int, str, str]:
    start = command("merge", *words)
    done = subprocess.run(start, input=stdin, capture_output=True, env=environment(), timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """n1 to n5: n3 has a problem, n4 another driver, n5 a file that ends early."""
    for name in ("n1", "n2", "n3", "n4"):
        document = fleet_of.report(name)
        if name == "n3":
            fleet_of.bad(document)
        if name == "n4":
            fleet_of.OUTLIERS[0][1](document)
            document["snapshot"]["host"]["environment"]["CUDA_HOME"] = HOSTILE
        (tmp_path / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    (tmp_path / "n5.json").write_text('{\n "schema": "cudnn-doctor/report/1",')
    return tmp_path


def test_text(folder: Path) -> None:
    code, out, err = merge(folder, "--nodes", "n[1-6]")
    assert (code, err) == (1, "")
    lines = [line.split(None, 1)[1] for line in out.splitlines() if line.startswith("[")]
    assert lines[:5] == [
        "n3: has a problem, differs in Findings: CD601 GPU 0: cudnnCreate fails",
        "n5: unreadable: it ends early, after 37 bytes",
        "n6: not reached: no report came for it",
        "n4: well, differs in Driver, Variables",
        "n[1-2] (2): well",
    ]
    assert "    version: 570.86.15, not 580.159.04\n" in out
    assert out.splitlines()[-1] == "PROBLEM (exit code 1): 3 ok, 1 problem, 1 unreadable, 1 not-reached."
    assert "\x1b" not in out


def test_json_is_what_the_schema_says(folder: Path) -> None:
    code, out, _ = merge(folder, "--format", "json")
    document = json.loads(out)
    jsonschema.Draft202012Validator(json.loads(path_of("fleet-1").read_text())).validate(document)
    assert (code, document["exit_code"], document["schema"]) == (1, 1, "cudnn-doctor/fleet/1")


def test_junit(folder: Path) -> None:
    _, out, _ = merge(folder, "--format", "junit")
    root = ElementTree.fromstring(out)  # noqa: S314 - our own
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "2", "1")
    assert [c.get("name") for c in root.iter("testcase") if c.find("failure") is not None] == ["exit code 1", "n3"]


def test_prometheus(folder: Path) -> None:
    _, out, _ = merge(folder, "--format", "prometheus")
    assert 'cudnn_doctor_node_up{node="n3"} 0\n' in out
    assert 'cudnn_doctor_node_differs{node="n4",section="driver"} 1\n' in out
    assert 'cudnn_doctor_fleet_problem_nodes{code="CD601",severity="error",owner="node"} 1\n' in out
    samples = [line for line in out.splitlines() if not line.startswith("#")]
    assert len({line.rpartition(" ")[0] for line in samples}) == len(samples)  # no series twice


def test_markdown_and_html_show_hostile_values_as_text(folder: Path) -> None:
    for form in ("markdown", "html"):
        _, out, _ = merge(folder, "--format", form)
        assert "<script>" not in out.replace("`", "") or form == "markdown"
        assert "\x1b" not in out
    assert out.count("<tr>") > 5
    assert "&lt;script&gt;" in out


def test_stdin_and_output(folder: Path, tmp_path: Path) -> None:
    data = b"".join(
        b"".join(f"{n}: ".encode() + line for line in (folder / f"{n}.json").read_bytes().splitlines(keepends=True))
        for n in ("n1", "n2")
    )
    code, _, err = merge("-", "-o", tmp_path / "fleet.html", "--format", "html", stdin=data)
    assert (code, err) == (0, f"cudnn-doctor: written to {tmp_path / 'fleet.html'}\n")
    assert "2 nodes" in (tmp_path / "fleet.html").read_text()


def test_expect_accepts_the_siblings_and_names_the_one_changed_package(folder: Path, tmp_path: Path) -> None:
    golden = tmp_path / "golden"
    golden.write_bytes((folder / "n1.json").read_bytes())
    document = json.loads((folder / "n2.json").read_text())
    fleet_of.OUTLIERS[1][1](document)
    (folder / "n2.json").write_text(json.dumps(document))
    words = (folder / "n1.json", folder / "n2.json", "--expect", golden)
    code, out, _ = merge(*words)
    assert code == 0
    assert out.count("not 9.19.0.56") == 1
    assert "    nvidia-cudnn-cu13: 9.14.0.64, not 9.19.0.56\n" in out
    assert "compared with golden (--expect)" in out
    assert merge(*words, "--fail-on", "difference")[0] == 1


def test_a_snapshot_is_judged_as_check_would(tmp_path: Path) -> None:
    (tmp_path / "n1.json").write_bytes((fleet_of.RECORDINGS / "h200-two-gpus.json").read_bytes())
    code, out, _ = merge(tmp_path, "--format", "json")
    assert code == 0
    (problem,) = json.loads(out)["problems"]
    assert (problem["code"], bool(problem["fixes"])) == ("CD413", True)


def test_redacted_no_name_of_a_node_is_left_and_the_groups_are_the_same(folder: Path) -> None:
    _, plain, _ = merge(folder, "--nodes", "n[1-6]", "--format", "json")
    for name in ("n1", "n2", "n3", "n4", "n5"):
        text = (folder / f"{name}.json").read_text().replace(f"/{name}/", f"/secret-{name}/")
        (folder / f"secret-{name}.json").write_text(text)
        (folder / f"{name}.json").unlink()
    _, out, _ = merge(folder, "--nodes", "secret-n[1-6]", "--format", "json", "--redact")
    assert "secret" not in out
    before, after = json.loads(plain), json.loads(out)
    assert [n["name"] for n in after["nodes"]] == [f"node-{i}" for i in range(1, 7)]
    assert [n["groups"] for n in after["nodes"]] == [n["groups"] for n in before["nodes"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "nowhere is not there"),
        ((".", "--expect", "nowhere.json"), "--expect nowhere.json: No such file or directory."),
        ((".", "--quorum", "some"), "--quorum some: it takes a number of nodes"),
        ((".", "--nodes", "n[1-"), "'n[1-' is not a set of nodes"),
    ],
)
def test_wrong_usage_is_told_and_exits_2(words: tuple[str, ...], said: str, folder: Path) -> None:
    code, out, err = merge(*(folder if w == "." else w for w in words))
    assert (code, out) == (2, "")
    assert said in err
