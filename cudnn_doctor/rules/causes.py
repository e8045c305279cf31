"""Findings as a tree: one is the cause, others follow from it.

A rule says in `follows` which findings can bring its own about. That they do is known in two ways: both rest on the
same copy, folder, variable, limit, device or driver (what their evidence points at), or a trial has changed one thing
and both are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from msgspec.structs import replace

from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.live import Change, ScenarioResult, Trial
from cudnn_doctor.model.report import Finding, Fix, Owner, Proof
from cudnn_doctor.model.verdict import RANK
from cudnn_doctor.rules.base import Case, Rule
from cudnn_doctor.rules.facts import copy_at, own_searches
from cudnn_doctor.rules.remedies import quoted

PATH_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD")
SHARED_BY_ALL = ("process", "driver")  # every live check rests on them: sharing one proves little


def linked(case: Case, findings: Sequence[Finding], rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """The findings with what they follow from, the fixes with what their trials proved, and each cause as severe as the
    worst that follows from it."""
    tree = _Tree(case, [_with_proofs(case, f) for f in findings], rules)
    tree.by_what_they_share()
    tree.by_trials()
    return tuple(_with_packages(case, f) for f in tree.result())


class _Tree:
    """Parents by place among the findings; only problems have any."""

    def __init__(self, case: Case, findings: list[Finding], rules: Sequence[Rule]) -> None:
        self.case, self.findings, self.rules = case, findings, {r.code: r for r in rules}
        self.problems = [i for i, f in enumerate(findings) if f.status == "problem"]
        self.parent: dict[int, int] = {}
        self.things = {i: frozenset(rests_on(case, findings[i])) for i in self.problems}

    def by_what_they_share(self) -> None:
        for i in self.problems:
            found = self._cause_of(i)
            if found is not None:
                self.parent[i] = found

    def _cause_of(self, i: int) -> int | None:
        finding = self.findings[i]
        rule = self.rules.get(finding.code)
        for prefix in rule.follows if rule else ():
            for j in self.problems:
                other = self.findings[j]
                if j != i and other.code != finding.code and other.code.startswith(prefix) and self._explains(j, i):
                    return j
        return None

    def _explains(self, j: int, i: int) -> bool:
        shared = self.things[j] & self.things[i]
        cause, effect = self.findings[j].severity, self.findings[i].severity
        if any(thing.startswith("copy ") for thing in shared):
            return True
        strong = bool(shared.difference(SHARED_BY_ALL)) and (cause != "note" or effect == "note")
        return strong or (bool(shared) and RANK[cause] >= RANK[effect])

    def by_trials(self) -> None:
        """What is gone with one change is of one cause: the finding that says to make it."""
        for trial in sorted((t for t in self.case.trials if not t.also), key=lambda t: -len(t.cleared)):
            gone = [i for i in self.problems if key(self.findings[i], self.case.scenarios) in trial.cleared]
            owners = [i for i in self.problems if any(f.change == trial.change for f in self.findings[i].fixes)]
            if not trial.cleared or not owners or trial.change.kind == "copy":
                continue
            roots = {self.root(i) for i in owners}
            cause = min(roots, key=lambda i: (i not in gone and i not in owners, self._depth(self.findings[i].code)))
            for i in (*gone, *roots):
                top = self.root(i)
                if top != cause and (top in gone or top in roots):
                    self.parent[top] = cause

    def _depth(self, code: str) -> int:
        return depths(tuple((r.code, r.follows) for r in self.rules.values())).get(code, 0)

    def root(self, i: int) -> int:
        while i in self.parent:
            i = self.parent[i]
        return i

    def result(self) -> Iterator[Finding]:
        below: dict[int, list[int]] = {}
        for i in self.problems:
            if i in self.parent:
                below.setdefault(self.root(i), []).append(i)
        for i, finding in enumerate(self.findings):
            if i in self.parent:
                yield replace(finding, consequence_of=f"/findings/{self.parent[i]}")
            elif i in below:
                yield _as_cause(finding, [self.findings[j] for j in below[i]])
            else:
                yield finding


def owned(findings: Sequence[Finding], owner: Owner) -> tuple[Finding, ...]:
    """The findings of one owner. What follows from another's is that one's: a user's folder drains no node."""

    def root(i: int) -> int:
        while findings[i].consequence_of:
            i = place_of(findings[i])
        return i

    kept = [i for i, f in enumerate(findings) if findings[root(i)].owner == owner or f.status == "crashed"]
    new = {i: at for at, i in enumerate(kept)}
    return tuple(
        replace(findings[i], consequence_of=f"/findings/{new[place_of(findings[i])]}")
        if findings[i].consequence_of
        else findings[i]
        for i in kept
    )


