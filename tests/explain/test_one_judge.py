"""A text and a machine are judged by the same rule functions: each compatibility rule says the same of both."""

from __future__ import annotations

from typing import Any

import pytest

from cudnn_doctor.diagnose.as_snapshot import as_snapshot
from cudnn_doctor.logs.document import build
from cudnn_doctor.logs.patterns import load
from cudnn_doctor.logs.scan import Raw
from cudnn_doctor.logs.signatures import find
from cudnn_doctor.logs.stated import extract
from cudnn_doctor.logs.stated_machine import stated_machine
from cudnn_doctor.model.base import Known, known
from cudnn_doctor.model.stated import NOT_STATED, StatedMachine
from cudnn_doctor.rules import all_rules, rules_of
from cudnn_doctor.rules.base import Case, Outcome, Rule
from cudnn_doctor.rules.sample import ABSENT, EX, sample

RULES = {rule.code: rule for rule in rules_of("compat")}
MISMATCH = "Loaded runtime CuDNN library: {} but source was compiled with: {}.  CuDNN library needs to have matching"


def read(text: str) -> StatedMachine:
    """What a text states."""
    document = build([("train.log", [Raw(i + 1, line.encode()) for i, line in enumerate(text.split("\n"))])])
    events = find(document, load().signatures)
    return stated_machine(document, extract(document, events, list(range(len(document.lines))), load().names), events)


def framework(name: str, version: str, cuda: str = "", cudnn: str = "") -> dict[str, Any]:
    """Changes to the healthy machine: this framework instead of torch 2.11, nothing known of its files."""
    return {
        "frameworks.0.name": name,
        "frameworks.0.distribution": name,
        "frameworks.0.version": version,
        "frameworks.0.built_cuda": known(cuda, EX) if cuda else ABSENT,
        "frameworks.0.built_cudnn": known(cudnn, EX) if cudnn else ABSENT,
        "frameworks.0.compute_capabilities": ABSENT,
        "frameworks.0.requires": (),
        "resolutions.1.consumer": name,
    }


def gpu(name: str, cc: str) -> dict[str, Any]:
    return {"gpus.0.name": known(name, EX), "gpus.0.compute_capability": known(cc, EX)}


def driver(version: str) -> dict[str, Any]:
    return {"driver.version": known(version, EX), "driver.cuda": ABSENT, "driver.init": ABSENT}


def cudnn(version: str, made_for: str = "") -> dict[str, Any]:
    flavour = known(int(made_for.partition(".")[0]), EX) if made_for else ABSENT
    return {
        "cudnn.0.version": known(version, EX),
        "cudnn.0.cudart": known(made_for, EX) if "." in made_for else ABSENT,
        "cudnn.0.cuda_flavour": flavour,
        "cudnn.0.package": ABSENT,
    }


