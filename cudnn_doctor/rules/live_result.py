"""What a live check came to, decided once: each rule CD6xx speaks of one kind of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from cudnn_doctor.knowledge.load import knowledge
from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.live import Change, ScenarioResult, Step
from cudnn_doctor.model.report import Fix
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.facts import copies, copy_name, loaded_by
from cudnn_doctor.rules.messages import LoaderMessage, loader_message
from cudnn_doctor.rules.remedies import fix

Kind = Literal[
    "good",
    "not-run",
    "crash",  # ended by a signal or an exit of the library
    "library",  # something that cuDNN opens is missing or does not fit
    "hang",
    "create",  # cudnnCreate refuses
    "call",  # another call refuses
    "stream",  # another stream came back
    "wrong",  # wrong result of the convolution
    "bindings",  # cuda.bindings cannot be used with this driver or interpreter
    "unclear",  # the child itself failed
]
# What cuda.bindings says when the driver lacks a function that it wants.
BINDINGS_ERRORS = ("Failed to get cu", "Failed to dlopen libcuda", 'Function "cu', "ImportError", "ModuleNotFoundError")


# What can bring any failure of a live check about: limits and variables, files, the driver, the device, versions.
FOLLOWS = (
    *("CD507", "CD514", "CD504", "CD513", "CD501", "CD502", "CD508"),
    *("CD312", "CD307", "CD308", "CD306", "CD303", "CD304", "CD309", "CD311"),
    *("CD1", "CD2", "CD4"),
)


class LiveOutcome(NamedTuple):
    """One live check, read."""

    pointer: str  # "/scenarios/0"
    subject: str  # "device 0, cuDNN 9.19.0"
    result: ScenarioResult
    kind: Kind
    step: Step | None = None  # the call or note that says so
    place: str = ""  # JSON pointer of that step
    message: LoaderMessage | None = None


def live_outcomes(case: Case) -> Iterator[LiveOutcome]:
    """Every live check of the report; results of other scenarios are not for these rules."""
    for i, result in enumerate(case.scenarios):
        if result.scenario == "live-check":
            yield _read(f"/scenarios/{i}", result)


def _read(pointer: str, result: ScenarioResult) -> LiveOutcome:
    version = result.cudnn_version or result.cudnn
    subject = f"device {result.device}, cuDNN {version}" if result.device is not None else f"cuDNN {version}"
    fate = result.fate

    def outcome(kind: Kind, index: int | None = None, message: LoaderMessage | None = None) -> LiveOutcome:
        step = None if index is None else result.steps[index]
        place = "" if index is None else f"{pointer}/steps/{index}"
        return LiveOutcome(pointer, subject, result, kind, step, place, message)

    if fate.kind == "not-started":
        return outcome("not-run")
    message = loader_message(fate.stderr)
    if fate.kind in ("signal", "exit"):
        return outcome("library" if message else "crash", message=message)
    if fate.kind == "timeout":
        return outcome("hang")
    failed = next((i for i, s in enumerate(result.steps) if s.status), None)
    if failed is not None:
        step = result.steps[failed]
        if step.call.startswith("dlopen"):
            return outcome("library", failed, loader_message(step.detail))
        return outcome("create" if step.call == "cudnnCreate" else "call", failed)
    notes = {s.call: i for i, s in enumerate(result.steps) if s.status is None}
    bindings = notes.get("cuda.bindings")
    if bindings is not None and result.steps[bindings].value is None:
        return outcome("bindings", bindings)
    if fate.error:
        return outcome("bindings" if any(e in fate.error for e in BINDINGS_ERRORS) else "unclear")
    if "stream kept" in notes and result.steps[notes["stream kept"]].value is False:
        return outcome("stream", notes["stream kept"])
    if "wrong values" not in notes:
        return outcome("unclear")
    if result.steps[notes["wrong values"]].value:
        return outcome("wrong", notes["wrong values"])
    return outcome("good", notes["wrong values"])


def note_of(result: ScenarioResult, name: str) -> tuple[int, Step] | None:
    """A note of the child and its place among the steps."""
    return next(((i, s) for i, s in enumerate(result.steps) if s.call == name and s.status is None), None)


def loaded_by_someone(case: Case, outcome: LiveOutcome) -> bool:
    """The copy that was tried is one that some program here would load; others are tried for information."""
    return any(
        loaded_by(case, copy) or copy.found_by[:1] == ("LD_LIBRARY_PATH",)
        for _, copy in copies(case)
        if outcome.result.cudnn in (copy.path, copy.real_path)
    )


def cause_fixes(causes: tuple[str, ...], verify: str) -> list[Fix]:
    """The first fix of each of the likeliest causes that holds for every framework and system (causes.yaml)."""
    table = {entry["id"]: entry for entry in knowledge("causes")}
    fixes = []
    for cause in causes[:2]:
        if cause == "cudnn-sublibs-mixed":  # another rule names the file and the package of this very machine
            text = "See which sub-library is foreign or missing here, and what brings it in."
            fixes.append(fix(text, "cudnn-doctor check --only CD306 --only CD307", verify=verify))
            continue
        general = next((f for f in table[cause]["fixes"] if not f.get("for")), None)
        if general:
            fixes.append(fix(f"{general['text']}.".replace("..", "."), general.get("command", ""), verify=verify))
    return fixes


def other_copies(case: Case, outcome: LiveOutcome) -> list[Fix]:
    """Another whole copy that is here, to tell a fault of this one from one of the driver."""
    mine = outcome.result.cudnn
    others = [c for _, c in copies(case) if c.kind == "full" and mine not in (c.path, c.real_path)]
    return [
        fix(
            f"Try {copy_name(c)}, another copy that is here.",
            "cudnn-doctor check --all-cudnn",
            verify="cudnn-doctor check --all-cudnn --only CD6",
            change=Change(kind="copy", value=c.real_path),
        )
        for c in others[:1]
    ]


def version_by_files(case: Case, outcome: LiveOutcome) -> str:
    """The version that the copy has by every other reading; "" when it is not known."""
    return next(
        (value_or(c.version, "") for _, c in copies(case) if outcome.result.cudnn in (c.path, c.real_path)),
        "",
    )
