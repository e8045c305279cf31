"""Findings as a tree: what follows from what, and what trials prove."""

from __future__ import annotations

from datetime import date

import pytest
from msgspec.structs import replace

from cudnn_doctor.model.base import known
from cudnn_doctor.model.facts import CudaInit
from cudnn_doctor.model.live import Change, Termination, Trial
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Finding, Report
from cudnn_doctor.model.verdict import RANK
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.causes import depths, place_of, rests_on, wanted
from cudnn_doctor.rules.judge import judge
from cudnn_doctor.rules.remedies import unset
from cudnn_doctor.rules.sample import ABSENT, CUDNN_DIR, EX, another_copy, live_check, live_steps, sample, search

TODAY = date(2026, 12, 1)
RULES = all_rules()


def report(case: Case, trials: tuple[Trial, ...] = (), **options: object) -> Report:
    examined = Examination(snapshot=case.snapshot, scenarios=case.scenarios, trials=trials)
    return judge(examined, Options(**options), TODAY)  # type: ignore[arg-type]  # as given by a test


def tree(found: Report) -> dict[str, str]:
    """Code of each problem, and of the one that it follows from."""
    problems = [f for f in found.findings if f.status == "problem"]
    return {f.code: found.findings[place_of(f)].code if f.consequence_of else "" for f in problems}


def partial_copy() -> Case:
    """A folder on LD_LIBRARY_PATH whose cuDNN lacks a file, which the loader then finds in another copy; the
    convolution fails with it (`missing-engines_precompiled` on an H200)."""
    mine = another_copy("9.19.0", "/opt/part", sublibraries=another_copy("9.19.0", "/opt/part").sublibraries[:6])
    own = sample().snapshot
    return sample(
        {
            "host.environment.LD_LIBRARY_PATH": "/opt/part:/opt/x",
            "cudnn": (*own.cudnn, mine),
            "resolutions": (
                search("libcudnn.so.9", mine.path, "plain dlopen"),
                *own.resolutions[1:],
                search("libcudnn_heuristic.so.9", f"{own.cudnn[0].directory}/libcudnn_heuristic.so.9", mine.path),
            ),
        },
        live=(live_check(cudnn=mine.path, steps=live_steps(fails="cudnnConvolutionForward", status=3000)),),
    )


LEAVE = Change(kind="variable", name="LD_LIBRARY_PATH", value="/opt/x")


def trial(change: Change, *cleared: str, works: bool | None = True, outcome: str = "the same calls work") -> Trial:
    return Trial(change=change, works=works, outcome=outcome, cleared=cleared, ms=400.0)


def test_follows_lead_nowhere_in_a_circle_and_name_rules() -> None:
    codes = [r.code for r in RULES]
    for rule in RULES:
        for start in rule.follows:
            assert any(c.startswith(start) and c != rule.code for c in codes), (rule.code, start)
    found = depths(tuple((r.code, r.follows) for r in RULES))
    assert found["CD312"] < found["CD307"] < found["CD306"] < found["CD606"]
    with pytest.raises(ValueError, match="follows from"):
        depths((("CD101", ("CD102",)), ("CD102", ("CD101",))))


@pytest.mark.parametrize("rule", [r for r in RULES if r.follows], ids=lambda r: r.code)
def test_what_can_follow_rests_on_something(rule: object) -> None:
    """Else nothing could ever be its cause: the evidence of each problem points at something shared."""
    assert hasattr(rule, "examples")
    cases = [case for status, case in rule.examples() if status == "problem"]
    for case in cases:
        for finding in rule.apply(case):  # type: ignore[attr-defined]  # a Rule
            assert finding.status != "problem" or list(rests_on(case, finding)), finding.title


def test_one_folder_is_the_one_cause() -> None:
    found = report(partial_copy())
    assert tree(found) == {"CD307": "", "CD606": "CD307"}
    assert found.reason.startswith("CD307 cuDNN 9.19.0 (/opt/part/libcudnn.so.9): Incomplete: libcudnn_heuristic.so.9")
    assert "and" not in found.reason.partition("missing in")[2]


