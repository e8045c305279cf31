"""How a rule is written: a pure function of a `Case`, with its code, explanation, source and examples beside it.

```
@rule(
    "CD103", title="Kernel module and user-space driver differ", severity="error", owner="node",
    causes=("driver-lib-skew",), explain="...", source="https://...",
    examples=lambda: (("problem", sample({"driver.kernel_module": known("570.86", "example")})), ("ok", sample())),
)
def driver_skew(case: Case) -> Iterator[Outcome]:
    module = see(case, lambda s: s.driver.kernel_module)
    release = module.need()
    ...
    yield problem(subject, title, evidence=(module.shown(),), fixes=(...))   # or passed(...), unknown(...), skip(...)
```

A rule that yields nothing had nothing to judge and is reported as skipped. A fact of the snapshot is named once, by
`see`; its place in the report follows from that. `need` on an absent fact ends the rule with `unknown`, naming the fact
and why it is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from msgspec.structs import replace

from cudnn_doctor.model.base import Absent, Base, Known, value_or
from cudnn_doctor.model.facts import Snapshot, TargetEnv
from cudnn_doctor.model.live import ScenarioResult, Trial
from cudnn_doctor.model.report import Evidence, Finding, Fix, Owner, Severity, Status
from cudnn_doctor.model.versions import NotAVersionError

if TYPE_CHECKING:
    from cudnn_doctor.matrix.tables import Matrix

T = TypeVar("T")


class Case:
    """What a rule may look at: facts, live results, trials, the matrix (loaded on first use), what is required."""

    def __init__(
        self,
        snapshot: Snapshot,
        scenarios: Sequence[ScenarioResult] = (),
        *,
        trials: Sequence[Trial] = (),
        load_matrix: Callable[[], Matrix] | None = None,
        required: Iterable[str] = (),
    ) -> None:
        self.snapshot = snapshot
        self.scenarios = tuple(scenarios)
        self.trials = tuple(trials)
        self.required = frozenset(required)
        self._load_matrix = load_matrix

    @cached_property
    def matrix(self) -> Matrix:
        if self._load_matrix is None:
            from cudnn_doctor.matrix.load import load_matrix

            return load_matrix()
        return self._load_matrix()


class Outcome(Base, frozen=True, kw_only=True):
    """One answer of a rule; `apply` completes it to a `Finding`."""

    status: Status
    subject: str
    title: str
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()
    severity: Severity | None = None  # where it differs from the rule's own
    owner: Owner | None = None
    causes: tuple[str, ...] | None = None
    basis: str = ""  # the rule of the matrix that led to it: "wheel-gpu:none"


def problem(
    subject: str,
    title: str,
    *,
    detail: str = "",
    evidence: Sequence[Evidence],
    fixes: Sequence[Fix],
    severity: Severity | None = None,
    owner: Owner | None = None,
    causes: Sequence[str] | None = None,
) -> Outcome:
    """Something is wrong; evidence and fixes are not optional."""
    return Outcome(
        status="problem",
        subject=subject,
        title=title,
        detail=detail,
        evidence=tuple(evidence),
        fixes=tuple(fixes),
        severity=severity,
        owner=owner,
        causes=None if causes is None else tuple(causes),
    )


def passed(subject: str, title: str, *, evidence: Sequence[Evidence], detail: str = "") -> Outcome:
    """Examined and right; the evidence says what was seen."""
    return Outcome(status="ok", subject=subject, title=title, detail=detail, evidence=tuple(evidence))


def unknown(subject: str, title: str, *, detail: str, evidence: Sequence[Evidence] = ()) -> Outcome:
    """Could not be decided; `detail` says what is missing."""
    return Outcome(status="unknown", subject=subject, title=title, detail=detail, evidence=tuple(evidence))


def skip(subject: str, detail: str, *, basis: str = "", evidence: Sequence[Evidence] = ()) -> Outcome:
    """Does not apply here; `detail` says why."""
    return Outcome(status="skipped", subject=subject, title="", detail=detail, evidence=tuple(evidence), basis=basis)


class UnansweredError(Exception):
    """A fact that a rule needs is absent."""

    def __init__(self, pointer: str, absent: Absent) -> None:
        super().__init__(pointer)
        self.pointer, self.absent = pointer, absent


def need(fact: Known[T] | Absent, pointer: str) -> T:
    """The fact's value; absent facts end the rule with `unknown`. `pointer` is the JSON pointer into the report."""
    if isinstance(fact, Absent):
        raise UnansweredError(pointer, fact)
    return fact.value


class Seen(Generic[T]):
    """A fact that a rule looks at, and its place in the report."""

    def __init__(self, fact: Known[T] | Absent, pointer: str) -> None:
        self.fact, self.pointer = fact, pointer

    def need(self) -> T:
        """The value.

        Raises:
            UnansweredError: the fact is absent.
        """
        return need(self.fact, self.pointer)

    def shown(self, value: str = "") -> Evidence:
        """Evidence, worded for people by `value`; an absent fact says that it is absent."""
        return shown(self.fact, self.pointer, value)