# Of each rule: a text, the same facts as changes to the healthy machine, and what the rule says of both.
SAME: dict[str, tuple[str, dict[str, Any], str]] = {
    "CD401": ("mxnet 1.5.0 with CUDA 11.2, NVIDIA driver 418.39",
              framework("mxnet", "1.5.0", "11.2") | driver("418.39"), "problem"),
    "CD402": ("NVIDIA driver 535.104.05\ncuDNN 9.19.0, of cudnn-linux-x86_64-9.19.0.56_cuda13-archive.tar.xz",
              {"frameworks": ()} | driver("535.104.05") | cudnn("9.19.0", "13.0"), "problem"),
    "CD403": ("tensorflow 2.20.0 with CUDA 12.5, RTX 5090, NVIDIA driver 550.54.14",
              framework("tensorflow", "2.20.0", "12.5") | gpu("RTX 5090", "12.0") | driver("550.54.14"), "problem"),
    "CD404": ("RTX 5090, cuDNN 8.9.7, tensorflow 2.15.0",
              framework("tensorflow", "2.15.0") | gpu("RTX 5090", "12.0") | cudnn("8.9.7"), "problem"),
    "CD405": ("GPU: RTX 5090, tensorflow 2.15.0",
              framework("tensorflow", "2.15.0") | gpu("RTX 5090", "12.0"), "problem"),
    "CD406": (f"tensorflow 2.4.0\n{MISMATCH.format('7.6.5', '8.0.4')}",
              framework("tensorflow", "2.4.0", cudnn="8.0.4") | cudnn("7.6.5"), "skipped"),
    "CD407": (f"tensorflow 1.7.0\n{MISMATCH.format('7.1.2', '7.0.5')}",
              framework("tensorflow", "1.7.0", cudnn="7.0.5") | cudnn("7.1.2"), "problem"),
    "CD408": (f"tensorflow 2.4.0\n{MISMATCH.format('7.6.5', '8.0.4')}",
              framework("tensorflow", "2.4.0", cudnn="8.0.4") | cudnn("7.6.5"), "problem"),
    "CD409": ("mxnet 1.5.0 and cuDNN 7.6.5", framework("mxnet", "1.5.0") | cudnn("7.6.5"), "skipped"),
    "CD410": ("tensorflow 2.4.0, CUDA 11.2, cuDNN 8.1.1",
              framework("tensorflow", "2.4.0", "11.2") | cudnn("8.1.1"), "problem"),
    "CD411": (f"torch 2.11.0, GPU: V100\n{MISMATCH.format('9.19.0', '9.19.0')}",
              framework("torch", "2.11.0", cudnn="9.19.0") | gpu("V100", "7.0") | cudnn("9.19.0"), "problem"),
    "CD412": ("mxnet 1.5.0, CUDA 10.0 and the archive cuDNN 7.6.5 for CUDA 10.1",
              framework("mxnet", "1.5.0", "10.0") | cudnn("7.6.5", "10.1"), "problem"),
    "CD413": ("RTX 3090, torch 2.3.1+cpu",
              framework("torch", "2.3.1+cpu") | {"frameworks.0.cuda_build": known(False, EX)}, "problem"),
    "CD414": ("tensorflow 2.18.0\nnvidia-cudnn-jit-cu12==9.19.0.56",
              framework("tensorflow", "2.18.0") | cudnn("9.19.0.56") | {"cudnn.0.kind": "jit"}, "problem"),
    "CD416": ("GPU: RTX 3090, mxnet 1.5.0, CUDA 10.1", framework("mxnet", "1.5.0", "10.1") | gpu("RTX 3090", "8.6"),
              "problem"),
}  # fmt: skip


def told(outcomes: list[Outcome]) -> set[tuple[str, str, tuple[str, ...] | None]]:
    return {(o.status, o.basis, o.causes) for o in outcomes}


def test_every_compatibility_rule_is_tried() -> None:
    assert set(SAME) == set(RULES)
    assert {r.code for r in all_rules() if r.category == "Compatibility"} <= {
        *RULES,
        "CD415",
    }  # that one is --require's


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda r: r.code)
def test_a_rule_says_the_same_of_a_text_and_of_a_machine(rule: Rule) -> None:
    text, machine, status = SAME[rule.code]
    of_text = rule.outcomes(Case(as_snapshot(read(text), load())))
    of_machine = rule.outcomes(sample(machine))
    assert told(of_text) == told(of_machine)
    assert {o.status for o in of_text} == {status}


def test_facts_come_with_the_line_that_states_them() -> None:
    stated = read("I train on an RTX 3090\nwith torch 1.13.1, CUDA 11.7\nand NVIDIA driver 470.57.02")
    assert stated.gpu == known("rtx 3090", "train.log line 1")
    assert stated.framework_version == known("1.13.1", "train.log line 2")
    assert stated.cuda == known("11.7", "train.log line 2")
    assert stated.driver == known("470.57.02", "train.log line 3")
    assert stated.cudnn_loaded == NOT_STATED


def test_evidence_of_a_text_names_the_line() -> None:
    (outcome,) = RULES["CD401"].outcomes(Case(as_snapshot(read(SAME["CD401"][0]), load())))
    assert {e.source for e in outcome.evidence if e.value in ("418.39", "11.2")} == {"train.log line 1"}


def test_nothing_stated_is_nothing_known() -> None:
    snapshot = as_snapshot(read("hello"), load())
    assert not isinstance(snapshot.driver.version, Known)
    assert (snapshot.frameworks, snapshot.cudnn, snapshot.resolutions) == ((), (), ())
    assert all(o.status in ("skipped", "unknown") for r in RULES.values() for o in r.outcomes(Case(snapshot)))
