"""The commands of all fixes: a shell reads them as meant, cudnn-doctor understands its own, none destroys, and each
verification would have shown the fault."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
import typer

from cudnn_doctor.commands.app import app
from cudnn_doctor.model.base import Absent, Known, known
from cudnn_doctor.model.facts import CudnnCopy
from cudnn_doctor.model.live import Change
from cudnn_doctor.model.report import Finding, Fix
from cudnn_doctor.model.verdict import verdict_of
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case, Rule
from cudnn_doctor.rules.remedies import bring, pip, quoted, reinstall, unset, with_folder, without_folders
from cudnn_doctor.rules.sample import SITE, another_copy, sample
from cudnn_doctor.rules.selection import select_rules

RULES = all_rules()
T = "test"
ABSENT = Absent(reason="not-found")


def found(case: Case, rules: tuple[Rule, ...] = RULES) -> Iterator[Finding]:
    for rule in rules:
        yield from rule.apply(case)


@cache
def fixes() -> tuple[tuple[Rule, Case, Finding, Fix], ...]:
    """Every fix of every rule's examples."""
    return tuple(
        (rule, case, finding, fix)
        for rule in RULES
        for _, case in rule.examples()
        for finding in rule.apply(case)
        for fix in finding.fixes
    )


def commands() -> list[str]:
    return sorted({c for _, _, _, f in fixes() for c in (f.command, f.verify) if c})


def test_a_shell_can_read_every_command() -> None:
    assert len(commands()) > 120
    script = "\n".join(commands())
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [c for c in commands() if "cudnn-doctor " in c])
def test_cudnn_doctor_understands_what_it_advises(command: str) -> None:
    group: Any = typer.main.get_command(app)
    for part in re.split(r"&&|[;|]", command):
        words = [w for w in shlex.split(part) if not re.fullmatch(r"[A-Z_]+=\S*", w)]
        if words[:1] != ["cudnn-doctor"]:
            continue
        with group.make_context("cudnn-doctor", words[1:], ignore_unknown_options=True) as context:
            name, command_, rest = group.resolve_command(context, words[1:])
            command_.make_context(name, rest, parent=context).close()


DESTROYS = re.compile(r"uninstall -y|--yes\b|\bremove -y|purge|\brm\b|autoremove|mkfs|&& sudo reboot|>\s*/etc")


@pytest.mark.parametrize("command", commands())
def test_no_command_destroys(command: str) -> None:
    assert not DESTROYS.search(command)
    if " pip uninstall " in command:  # pip asks; what it takes away from others is put back
        assert re.search(r" pip uninstall [^&]+ && \S+ -m pip install ", command)
    if "pip install" in command and "--index-url" in command:
        assert re.search(r"torch==[\d.]+\+cu\d+ ", command), "torch==2.11.0 alone is there already, to pip"


SPECIAL = "'\"$(INJECT)"