class _Path:
    """Stands for the snapshot where only its way to a fact is asked for."""

    def __init__(self, pointer: str) -> None:
        self.pointer = pointer

    def __getattr__(self, name: str) -> _Path:
        return _Path(f"{self.pointer}/{name}")


def see(case: Case, fact: Callable[[Snapshot], Known[T] | Absent]) -> Seen[T]:
    """A fact of the snapshot, named once: `see(case, lambda s: s.driver.uvm)`."""
    place = cast("Callable[[_Path], _Path]", fact)(_Path("/snapshot"))
    return Seen(fact(case.snapshot), place.pointer)


def told(value: object) -> str:
    """A value as people write it: "sm_80, sm_90" of several."""
    return ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def shown(fact: Known[T] | Absent, pointer: str, value: str = "") -> Evidence:
    """Evidence whose value is worded for people; an absent fact says that it is absent."""
    if isinstance(fact, Absent):
        return Evidence(pointer=pointer, value=f"absent: {fact.reason}", source=fact.detail)
    return Evidence(pointer=pointer, value=value or told(fact.value), source=fact.source)


CATEGORIES = {
    "CD1": "Driver",
    "CD2": "GPU",
    "CD3": "cuDNN",
    "CD4": "Compatibility",
    "CD5": "Environment",
    "CD6": "Live",
}


def category_of(code: str) -> str:
    """The category of a code; "Other" of codes that a later version added."""
    return CATEGORIES.get(code[:3], "Other")


class Rule(Base, frozen=True, kw_only=True):
    """A rule and all that belongs to it. Codes are for ever; their first digit is the category."""

    code: str
    title: str  # what it checks, as a noun phrase
    severity: Severity
    owner: Owner
    causes: tuple[str, ...]
    explain: str
    source: str
    examples: Callable[[], tuple[tuple[Status, Case], ...]]
    check: Callable[[Case], Iterable[Outcome]]
    required: bool = False  # without its answer there is no verdict (exit 2)
    requirements: tuple[str, ...] = ()  # what of `--require` it answers
    follows: tuple[str, ...] = ()  # beginnings of the codes that can bring its problem about, the likeliest first

    @property
    def category(self) -> str:
        """The group that its code belongs to: "Driver"."""
        return category_of(self.code)

    def apply(self, case: Case) -> tuple[Finding, ...]:
        """All findings of this rule; an exception inside the rule is a finding with status `crashed`."""
        return tuple(self._finding(o, case) for o in self.outcomes(case))

    def outcomes(self, case: Case) -> list[Outcome]:
        """What the rule says of a case, at least one outcome."""
        try:
            found = list(self.check(case))
        except UnansweredError as e:
            why = f"{e.pointer} is absent ({e.absent.reason}{': ' + e.absent.detail if e.absent.detail else ''})"
            found = [unknown("", self.title, detail=why)]
        except NotAVersionError as e:  # of a fact: the matrix is checked when it is loaded
            found = [unknown("", self.title, detail=str(e))]
        except Exception as e:
            found = [Outcome(status="crashed", subject="", title=self.title, detail=f"{type(e).__name__}: {e}")]
        return found or [skip("", "nothing here to judge")]

    def _finding(self, o: Outcome, case: Case) -> Finding:
        return Finding(
            code=self.code,
            status=o.status,
            severity=o.severity or self.severity,
            owner=o.owner or self.owner,
            subject=o.subject,
            title=o.title or self.title,
            detail=o.detail,
            evidence=o.evidence,
            fixes=tuple(_of_environment(f, case.snapshot.patient) for f in o.fixes),
            causes=() if o.status != "problem" else self.causes if o.causes is None else o.causes,
        )


def _of_environment(fix: Fix, patient: TargetEnv) -> Fix:
    """A fix whose `cudnn-doctor check` looks at the environment that was examined: without the --env of this call it
    would look at another one, and find that all is well."""
    if patient.chosen_by != "--env" or "cudnn-doctor check" not in fix.command + fix.verify:
        return fix
    place = patient.prefix if patient.kind != "system" else value_or(patient.python, patient.prefix)
    check = f"cudnn-doctor check --env {quote(place)}"
    command, verify = (text.replace("cudnn-doctor check", check) for text in (fix.command, fix.verify))
    return replace(fix, command=command, verify=verify)


def rule(
    code: str,
    *,
    title: str,
    severity: Severity,
    owner: Owner,
    causes: tuple[str, ...],
    explain: str,
    source: str,
    examples: Callable[[], tuple[tuple[Status, Case], ...]],
    required: bool = False,
    requirements: tuple[str, ...] = (),
    follows: tuple[str, ...] = (),
) -> Callable[[Callable[[Case], Iterable[Outcome]]], Rule]:
    """Makes a `Rule` of the decorated function."""

    def wrap(check: Callable[[Case], Iterable[Outcome]]) -> Rule:
        return Rule(
            code=code,
            title=title,
            severity=severity,
            owner=owner,
            causes=causes,
            explain=explain,
            source=source,
            examples=examples,
            check=check,
            required=required,
            requirements=requirements,
            follows=follows,
        )

    return wrap