def place_of(finding: Finding) -> int:
    """The place among the findings of what this one follows from."""
    return int(finding.consequence_of.rpartition("/")[2])


def depths(follows: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, int]:
    """How far a code can be from a cause: 0 where it follows from nothing.

    Raises:
        ValueError: codes follow from each other in a circle.
    """
    by_code = {code: {c for c, _ in follows if c != code and c.startswith(prefixes)} for code, prefixes in follows}

    @cache
    def depth(code: str, above: tuple[str, ...] = ()) -> int:
        if code in above:
            raise ValueError(" follows from ".join((*above, code)))
        return max((depth(c, (*above, code)) + 1 for c in by_code[code]), default=0)

    return {code: depth(code) for code in by_code}


def _as_cause(finding: Finding, below: Sequence[Finding]) -> Finding:
    """As severe as the worst that follows; with a proved cure of theirs where it has none itself."""
    severity = max((f.severity for f in (finding, *below)), key=RANK.__getitem__)
    fixes = finding.fixes
    if not any(_proved(f) for f in fixes):
        adopted = next((f for b in below for f in b.fixes if _proved(f)), None)
        fixes = (adopted, *fixes) if adopted else fixes
    return replace(finding, severity=severity, fixes=fixes)


def _proved(fix: Fix) -> bool:
    return fix.proof is not None and fix.proof.outcome == "proved"


# ---------------------------------------------------------------- what a finding rests on


def rests_on(case: Case, finding: Finding) -> Iterator[str]:
    """ "copy /opt/old/libcudnn.so.9", "variable LD_LIBRARY_PATH", "device 0": what its evidence points at."""
    for evidence in finding.evidence:
        parts = evidence.pointer.split("/")[1:]
        if parts[:1] == ["snapshot"]:
            yield from _in_snapshot(case, parts[1:])
        elif parts[0] == "scenarios" and len(parts) > 1:
            result = case.scenarios[int(parts[1])]
            yield from ("process", "driver", f"device {result.device}")
            yield from _of_file(case, result.cudnn)


def _in_snapshot(case: Case, parts: list[str]) -> Iterator[str]:
    snapshot = case.snapshot
    match parts:
        case ["cudnn", place, *_]:
            yield from _of_file(case, snapshot.cudnn[int(place)].real_path)
        case ["resolutions", place, *_]:
            search = snapshot.resolutions[int(place)]
            yield from _of_step(search.step)
            for path in (search.consumer, value_or(search.real_path, ""), search.stopped_at):
                yield from _of_file(case, path)
        case ["gpus", "value", place, *_]:
            yield f"device {place}"
        case ["driver", "init", *_]:
            yield from ("process", "driver")
        case ["driver", "libcuda", place, *_]:
            yield "driver"
            yield from _of_step(snapshot.driver.libcuda[int(place)].found_by)
        case ["driver", *_] | ["host", "container", *_]:
            yield "driver"
        case ["host", "limits", name, *_]:
            yield from ("process", f"limit {name}")
        case ["host", "environment", name, *_]:
            yield from ("process", f"variable {name}")
        case ["overwrites", place, *_]:
            yield f"folder {snapshot.overwrites[int(place)].directory}"


def _of_step(step: str) -> Iterator[str]:
    yield from (f"variable {name}" for name in PATH_VARIABLES if step.startswith(name))


def _of_file(case: Case, path: str) -> Iterator[str]:
    if not path.startswith("/"):
        return
    copy = copy_at(case, path)
    yield f"folder {copy.directory if copy else path.rpartition('/')[0]}"
    if copy:
        yield f"copy {copy.real_path}"
        for _, search in own_searches(case, copy):  # its parts may lie in another's folder
            part = value_or(search.real_path, "")
            if search.wanted.startswith("libcudnn_") and part:
                yield f"folder {part.rpartition('/')[0]}"
        yield from (f"variable {name}" for name in PATH_VARIABLES if name in copy.found_by[:1])


# ---------------------------------------------------------------- what trials proved


def key(finding: Finding, scenarios: Sequence[ScenarioResult]) -> str:
    """What a finding is called in a trial: code and subject, and of a live check the file that it opened."""
    places = [e.pointer.split("/")[2] for e in finding.evidence if e.pointer.startswith("/scenarios/")]
    file = f" {scenarios[int(places[0])].cudnn}" if places else ""
    return f"{finding.code} {finding.subject}{file}"