def test_a_proved_cure_comes_first_and_says_so() -> None:
    key = "CD307 cuDNN 9.19.0 (/opt/part/libcudnn.so.9)"
    found = report(partial_copy(), (trial(LEAVE, key, "CD606 device 0, cuDNN 9.19.0 /opt/part/libcudnn.so.9"),))
    (cause,) = (f for f in found.findings if f.code == "CD307" and f.status == "problem")
    assert cause.fixes[0].command == "export LD_LIBRARY_PATH=/opt/x"
    assert cause.fixes[0].proof
    assert cause.fixes[0].proof.outcome == "proved"
    assert cause.fixes[0].proof.text == "proved: with LD_LIBRARY_PATH=/opt/x the same calls work (0.4 s)"


@pytest.mark.parametrize(
    ("works", "cleared", "outcome", "text"),
    [
        (False, (), "no-effect", "tried: does not help: cudnnCreate answers 1001"),
        (False, ("CD307",), "partly", "tried: this goes away, and then: cudnnCreate answers 1001"),
        (None, (), "not-tried", "not tried: cudnnCreate answers 1001"),
    ],
)
def test_a_cure_that_is_none(works: bool | None, cleared: tuple[str, ...], outcome: str, text: str) -> None:
    names = tuple(f"{c} cuDNN 9.19.0 (/opt/part/libcudnn.so.9)" for c in cleared)
    found = report(partial_copy(), (trial(LEAVE, *names, works=works, outcome="cudnnCreate answers 1001"),))
    (cause,) = (f for f in found.findings if f.code == "CD307" and f.status == "problem")
    (fix,) = (f for f in cause.fixes if f.change == LEAVE)
    assert fix.proof
    assert (fix.proof.outcome, fix.proof.text) == (outcome, text)
    assert (cause.fixes[-1] is fix) == (outcome == "no-effect")


def test_a_variable_becomes_the_cause_by_its_trial() -> None:
    case = sample(
        {"host.environment.CUDA_FORCE_PTX_JIT": "1"},
        live=(live_check(steps=live_steps(fails="cudnnConvolutionForward", status=5003)),),
    )
    assert tree(report(case)) == {"CD513": "", "CD606": ""}  # nothing is known yet
    live = f"CD606 device 0, cuDNN 9.19.0 {CUDNN_DIR}/libcudnn.so.9"
    proof = trial(unset("CUDA_FORCE_PTX_JIT"), "CD513 CUDA_FORCE_PTX_JIT", live)
    found = report(case, (proof,))
    assert tree(found) == {"CD513": "", "CD606": "CD513"}
    assert found.reason.startswith("CD513 CUDA_FORCE_PTX_JIT=1: ")


def test_a_cause_is_as_severe_as_what_follows() -> None:
    """A warning about LD_PRELOAD that makes a framework refuse is an error."""
    first = another_copy("9.1.0", "/opt/old", found_by=("LD_PRELOAD",))
    own = sample().snapshot
    case = sample(
        {
            "host.environment.LD_PRELOAD": first.path,
            "cudnn": (*own.cudnn, first),
            "resolutions.1.path": known(first.path, EX),
            "resolutions.1.real_path": known(first.real_path, EX),
            "resolutions.1.step": "LD_PRELOAD",
            "resolutions.1.shadowed": (own.cudnn[0].path,),
        }
    )
    found = report(case)
    assert tree(found)["CD508"] == ""
    assert tree(found)["CD303"] == "CD508"
    assert {f.severity for f in found.findings if f.code == "CD508"} == {"error"}


def test_notes_cause_no_error_and_weak_ties_need_weight() -> None:
    """A small stack limit is a warning: alone it does not explain a crash that any process could have."""
    crash = live_check(fate=Termination(kind="signal", signal="SIGSEGV", last_step="cudnnCreate"), steps=())
    case = sample({"host.limits.stack": known(256 << 10, EX), "host.mps": known(True, EX)}, live=(crash,))
    assert tree(report(case)) == {"CD503": "", "CD504": "", "CD602": ""}


def test_what_follows_from_another_owner_is_not_this_owners() -> None:
    init = known(CudaInit(code=100, name="CUDA_ERROR_NO_DEVICE", driver_cuda=ABSENT, library=""), EX)
    case = sample({"driver.init": init, "host.limits.open_files": known(20, EX)}, live=())
    assert tree(report(case)) == {"CD507": "", "CD109": "CD507"}
    node = report(case, owner="node")
    assert [f for f in node.findings if f.status == "problem"] == []
    environment = report(case, owner="environment")
    assert tree(environment) == {"CD507": "", "CD109": "CD507"}


