"""Groups, references, differences, shared problems, verdict and exit code."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from cudnn_doctor.merge.collecting import Arrival
from cudnn_doctor.model.base import encode
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.fleet import Difference
from tests.merge import fleet_of
from tests.merge.drawing import differing, picture, section


def nodes(*names: str) -> list[tuple[str, Any]]:
    return [(name, fleet_of.report(name)) for name in names]


def test_nodes_that_differ_only_in_volatile_values_are_alike() -> None:
    fleet = picture(nodes("n1", "n2", "n3"))
    assert (fleet.verdict, fleet.exit_code, fleet.reason) == ("ok", 0, "all 3 nodes are well and alike")
    assert {s.state for s in fleet.sections} == {"alike", "not-compared"}
    assert [s.name for s in fleet.sections if s.state == "not-compared"] == ["gpu-buses"]  # NVIDIA_VISIBLE_DEVICES=0


@pytest.mark.parametrize(("where", "change"), fleet_of.OUTLIERS)
def test_a_planted_difference_shows_in_its_section_alone(where: str, change: Any) -> None:
    fleet_ = nodes("n1", "n2", "n3", "n4")
    change(fleet_[2][1])
    fleet = picture(fleet_)
    assert differing(fleet) == {"n3": [where]}
    assert fleet.exit_code == 0
    assert fleet.reason == "all 4 nodes are well; 1 of 4 nodes differs: n3"
    assert picture(fleet_, fail_on="difference").exit_code == 1


def test_only_the_leaves_that_differ_are_listed() -> None:
    fleet_ = nodes("n1", "n2", "n3")
    fleet_of.OUTLIERS[1][1](fleet_[0][1])
    groups = section(picture(fleet_), "packages").groups
    assert [(g.nodes, g.count, g.role) for g in groups] == [("n[2-3]", 2, "reference"), ("n1", 1, "different")]
    expected = Difference(leaf="nvidia-cudnn-cu13", value="9.14.0.64", expected="9.19.0.56")
    assert groups[1].differences == (expected,)


def test_half_and_half_is_no_majority() -> None:
    fleet_ = nodes("n1", "n2", "n3", "n4")
    for _, document in fleet_[:2]:
        fleet_of.OUTLIERS[0][1](document)
    fleet = picture(fleet_)
    driver = section(fleet, "driver")
    assert driver.state == "no-majority"
    assert {g.role for g in driver.groups} == {"one-of-several"}
    assert [d.value for d in driver.groups[0].differences] == ["570.86.15", "570.86.15"]
    assert differing(fleet) == {}  # nobody is called the one that is wrong
    assert fleet.exit_code == 0
    assert fleet.reason.endswith("no majority in: Driver")
    assert picture(fleet_, fail_on="difference").exit_code == 1


def test_the_order_of_the_reports_changes_no_byte() -> None:
    everything = nodes(*(f"n{i}" for i in range(1, 13)))
    for i, (_, change) in enumerate(fleet_of.OUTLIERS):
        change(everything[i][1])
    fleet_of.bad(everything[8][1])
    everything += [("n9", fleet_of.report("n9", seed=2)), ("", fleet_of.report("a")), ("", fleet_of.report("b"))]
    everything += [("n20", b""), ("n21", b"{"), ("n22", Arrival("n22", "x", state="busy", reason="no room"))]
    first = encode(picture(everything, nodes=("n1", "n30")))
    for seed in range(5):
        shuffled = everything[:]
        random.Random(seed).shuffle(shuffled)  # noqa: S311 - no secret
        assert encode(picture(shuffled, nodes=("n1", "n30"))) == first


def test_a_finding_that_many_nodes_have_comes_once() -> None:
    fleet_ = nodes(*(f"n{i}" for i in range(1, 8)))
    for _, document in fleet_[2:6]:
        fleet_of.bad(document)
    fleet = picture(fleet_)
    assert [(p.code, p.nodes, p.count, p.decides) for p in fleet.problems] == [
        ("CD601", "n[3-6]", 4, True),
        ("CD413", "n[1-7]", 7, False),
    ]
    assert fleet.problems[1].fixes[0].text.startswith("Where it should use the GPU")
    assert (fleet.exit_code, fleet.reason) == (1, "4 of 7 nodes have a problem: n[3-6]")


def test_titles_that_differ_in_numbers_are_one_problem() -> None:
    fleet_ = nodes("n1", "n2")
    for degrees, (_, document) in zip((88, 91), fleet_, strict=True):
        fleet_of.bad(document)
        document["findings"][-1]["title"] = f"Slowed down at {degrees} degrees Celsius"
    problem = picture(fleet_).problems[0]
    assert (problem.nodes, problem.title) == ("n[1-2]", "Slowed down at 88 degrees Celsius")


def test_missing_nodes_are_rows_and_leave_no_verdict() -> None:
    rows = [*nodes("n1"), ("n2", Arrival("n2", "slurm", state="timed-out", reason="no report after 20 s"))]
    fleet = picture(rows, nodes=("n1", "n2", "n3"))
    assert [(n.name, n.state) for n in fleet.nodes] == [("n1", "ok"), ("n2", "timed-out"), ("n3", "not-reached")]
    assert (fleet.verdict, fleet.exit_code) == ("no-verdict", 2)
    assert fleet.reason == "not reached: n3; timed out: n2; 1 of 3 answered, 3 are needed"


@pytest.mark.parametrize(
    ("quorum", "bad", "code"),
    [("", False, 2), ("", True, 1), ("3", False, 2), ("3", True, 2), ("2", False, 0), ("2", True, 1),
     ("67%", False, 2),  # of three nodes: 2.01, so three
     ("66%", False, 0)],
)  # fmt: skip
def test_quorum(quorum: str, bad: bool, code: int) -> None:
    """Three nodes, one silent. Without a quorum a bad node beats a missing one; with one, too few are none."""
    rows = nodes("n1", "n2")
    if bad:
        fleet_of.bad(rows[0][1])
    assert picture(rows, nodes=("n1", "n2", "n3"), quorum=quorum).exit_code == code


@pytest.mark.parametrize("quorum", ["many", "101%", "-1", "%", "1.5"])
def test_a_quorum_that_is_no_number_is_told(quorum: str) -> None:
    with pytest.raises(UsageError, match="--quorum"):
        picture(nodes("n1"), quorum=quorum)


def test_a_node_without_a_verdict_does_not_count_as_well() -> None:
    rows = nodes("n1", "n2")
    rows[1][1].update(verdict="no-verdict", exit_code=2, reason="nothing was examined")
    assert picture(rows).exit_code == 2


def test_nothing_at_all_is_told() -> None:
    with pytest.raises(UsageError, match="nothing to show"):
        picture([])


# ---------------------------------------------------------------- names, twins, clocks, versions


def test_the_newer_report_of_one_machine_counts() -> None:
    old, new = fleet_of.report("n1"), fleet_of.report("n1")
    fleet_of.bad(old)
    old["snapshot"]["taken_at"], new["snapshot"]["taken_at"] = "2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"
    fleet = picture([("n1", new), ("n1", old)])
    assert [(n.name, n.state, n.taken_at) for n in fleet.nodes] == [("n1", "ok", "2026-11-30T11:00:00Z")]
    assert fleet.notes == ("n1: 2 reports of it came; 1 older or unreadable left out.",)
    assert all(p.code != "CD601" for p in fleet.problems)


def test_two_machines_of_one_name_are_told_apart() -> None:
    fleet = picture([("n1", fleet_of.report("n1", 1)), ("n1", fleet_of.report("n1", 2)), *nodes("n2")])
    assert [n.name for n in fleet.nodes] == ["n1~1", "n1~2", "n2"]
    assert fleet.notes[0].startswith("n1: 2 reports bear this name and share no GPU")
    assert differing(fleet) == {}  # the path with the machine's own name, /scratch/n1, is no difference


def test_a_word_that_is_a_nodes_name_elsewhere_is_no_difference() -> None:
    rows = nodes("opt", "n2", "n3")
    for _, document in rows:
        document["snapshot"]["host"]["environment"]["CUDA_HOME"] = "/opt/cuda"
    assert differing(picture(rows)) == {}


def test_a_clock_that_is_wrong_is_told() -> None:
    rows = nodes("n1", "n2", "n3")
    rows[2][1]["snapshot"]["taken_at"] = "1970-01-01T00:00:12Z"
    note = picture(rows, apart=7200).notes[0]
    assert note.startswith("Taken more than 2 h from the others")
    assert note.endswith("n3; an old report, or a clock that is wrong.")


def test_an_older_version_differs_in_nothing_that_it_did_not_look_at() -> None:
    rows = nodes("n1", "n2", "n3")
    old = rows[1][1]
    old["tool"]["version"] = "0.0.9"
    old["snapshot"]["driver"]["init"] = {"kind": "absent", "reason": "not-examined", "detail": "--no-live"}
    fleet = picture(rows)
    assert differing(fleet) == {}
    assert section(fleet, "driver").groups[0].nodes == "n[1-3]"
    assert "0.0.9: n2; 0.1.0: n[1,3]" in fleet.notes[0]


def test_what_was_looked_at_and_refused_is_a_difference() -> None:
    rows = nodes("n1", "n2", "n3")
    rows[1][1]["snapshot"]["driver"]["version"] = {"kind": "absent", "reason": "no-permission", "detail": "EPERM"}
    found = section(picture(rows), "driver").groups[1].differences
    assert found == (Difference(leaf="version", value="absent (no-permission)", expected="580.159.04"),)


def test_ranks_that_see_one_gpu_of_eight_are_compared_by_it() -> None:
    rows = nodes("n1", "n2", "n3")
    for rank, (_, document) in enumerate(rows):
        gpu = document["snapshot"]["gpus"]["value"][0]
        cards = [copy.deepcopy(gpu) for _ in range(8)]
        for i, card in enumerate(cards):
            card["index"] = i
            card["pci"]["value"] = f"00000000:{i:02x}:00.0"
            card["uuid"]["value"] = f"GPU-{rank}-{i}"
        document["snapshot"]["gpus"]["value"] = cards
        document["snapshot"]["host"]["environment"].update(CUDA_VISIBLE_DEVICES=str(rank), NVIDIA_VISIBLE_DEVICES="all")
    rows[1][1]["snapshot"]["gpus"]["value"][5]["ecc"]["value"] = False  # of a GPU that no rank sees
    fleet = picture(rows)
    assert differing(fleet) == {}
    assert section(fleet, "gpu-buses").not_compared == "n[1-3]"


def test_one_gpu_that_is_gone_or_not_as_the_others_is_named_by_its_bus() -> None:
    rows = nodes("n1", "n2", "n3", "n4")
    for _, document in rows:
        gpu = document["snapshot"]["gpus"]["value"][0]
        cards = [copy.deepcopy(gpu) for _ in range(4)]
        for i, card in enumerate(cards):
            card["pci"]["value"] = f"00000000:{i:02x}:00.0"
            card["uuid"]["value"] = f"{card['uuid']['value'][:-1]}{i}"
        document["snapshot"]["gpus"]["value"] = cards
        del document["snapshot"]["host"]["environment"]["NVIDIA_VISIBLE_DEVICES"]
        document["snapshot"]["driver"]["pci"]["value"] = []
    rows[3][1]["snapshot"]["gpus"]["value"].reverse()  # the order is no difference
    del rows[0][1]["snapshot"]["gpus"]["value"][2]
    rows[1][1]["snapshot"]["gpus"]["value"][1]["ecc"]["value"] = False
    fleet = picture(rows)
    assert differing(fleet) == {"n1": ["gpu-buses"], "n2": ["gpus"]}
    assert section(fleet, "gpu-buses").groups[1].differences == (
        Difference(leaf="00000000:02:00.0", value="not there", expected="NVIDIA H200"),
        Difference(leaf="GPUs", value="3", expected="4"),
    )
    ecc = section(fleet, "gpus").groups[1].differences
    assert ecc == (Difference(leaf="ecc", value="no on 00000000:01:00.0; yes on the other 3", expected="yes"),)


def test_a_report_says_its_nodes_name_itself() -> None:
    document = {**fleet_of.report("n1"), "node": "n17"}
    assert [n.name for n in picture([("stdin", document)]).nodes] == ["n17"]


# ---------------------------------------------------------------- hostile


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b'{"schema": "cudnn-doctor/report/1", "tool', "it ends early, after 41 bytes"),
        (b"PK\x03\x04", "it is no JSON: "),
        (b'{"schema": "cudnn-doctor/report/2"}', "no report of cudnn-doctor: its schema is 'cudnn-doctor/report/2'"),
        (b'{"name": "package", "version": 1}', "no report of cudnn-doctor: it is JSON without a schema; "),
        (b'{"schema": "cudnn-doctor/report/1"}', "it does not fit the schema: Object missing required field `tool`"),
        (b'{"schema": "cudnn-doctor/report/1", "x": ' + b"[" * 100_000, "it is nested deeper than a report can be"),
        (b"[1, 2]", "it does not fit the schema: Expected `object`, got `array`"),
    ],
)
def test_what_is_no_report_is_told_and_the_rest_goes_on(data: bytes, reason: str) -> None:
    fleet = picture([*nodes("n1", "n2"), ("n3", data)])
    assert [n.state for n in fleet.nodes] == ["ok", "ok", "unreadable"]
    assert fleet.nodes[2].reason.startswith(reason)
    assert fleet.exit_code == 2


def test_a_section_that_does_not_fit_the_model_is_told() -> None:
    document = fleet_of.report("n3")
    document["snapshot"]["driver"]["version"] = "580"
    fleet = picture([*nodes("n1"), ("n3", document)])
    assert fleet.nodes[1].state == "unreadable"
    assert fleet.nodes[1].reason.startswith("it does not fit the schema: Expected `object`, got `str`")


def test_names_from_hostile_files_break_nothing() -> None:
    rows = [(name, json.dumps(fleet_of.report("x")).encode()) for name in ("n[1-9]", "é\u202e1", "x" * 400, "\x1b[31m")]
    fleet = picture(rows)
    assert len(fleet.nodes) == 4
    assert max(len(n.name) for n in fleet.nodes) == 255
    assert section(fleet, "driver").groups[0].count == 4
