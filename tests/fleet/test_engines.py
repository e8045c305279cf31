"""The engines over programs that stand in for sinfo, srun, clush and ssh: each does what the real one did in the runs
named in the adapters (Slurm 22.05.8 with 8 slurmd on one host, clush 1.9.1, 2026-12-01)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cudnn_doctor.fleet.kubernetes import manifest
from cudnn_doctor.fleet.ray_ import _nodes
from cudnn_doctor.fleet.ray_task import task
from cudnn_doctor.model.errors import UsageError
from tests._cli import command, environment
from tests.merge import fleet_of

# On a node: n3 exits 7, n4 hangs, n5 has another driver, all others a report.
PROGRAM = """#!/bin/sh
out=/dev/stdout
[ "$4" = --output ] && out=$5
case $SLURMD_NODENAME in
  n3) echo "ImportError: msgspec" >&2; exit 7;;
  n4) exec sleep 60;;
  n5) cat {folder}/other > $out;;
  *) cat {folder}/good > $out;;
esac
"""
# One node alone works but n7; a step with n7 in it ends with 233 before n8 began.
SRUN = """#!/bin/sh
echo "$*" >> {folder}/srun.log
for word in "$@"; do case $word in --nodelist=*) list=${{word#--nodelist=}};; esac; done
while [ "$1" != sh ]; do shift; done
case $list in
  n7) echo "srun: error: Unable to allocate resources: Requested nodes are busy" >&2; exit 1;;
  n[1-8]|"n[1-5]") nodes=$(case $list in "n[1-5]") echo n1 n2 n3 n4 n5;; *) echo $list;; esac)
     for n in $nodes; do SLURMD_NODENAME=$n "$@" & done; wait; exit 7;;
  *) for n in n1 n2 n3 n5 n6; do SLURMD_NODENAME=$n "$@" & done; wait
     echo "srun: error: Task launch for StepId=3.0 failed on node n7: Communication connection failure" >&2
     exit 233;;
esac
"""
SINFO = '#!/bin/sh\nfor n in 1 2 3 4 5 6 7 8; do echo "n$n idle"; done; echo "n9 down*"; echo "n10 allocated"\n'
CLUSH = """#!/bin/sh
for n in n1 n2 n3 n5; do
  SLURMD_NODENAME=$n {folder}/program check --format json 2>{folder}/err | sed "s/^/$n: /"
  [ $n = n3 ] && sed "s/^/n3: /" {folder}/err >&2 && echo "clush: n3: exited with exit code 7" >&2
