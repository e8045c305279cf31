"""Folded names of nodes, with and without ClusterShell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudnn_doctor.merge import nodeset
from cudnn_doctor.model.errors import UsageError

CASES = (
    ("n[1-3,5]", ("n1", "n2", "n3", "n5")),
    ("gpu[08-11]", ("gpu08", "gpu09", "gpu10", "gpu11")),
    ("login,n7", ("login", "n7")),
    ("n[9-10].cluster", ("n9.cluster", "n10.cluster")),
    ("rack-2-n[1-2]", ("rack-2-n1", "rack-2-n2")),
)


@pytest.fixture(params=[True, False], ids=["ClusterShell", "own"])
def with_clustershell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        pytest.importorskip("ClusterShell")
    else:
        monkeypatch.setattr(nodeset, "_clustershell", lambda: None)
    nodeset._folded.cache_clear()
    return bool(request.param)


@pytest.mark.usefixtures("with_clustershell")
@pytest.mark.parametrize(("folded", "names"), CASES)
def test_fold_and_expand_undo_each_other(folded: str, names: tuple[str, ...]) -> None:
    assert nodeset.fold(reversed(names)) == folded
    assert nodeset.expand(folded) == names


def test_a_range_never_mixes_paddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodeset, "_clustershell", lambda: None)
    nodeset._folded.cache_clear()
    assert nodeset.fold(["n9", "n10", "n011", "n012"]) == "n[9-10,011-012]"
    assert nodeset.expand("n[9-10,011-012]") == ("n9", "n10", "n011", "n012")


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("wrong", ["n[1-3", "n[3-1]", "n[a-b]", "n[1-999999999]", "n[0-999][0-999]"])
def test_what_is_no_set_is_told(wrong: str, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if own:
        monkeypatch.setattr(nodeset, "_clustershell", lambda: None)
    with pytest.raises(UsageError, match="is not a set of nodes"):
        nodeset.expand(wrong)


def test_a_group_needs_clustershell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodeset, "_clustershell", lambda: None)
    with pytest.raises(UsageError, match="ClusterShell, which is not installed here"):
        nodeset.expand("@gpu")


@given(st.sets(st.from_regex(r"[a-z]{1,3}-?[0-9]{0,3}[a-z]{0,2}", fullmatch=True), min_size=1, max_size=30))
def test_whatever_is_folded_comes_back(names: set[str]) -> None:
    folded = nodeset.fold(names)
    assert set(nodeset.expand(folded)) == names