def texts(node: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(dotted path, text) of all texts of a snapshot."""
    if isinstance(node, str):
        yield path, node
    elif isinstance(node, Known):
        yield from texts(node.value, f"{path}.value")
    elif isinstance(node, msgspec.Struct):
        for name in node.__struct_fields__:
            yield from texts(getattr(node, name), f"{path}.{name}")
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from texts(value, f"{path}.{key}")
    elif isinstance(node, (tuple, list)):
        for i, value in enumerate(node):
            yield from texts(value, f"{path}.{i}")


def replaced(node: Any, old: str, new: str) -> Any:
    if isinstance(node, str):
        return node.replace(old, new)
    if isinstance(node, msgspec.Struct):
        changes = {n: replaced(getattr(node, n), old, new) for n in node.__struct_fields__}
        return msgspec.structs.replace(node, **changes)
    if isinstance(node, dict):
        return {k: replaced(v, old, new) for k, v in node.items()}
    return type(node)(replaced(v, old, new) for v in node) if isinstance(node, (tuple, list)) else node


def test_a_hostile_snapshot_gets_no_command_into_a_fix() -> None:
    """Every text of a machine that a command quotes, with what a shell would obey in it."""
    tried = 0
    for rule in RULES:
        for _, case in rule.examples():
            told = " ".join(f.command + f.verify for o in rule.apply(case) for f in o.fixes)
            machine = (case.snapshot, case.scenarios)
            for text in {t for _, t in texts(machine) if len(t) > 2 and t in told}:
                facts, live = replaced(machine, text, text + SPECIAL)
                for finding in rule.apply(Case(facts, live, required=case.required)):
                    for command in [c for f in finding.fixes for c in (f.command, f.verify) if "INJECT" in c]:
                        tried += 1
                        words = shlex.split(command)
                        assert any(SPECIAL in w for w in words), command
                        assert sum(w.count("INJECT") for w in words) == sum(w.count(SPECIAL) for w in words), command
    assert tried > 40


@pytest.mark.parametrize(
    ("rule", "case", "finding", "fix"),
    [
        pytest.param(*x, id=f"{x[0].code}-{i}")
        for i, x in enumerate(fixes())
        if "check --only" in x[3].verify and x[0].code != "CD410"
    ],
)  # CD410 says that nothing is wrong while CD406 is content
def test_a_verification_shows_the_fault_while_it_is_there(rule: Rule, case: Case, finding: Finding, fix: Fix) -> None:
    assert {f.status for f in found(case, named(fix.verify))} != {"ok"}


def named(verify: str) -> tuple[Rule, ...]:
    return select_rules(RULES, only=re.findall(r"--only (\w+)", verify))


@pytest.mark.parametrize(
    ("rule", "case", "fix"),
    [pytest.param(r, c, f, id=f"{r.code}-{i}") for i, (r, c, _, f) in enumerate(fixes()) if f.command[:6] == "unset "],
)
def test_a_verification_is_a_verdict_once_a_variable_is_gone(rule: Rule, case: Case, fix: Fix) -> None:
    host = case.snapshot.host
    environment = {n: v for n, v in host.environment.items() if n != fix.command[6:]}
    facts = msgspec.structs.replace(case.snapshot, host=msgspec.structs.replace(host, environment=environment))
    findings = found(Case(facts, case.scenarios, required=case.required), named(fix.verify))
    assert verdict_of(findings, fail_on="note") == ("ok", "examined, nothing wrong")


def test_a_verification_looks_at_the_environment_that_was_examined() -> None:
    changes = {"patient.chosen_by": "--env", "gpus.0.compute_mode": known("prohibited", T)}

    def verify(**more: Any) -> str:
        finding = next(f for f in found(sample({**changes, **more})) if f.code == "CD202")
        return finding.fixes[0].verify

    assert verify() == "cudnn-doctor check --env /opt/venv --only CD202"
    assert verify(**{"patient.prefix": "/opt/my env"}) == "cudnn-doctor check --env '/opt/my env' --only CD202"
    system = {"patient.kind": "system", "patient.prefix": "/usr", "patient.python": known("/usr/bin/python3.11", T)}
    assert verify(**system) == "cudnn-doctor check --env /usr/bin/python3.11 --only CD202"
    assert verify(**{"patient.chosen_by": "VIRTUAL_ENV"}) == "cudnn-doctor check --only CD202"


# ---------------------------------------------------------------- whatever put a copy there puts it back


def broken(**changes: Any) -> tuple[Case, CudnnCopy]:
    copy = another_copy("8.9.7", "/opt/cudnn8/lib", soname="libcudnn.so.8", major=8)
    copy = msgspec.structs.replace(copy, **changes)
    return sample({"cudnn": (*sample().snapshot.cudnn, copy)}), copy


@pytest.mark.parametrize(
    ("package", "command"),
    [
        (known("nvidia-cudnn-cu12 8.9.7.29", "metadata of nvidia-cudnn-cu12 8.9.7.29"),
         "/opt/venv/bin/python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu12==8.9.7.29"),
        (known("torch 1.13.1", "metadata of torch 1.13.1"),
         "/opt/venv/bin/python -m pip install --force-reinstall --no-deps torch==1.13.1"),
        (known("libcudnn8 8.9.7.29-1+cuda12.2", "dpkg package libcudnn8"),
         "sudo apt-get install --reinstall libcudnn8=8.9.7.29-1+cuda12.2"),
        (known("libcudnn8", "dpkg package libcudnn8"), "sudo apt-get install --reinstall libcudnn8"),
        (known("cudnn 8.9.7.29 (conda)", "/opt/conda/conda-meta/cudnn-8.9.7.29"),
         "conda install -p /opt/venv --force-reinstall cudnn=8.9.7.29"),
    ],
)  # fmt: skip
def test_by_its_package(package: Known[str], command: str) -> None:
    (fix,) = reinstall(*broken(package=package), "CD307")
    assert (fix.command, fix.verify) == (command, "cudnn-doctor check --only CD307")


def test_files_that_nobody_owns_come_whole_into_a_folder_of_their_own() -> None:
    (fix,) = reinstall(*broken(cuda_flavour=ABSENT, cudart=known("12.2", T)), "CD307")
    assert fix.text == (
        "No package owns /opt/cudnn8/lib, so nothing can repair it: put a whole cuDNN 8.9.7 into a folder of its own, "
        "and let that one be found."
    )
    assert fix.command == (
        "/opt/venv/bin/python -m pip install --no-deps --target cudnn-8.9.7 nvidia-cudnn-cu12==8.9.7.29 && "
        'export LD_LIBRARY_PATH="$PWD/cudnn-8.9.7/nvidia/cudnn/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"'
    )


@pytest.mark.parametrize("version", [ABSENT, known("8.0.5", T), known("99.1.0", T)])
def test_a_release_without_wheel_comes_from_the_archive(version: Any) -> None:
    (fix,) = reinstall(*broken(version=version), "CD307")
    what = f"cuDNN {version.value}" if isinstance(version, Known) else "cuDNN"
    assert fix.text == (
        f"No package owns /opt/cudnn8/lib: unpack a whole {what} for your CUDA there again, "
        "from https://developer.nvidia.com/cudnn-archive"
    )
    assert fix.command == "ls -l /opt/cudnn8/lib"


def test_another_copy_of_the_same_name_is_the_nearest_way() -> None:
    copy = another_copy("9.14.0", "/opt/old")
    path = "/opt/old/:/usr/local/cuda/lib64"
    case = sample({"cudnn": (*sample().snapshot.cudnn, copy), "host.environment.LD_LIBRARY_PATH": path})
    leave, whole = reinstall(case, copy, "CD307")
    assert leave.command == "export LD_LIBRARY_PATH=/usr/local/cuda/lib64"
    assert "there is another libcudnn.so.9 in /opt/venv/" in leave.text
    assert whole.command.startswith("/opt/venv/bin/python -m pip install --no-deps --target cudnn-9.14.0 ")


@pytest.mark.parametrize(
    ("cudnn", "cuda", "command"),
    [
        (f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", 12, "install nvidia-cublas-cu12 nvidia-cuda-nvrtc-cu12"),
        (f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", 13, "install nvidia-cublas nvidia-cuda-nvrtc"),
        ("/opt/cudnn/libcudnn.so.9", 13, "install nvidia-cublas nvidia-cuda-nvrtc && "
         f"export LD_LIBRARY_PATH={SITE}/nvidia/cu13/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"),
    ],
)  # fmt: skip
def test_wheels_go_on_the_path_of_a_cudnn_that_is_none(cudnn: str, cuda: int, command: str) -> None:
    case = sample({"patient.site_packages": ("/opt/venv-of-doctor", SITE)})
    assert bring(case, cudnn, cuda, "nvidia-cublas", "nvidia-cuda-nvrtc") == f"/opt/venv/bin/python -m pip {command}"


# ---------------------------------------------------------------- words of a shell


def test_folders_of_the_search_path() -> None:
    assert with_folder("/opt/a b") == "export LD_LIBRARY_PATH='/opt/a b'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    case = sample({"host.environment.LD_LIBRARY_PATH": "/a::/b/:/c"})
    assert without_folders(case, "/b") == Change(kind="variable", name="LD_LIBRARY_PATH", value="/a:/c")
    assert without_folders(case, "/d") is None
    assert without_folders(case, "/a", "/b", "/c/") == unset("LD_LIBRARY_PATH")
    assert without_folders(sample(), "/a") is None


def test_words() -> None:
    assert quoted("~/my venv/bin") == "~/'my venv/bin'"
    assert quoted("~") == "'~'"
    assert quoted("") == "''"
    assert pip(sample({"patient.python": ABSENT}), "install", "a[b]>=1") == "python -m pip install 'a[b]>=1'"
