"""Each recipe is a file that its tool reads and whose commands this version understands."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from cudnn_doctor import recipes
from tests._cli import call, complaint

NAMES = recipes.names()
SCRIPTS = [n for n in NAMES if n.endswith(".sh")]
COMMAND = re.compile(r"(?:/opt/cudnn-doctor/bin/)?cudnn-doctor ((?:check|report)\b[^|&>\n]*)")


def commands(name: str) -> list[list[str]]:
    """The arguments of each call of cudnn-doctor in a recipe, without those that only fit its own machine."""
    text = recipes.read(name).replace('", "', " ").replace('"command": [', "").replace('"', " ").replace("]", "")
    if name.endswith(".json"):
        rule = json.loads(recipes.read(name))["rules"][0]
        text = f"{rule['path']} {' '.join(rule['args'])}"
    found = []
    for words in COMMAND.findall(text):
        kept = shlex.split(re.sub(r"(--env|--output) \S+|2$", "", words.strip()))
        found.append(kept)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_its_purpose_is_one_sentence(name: str) -> None:
    purpose = recipes.purpose(name)
    assert ":" in purpose
    assert purpose.endswith(".")


@pytest.mark.parametrize("name", [n for n in NAMES if n != "systemd.timer"])
def test_this_version_understands_its_commands(name: str) -> None:
    calls = commands(name)
    assert calls, name
    for words in calls:
        replay = () if words[0] == "report" else ("--no-live",)
        done = call(*words, "--replay", "example:h200-two-copies", *replay)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith(".yaml")])
def test_yaml_is_of_the_form_its_tool_reads(name: str) -> None:
    documents = list(yaml.safe_load_all(recipes.read(name)))
    if name == "github-actions.yaml":
        steps = documents[0]["jobs"]["test"]["steps"]
        assert [set(s) & {"uses", "run"} for s in steps] == [{"uses"}, {"run"}, {"run"}, {"uses"}]
    elif name == "gitlab.yaml":
        assert documents[0]["gpu-preflight"]["artifacts"]["reports"] == {"junit": "cudnn-doctor.xml"}
    else:
        assert [d["kind"] for d in documents] == ["Pod", "Job"]


def test_node_problem_detector_maps_every_exit_code() -> None:
    plugin = json.loads(recipes.read("node-problem-detector.json"))
    assert (plugin["plugin"], plugin["rules"][0]["condition"]) == ("custom", plugin["conditions"][0]["type"])


@pytest.mark.parametrize("name", ["systemd.service", "systemd.timer"])
def test_units_have_the_sections_that_systemd_needs(name: str) -> None:
    unit = configparser.ConfigParser(strict=True)
    unit.read_string(recipes.read(name))
    assert set(unit.sections()) == {"Unit", "Service"} if name.endswith("service") else {"Unit", "Timer", "Install"}


def run(name: str, code: int, folder: Path) -> tuple[int, dict[str, str]]:
    """Runs a script with a doctor that answers `code`: its exit code, and what the other programs were called with."""
    said = {"cudnn-doctor": "echo 'CD103 driver: differ'", "scontrol": "", "logger": "", "timeout": 'shift; exec "$@"'}
    for tool, body in said.items():
        script = folder / tool
        log = f'echo "$@" >> {shlex.quote(str(folder))}/{tool}.log\n' if tool in ("scontrol", "logger") else ""
        end = f"exit {code}\n" if tool == "cudnn-doctor" else ""
        script.write_text(f"#!/bin/sh\n{log}{body}\n{end}")
        script.chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    command = ["sh", "-c", f"{recipes.read(name)}", "sh", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)
    assert done.stderr == ""
    return done.returncode, {p.stem: p.read_text() for p in folder.glob("*.log")}


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_prolog_stops_the_job_on_a_problem_alone(code: int, tmp_path: Path) -> None:
    ended, calls = run("slurm-prolog.sh", code, tmp_path)
    assert ended == (1 if code == 1 else 0)
    assert calls == ({"logger": "-t cudnn-doctor -- CD103 driver: differ\n"} if code == 1 else {})


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_health_check_drains_on_a_problem_alone(code: int, tmp_path: Path) -> None:
    ended, calls = run("slurm-healthcheck.sh", code, tmp_path)
    assert ended == 0
    assert ("State=DRAIN Reason=cudnn-doctor: CD103 driver: differ" in calls.get("scontrol", "")) == (code == 1)


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_gauge_is_the_exit_code(code: int, tmp_path: Path) -> None:
    run("prometheus-textfile.sh", code, tmp_path)
    assert [p.name for p in tmp_path.glob("*.prom*")] == ["cudnn_doctor.prom"]
    assert (tmp_path / "cudnn_doctor.prom").read_text().splitlines()[-1] == f"cudnn_doctor_exit_code {code}"


def test_all_scripts_were_run() -> None:
    assert SCRIPTS == ["prometheus-textfile.sh", "slurm-healthcheck.sh", "slurm-prolog.sh"]


def test_the_command_lists_and_prints() -> None:
    assert [line.split()[0] for line in call("recipe").stdout.splitlines()] == list(NAMES)
    assert call("recipe", "gitlab.yaml").stdout == recipes.read("gitlab.yaml")
    assert "there is no recipe 'jenkins'; the recipes are dockerfile" in complaint(call("recipe", "jenkins"))