done
echo "clush: n4: command timeout" >&2
echo "n6: ssh: connect to host n6 port 22: No route to host" >&2
echo "clush: n6: exited with exit code 255" >&2
"""
SSH = """#!/bin/sh
shift 4
case $1 in n6) echo "ssh: connect to host n6 port 22: No route to host" >&2; exit 255;; esac
SLURMD_NODENAME=$1 {folder}/program check --format json
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    good, other = fleet_of.report("x"), fleet_of.report("x")
    fleet_of.OUTLIERS[0][1](other)
    (tmp_path / "good").write_text(json.dumps(good, indent=2) + "\n")
    (tmp_path / "other").write_text(json.dumps(other, indent=2) + "\n")
    (tmp_path / "bin").mkdir()
    programs = {"bin/sinfo": SINFO, "bin/srun": SRUN, "bin/clush": CLUSH, "bin/ssh": SSH, "program": PROGRAM}
    for name, text in programs.items():
        (tmp_path / name).write_text(text if name == "bin/sinfo" else text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    return tmp_path


def fleet(cluster: Path, engine: str, *words: str | Path) -> tuple[dict[str, Any], str]:
    path = f"{cluster / 'bin'}:{os.environ['PATH']}"
    line = command("fleet", engine, "--program", cluster / "program", "--format", "json", *words)
    env = environment(PATH=path, SLURM_JOB_ID=None)
    done = subprocess.run(line, capture_output=True, env=env, cwd=cluster, timeout=60, check=False)
    assert done.returncode in (0, 1, 2), done.stderr
    return json.loads(done.stdout), done.stderr.decode()


def rows(picture: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {n["name"]: (n["state"], n["reason"]) for n in picture["nodes"]}


def test_slurm_with_a_dead_slurmd_a_failing_task_and_nodes_that_sinfo_gives_up(cluster: Path) -> None:
    picture, said = fleet(cluster, "slurm", "--timeout", "3", "--nodes", "n[1-3,5-10]")
    found = rows(picture)
    assert {n: found[n] for n in ("n3", "n7", "n9", "n10")} == {
        "n3": ("failed", "exit 7 without a report: ImportError: msgspec"),
        "n7": ("not-reached", "Communication connection failure"),
        "n9": ("not-reached", "Slurm says down*"),
        "n10": ("busy", "Slurm says allocated"),
    }
    assert [n for n, (state, _) in found.items() if state == "ok"] == ["n1", "n2", "n5", "n6", "n8"]
    assert "the step failed on a node (exit 233); each by itself: n[7-8]" in said
    assert "cudnn-doctor: srun --nodes=7 --ntasks=7 --ntasks-per-node=1 '--nodelist=n[1-3,5-8]'" in said
    assert picture["exit_code"] == 2
    assert not list(cluster.glob(".cudnn-doctor-*"))  # the reports are removed


def test_a_straggler_does_not_block_the_picture(cluster: Path) -> None:
    picture, _ = fleet(cluster, "slurm", "--timeout", "2", "--nodes", "n[1-5]", "--reports", cluster / "kept")
    assert rows(picture)["n4"] == ("timed-out", "it began and gave no report in time")
    assert [n for n, (state, _) in rows(picture).items() if state == "ok"] == ["n1", "n2", "n5"]
    assert sorted(p.name for p in (cluster / "kept").glob("*.json")) == ["n1.json", "n2.json", "n5.json"]


def test_inside_an_allocation_the_step_overlaps(cluster: Path) -> None:
    path = f"{cluster / 'bin'}:{os.environ['PATH']}"
    env = environment(PATH=path, SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n8")
    line = command("fleet", "slurm", "--program", cluster / "program", "--engine-options", "--gres=gpu:8")
    done = subprocess.run(line, capture_output=True, env=env, cwd=cluster, timeout=60, check=False)
    assert done.returncode == 0
    first = (cluster / "srun.log").read_text().splitlines()[0].split()
    assert {"--overlap", "--gres=gpu:8", "--nodelist=n8", "--kill-on-bad-exit=0"} < set(first)


@pytest.mark.parametrize("via", ["clush", "ssh"])
def test_ssh(cluster: Path, via: str) -> None:
    found = rows(fleet(cluster, "ssh", "--nodes", "n[1-6]", "--via", via, "--timeout", "3")[0])
    assert [n for n, (state, _) in found.items() if state == "ok"] == ["n1", "n2", "n5"]
    assert found["n3"] == ("failed", "exit 7 without a report: ImportError: msgspec")
    assert found["n4"][0] == "timed-out"
    assert found["n6"] == ("not-reached", "ssh: connect to host n6 port 22: No route to host")


def test_old_reports_never_count_as_new_ones(cluster: Path) -> None:
    (cluster / "kept").mkdir()
    (cluster / "kept" / "n1.json").write_text("{}")
    line = command("fleet", "ssh", "--nodes", "n1", "--reports", cluster / "kept")
    done = subprocess.run(line, capture_output=True, env=environment(), cwd=cluster, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"is not empty: old reports would count as new ones" in done.stderr


# ---------------------------------------------------------------- Ray, Kubernetes


def test_ray_nodes_that_died_give_way_to_living_ones_of_their_name() -> None:
    def node(name: str, id_: str, alive: bool) -> dict[str, Any]:
        return {"NodeName": name, "NodeManagerHostname": "h", "NodeID": id_, "Alive": alive}

    known = [
        node("r1", "a" * 56, True),
        node("r2", "b" * 56, False),
        node("r2", "c" * 56, True),
        node("r3", "d" * 56, False),
    ]
    known += [node("twin", "e" * 56, True), node("twin", "f" * 56, True)]
    found = {name: n["NodeID"][0] for name, n in _nodes(known).items()}
    assert found == {"r1": "a", "r2": "c", "r3": "d", "twin-eeeeee": "e", "twin-ffffff": "f"}


def test_the_task_of_ray_gives_the_program_the_mask_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # what older Ray does to a worker
    print_mask = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES', 'unset'))"
    expected = "unset"
    code, out, _ = task()([sys.executable, "-c", print_mask], 20)
    parent = Path(f"/proc/{os.getppid()}/environ").read_bytes().split(b"\0")
    for item in parent:
        if item.startswith(b"CUDA_VISIBLE_DEVICES="):
            expected = item.partition(b"=")[2].decode()
    assert (code, out.decode().strip()) == (0, expected)
    assert task()(["/does/not/exist"], 5) == (127, b"", "/does/not/exist: No such file or directory")
    assert task()(["sleep", "9"], 0.2) == (None, b"", "no report within 0.2 s")


def test_the_manifest_is_valid_and_puts_one_pod_on_each_node() -> None:
    job = manifest(("n1", "n2"), "image:1", ("cudnn-doctor", "check", "--format", "json"), 300, "default")
    assert yaml.safe_load(yaml.safe_dump(job)) == job
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    assert spec["backoffLimitPerIndex"] == 0
    container = spec["template"]["spec"]["containers"][0]
    assert container["command"] == ["cudnn-doctor", "check", "--format", "json", "--node", "$(NODE_NAME)"]
    validator = pytest.importorskip("kubernetes_validate")
    for version in ("1.29", "1.31"):
        validator.validate(job, version, strict=True)
    with pytest.raises(validator.ValidationError):
        validator.validate({**job, "spec": {**spec, "completions": "two"}}, "1.31", strict=True)


def test_kubernetes_needs_nodes() -> None:
    with pytest.raises(UsageError, match="--nodes"):
        manifest((), "image", ("cudnn-doctor",), 300, "default")


def test_what_ray_prints_stays_out_of_the_picture() -> None:
    lines = (
        "import os",
        "from cudnn_doctor.fleet.ray_ import _stdout_on_stderr",
        "with _stdout_on_stderr():",
        "    os.write(1, b'from the core\\n'); print('from Python')",
        "print('picture')",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, env=environment(), check=True)
    assert (done.stdout, done.stderr) == (b"picture\n", b"from the core\nfrom Python\n")