def test_pointers_lead_to_problems() -> None:
    for rule in RULES:
        for _, case in rule.examples():
            found = report(case)
            for finding in (f for f in found.findings if f.consequence_of):
                cause: Finding = found.findings[place_of(finding)]
                assert cause.status == finding.status == "problem"
                assert RANK[cause.severity] >= RANK[finding.severity] or cause.consequence_of


def test_only_errors_are_worth_a_trial() -> None:
    warned = report(sample({"host.limits.stack": known(256 << 10, EX)}))
    assert wanted(warned.findings) == ()
    failed = report(sample({"host.environment.CUDA_VISIBLE_DEVICES": ""}))
    assert wanted(failed.findings) == (unset("CUDA_VISIBLE_DEVICES"),)
    assert wanted(report(sample()).findings) == ()


def test_two_faults_are_two_causes() -> None:
    """Each change clears what is its own; neither alone makes all calls work (`two-faults` on an H200)."""
    base = partial_copy()
    other = live_check(steps=live_steps(fails="cudnnConvolutionForward", status=5003))
    changed = sample({"host.environment.CUDA_FORCE_PTX_JIT": "1"}).snapshot.host.environment
    snapshot = replace(
        base.snapshot, host=replace(base.snapshot.host, environment={**base.snapshot.host.environment, **changed})
    )
    case = Case(snapshot, (*base.scenarios, other))
    part = "CD307 cuDNN 9.19.0 (/opt/part/libcudnn.so.9)"
    trials = (
        trial(LEAVE, part, "CD606 device 0, cuDNN 9.19.0 /opt/part/libcudnn.so.9", works=False, outcome="5003"),
        trial(
            unset("CUDA_FORCE_PTX_JIT"),
            "CD513 CUDA_FORCE_PTX_JIT",
            f"CD606 device 0, cuDNN 9.19.0 {CUDNN_DIR}/libcudnn.so.9",
            works=False,
            outcome="3000",
        ),
    )
    both = Trial(change=LEAVE, also=(unset("CUDA_FORCE_PTX_JIT"),), works=True, outcome="all calls work", ms=500.0)
    found = report(case, (*trials, both))
    causes = {f.code: [p.proof.outcome for p in f.fixes if p.proof] for f in found.findings if not f.consequence_of}
    assert causes["CD307"] == ["partly", "not-tried"]
    assert causes["CD513"] == ["partly"]
    (variable,) = (f for f in found.findings if f.code == "CD513" and f.status == "problem")
    assert variable.fixes[0].proof
    assert variable.fixes[0].proof.text == (
        "tried: this goes away, and then: 3000; proved together with LD_LIBRARY_PATH=/opt/x: all calls work (0.5 s)"
    )
    below = [bool(f.consequence_of) for f in found.findings if f.code == "CD606" and f.status == "problem"]
    assert below == [True, True]


def test_packages_are_for_try() -> None:
    """The first fix that `try --fix` would take is named with it; a fix that needs a folder of its own is not."""
    case = sample({"cudnn.0.sublibraries": sample().snapshot.cudnn[0].sublibraries[:4]}, live=())
    (finding,) = (f for f in report(case).findings if f.code == "CD307" and f.status == "problem")
    proofs = [f.proof.text for f in finding.fixes if f.proof]
    assert proofs == ["not tried: it changes packages; `cudnn-doctor try --fix CD307` can"]
    (folder,) = (f for f in report(partial_copy()).findings if f.code == "CD307" and f.status == "problem")
    assert [f.proof.text for f in folder.fixes if f.proof] == ["not tried: it changes packages"]
    here = sample({"cudnn.0.sublibraries": (), "patient.chosen_by": "--env"}, live=())
    (named,) = (f for f in report(here).findings if f.code == "CD307" and f.status == "problem")
    assert [f.proof.text.rpartition("; ")[2] for f in named.fixes if f.proof] == [
        "`cudnn-doctor try --fix CD307 --env /opt/venv` can"
    ]
