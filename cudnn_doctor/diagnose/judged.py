"""What the compatibility rules say of a text, a machine, or both together, as observations for the ranking.

The rules are those of `check`: the same functions judge a snapshot there and the stated facts here.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cudnn_doctor.diagnose.as_snapshot import as_snapshot, wheel_cudas
from cudnn_doctor.diagnose.ledger import Ledger
from cudnn_doctor.logs.patterns import Knowledge
from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.observations import TokenSet
from cudnn_doctor.model.stated import StatedMachine
from cudnn_doctor.model.versions import below, numbers
from cudnn_doctor.rules import rules_of
from cudnn_doctor.rules.base import Case, Outcome

# What led to an outcome -> the observation that ranking.yaml speaks of.
_BASIS = {
    "driver:too-old": "driver-below-cuda",
    "cuda-gpu:dropped": "gpu-older-than-build",
    "flavour": "cudnn-for-other-cuda",
    "flavour:minor": "cudnn-for-other-cuda",
}
OBSERVED = frozenset({"CD401", "CD402", "CD404", "CD405", "CD412", "CD416"})  # the rules whose outcomes these are
LOADED = frozenset({"CD406", "CD407", "CD408"})  # a text's own comparison of versions is an observation of its own
_FITS = frozenset({"driver:own", "driver:minor-version"})
_CODE = frozenset({"wheel-gpu:none", "wheel-gpu:ptx", "cudnn-gpu:none", "cudnn-gpu:ptx"})


def outcomes(snapshot: Snapshot, knowledge: Knowledge) -> Iterator[tuple[str, Outcome]]:
    """(code, outcome) of every compatibility rule."""
    case = Case(snapshot, load_matrix=lambda: knowledge.matrix)
    for rule in rules_of("compat"):
        for outcome in rule.outcomes(case):
            yield rule.code, outcome


def judge(
    view: Snapshot, stated: StatedMachine, machine: Snapshot | None, knowledge: Knowledge, ledger: Ledger,
    found: TokenSet,
) -> None:  # fmt: skip
    """Adds the observations of the view (`as_snapshot` of the two) to `found`, each with the lines of its facts."""
    for code, outcome in outcomes(view, knowledge):
        if name := _observation(code, outcome, cuda_stated=isinstance(stated.cuda, Known)):
            found.add(name, *ledger.lines(outcome.evidence))
    if isinstance(stated.cuda_opened, Known):  # what a log opened, whatever CUDA the person names
        opened = msgspec.structs.replace(stated, cuda=stated.cuda_opened)
        for _, outcome in outcomes(as_snapshot(opened, knowledge, machine), knowledge):
            if outcome.basis == "cuda-gpu:older":
                found.add("gpu-newer-than-opened", *ledger.lines(outcome.evidence))
    _wheel_against_cuda(stated, knowledge, ledger, found)


def _observation(code: str, outcome: Outcome, *, cuda_stated: bool) -> str:
    """The observation that an outcome amounts to; "" for none."""
    basis = outcome.basis
    if code == "CD401" and outcome.status == "ok" and basis in _FITS:
        return "driver-fits-cuda"
    if basis == "cuda-gpu:older":
        return "gpu-newer-than-cuda" if cuda_stated else "gpu-newer-than-wheel"
    if outcome.status == "problem" and basis in _CODE:
        if outcome.causes == ("gpu-too-old-for-build",):
            return "gpu-older-than-build"
        return "cudnn-older-than-gpu" if basis.startswith("cudnn") else "gpu-newer-than-wheel"
    return _BASIS.get(basis, "") if outcome.status in ("problem", "skipped") else ""


def _wheel_against_cuda(stated: StatedMachine, knowledge: Knowledge, ledger: Ledger, found: TokenSet) -> None:
    """`flavour-differs`: the text's CUDA is of an older major than each that the wheels of the release are for."""
    cuda, version = stated.cuda, stated.framework_version
    if isinstance(cuda, Absent) or isinstance(version, Absent) or "+" in version.value:
        return
    offered = wheel_cudas(stated, knowledge)
    older = bool(offered) and all(below(cuda.value, each) for each in offered)
    if older and numbers(cuda.value)[0] < max(numbers(each)[0] for each in offered):
        found.add("flavour-differs", *ledger.places(cuda, version))