def _with_proofs(case: Case, finding: Finding) -> Finding:
    """Each fix with its proof; proved ones first, the one that clears most before the others, useless ones last."""
    if finding.status != "problem":
        return finding
    tried = {_named(t.change): t for t in case.trials if not t.also}
    together = [t for t in case.trials if t.also and t.works]
    name = key(finding, case.scenarios)
    fixes = [
        _with_others(_with_proof(f, tried.get(_named(f.change)) if f.change else None, name), together)
        for f in finding.fixes
    ]
    order = {"proved": 0, "partly": 1, "not-tried": 2, "no-effect": 3}

    def rank(fix: Fix) -> tuple[int, int]:
        trial = tried.get(_named(fix.change)) if fix.change else None
        return order[fix.proof.outcome] if fix.proof else 2, -len(trial.cleared) if trial and trial.works else 0

    return replace(finding, fixes=tuple(sorted(fixes, key=rank)))


def _with_packages(case: Case, finding: Finding) -> Finding:
    """An error that says which of its fixes no child can try, and the first of all that `try --fix` would take."""
    if finding.status != "problem" or finding.severity != "error":
        return finding
    can = [f for f in finding.fixes if f.change and f.change.kind in ("packages", "variable")]
    fixes = (f if f.proof else _untried(case, finding.code, f, f in can[:1]) for f in finding.fixes)
    return replace(finding, fixes=tuple(fixes))


def _untried(case: Case, code: str, fix: Fix, first: bool) -> Fix:
    if fix.change is None or fix.change.kind != "packages":
        return fix
    here = f" --env {quoted(case.snapshot.patient.prefix)}" if case.snapshot.patient.chosen_by == "--env" else ""
    wheels = "pip" in fix.command and "--target" not in fix.command
    can = f"; `cudnn-doctor try --fix {code}{here}` can" if first and wheels else ""
    return replace(fix, proof=Proof(outcome="not-tried", text=f"not tried: it changes packages{can}"))


def _named(change: Change) -> tuple[str, str, str | None]:
    return change.kind, change.name, change.value


def _with_proof(fix: Fix, trial: Trial | None, name: str) -> Fix:
    if trial is None:
        return fix
    if trial.works is None:
        return replace(fix, proof=Proof(outcome="not-tried", text=f"not tried: {trial.outcome}"))
    if trial.works and (trial.change.kind == "copy" or name in trial.cleared):
        text = f"proved: with {told(trial.change)} {trial.outcome} ({trial.ms / 1000:.1f} s)"
        return replace(fix, proof=Proof(outcome="proved", text=text))
    if name in trial.cleared:
        return replace(fix, proof=Proof(outcome="partly", text=f"tried: this goes away, and then: {trial.outcome}"))
    return replace(fix, proof=Proof(outcome="no-effect", text=f"tried: does not help: {trial.outcome}"))


def _with_others(fix: Fix, together: Sequence[Trial]) -> Fix:
    """A fix that mends a part, with what mended the rest."""
    if fix.change is None or fix.proof is None or fix.proof.outcome != "partly":
        return fix
    for trial in together:
        changes = (trial.change, *trial.also)
        if fix.change in changes:
            others = " and ".join(told(c) for c in changes if c != fix.change)
            text = f"{fix.proof.text}; proved together with {others}: {trial.outcome} ({trial.ms / 1000:.1f} s)"
            return replace(fix, proof=replace(fix.proof, text=text))
    return fix


def told(change: Change) -> str:
    """ "LD_LIBRARY_PATH=/opt/new", "CUDA_FORCE_PTX_JIT unset", "no limit on address space"."""
    if change.kind == "variable":
        return f"{change.name} unset" if change.value is None else f"{change.name}={change.value}"
    if change.kind == "limit":
        what = change.name.replace("_", " ")
        return f"no limit on {what}" if change.value is None else f"{change.value} as limit on {what}"
    return f"the copy {change.value}"


def wanted(findings: Iterable[Finding]) -> tuple[Change, ...]:
    """The changes that a child can try, where anything is an error: each once, those of the worst findings first.
    Another copy is worth a trial only where nothing else could be changed."""
    bad = sorted((f for f in findings if f.status == "problem"), key=lambda f: -RANK[f.severity])
    if not bad or bad[0].severity != "error":
        return ()
    changes = [fix.change for f in bad for fix in f.fixes if fix.change and fix.change.kind != "packages"]
    found = [c for c in changes if c.kind != "copy"] or changes
    return tuple({_named(c): c for c in found}.values())
