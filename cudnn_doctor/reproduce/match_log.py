"""`reproduce --from LOG`: which states could explain a log, and which of them show here what the log shows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from cudnn_doctor.knowledge.status import cudnn_statuses, cudnn_statuses_named
from cudnn_doctor.model.explanation import Explanation
from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.reproduction import Agreement, Reproduction
from cudnn_doctor.reproduce.compare import ran
from cudnn_doctor.scenarios import scenarios

CONTROL = "valid-stream"
NUMBER = r"\((\d{1,4}) vs\. 0\)|CUDNN failure (\d{1,4}):|CUDNN error\((\d{1,4})\)|unknown cudnn status: (\d{1,4})"
# Statuses of cuDNN up to 8 and of cuDNN 9 that say the same. What cudnnSetStream means by 7 is 2007, not the alias.
SAME = (
    {"MAPPING_ERROR", "BAD_PARAM_STREAM_MISMATCH"},
    {"ALLOC_FAILED", "INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"},
    {"VERSION_MISMATCH", "SUBLIBRARY_VERSION_MISMATCH"},
    {"ARCH_MISMATCH", "NOT_SUPPORTED_ARCH_MISMATCH"},
    {"EXECUTION_FAILED", "EXECUTION_FAILED_CUDA_DRIVER", "EXECUTION_FAILED_CUDART", "EXECUTION_FAILED_CUBLAS"},
)


def states_for(explanation: Explanation) -> tuple[str, ...]:
    """Ids of the states that make one of the log's causes, and of the control.

    Raises:
        ValueError: no state makes any of them.
    """
    causes = {c.cause for c in explanation.causes}
    found = tuple(k for k, (_, s) in scenarios().items() if s.cause in causes and k != CONTROL)
    if not found:
        named = ", ".join(sorted(causes)) or "none"
        raise ValueError(f"no state of `reproduce` makes a cause of this log ({named}); `reproduce --list` shows all.")
    return (CONTROL, *found)


def with_agreements(document: Reproduction, explanation: Explanation) -> Reproduction:
    """The document with what each of the log's causes does here, the log's best cause first."""
    wanted = {n for status in _statuses(explanation) for n in _family(status)}
    found = [
        _agreement(c.cause, k, wanted, [r for r in document.scenarios if r.scenario == k])
        for c in explanation.causes
        for k, (_, s) in scenarios().items()
        if s.cause == c.cause and k != CONTROL
    ]
    note = "The log names no cuDNN status; the states show what they answer here." if not wanted else ""
    notes = (*document.notes, note) if note else document.notes
    return msgspec.structs.replace(document, agreements=tuple(found), notes=notes)


def _statuses(explanation: Explanation) -> Iterator[str]:
    """Names of the cuDNN statuses in the lines that the explanation cites, without CUDNN_STATUS_."""
    for line in {e.text for c in explanation.causes for e in c.evidence}:
        yield from re.findall(r"CUDNN_STATUS_(\w+)", line)
        for groups in re.findall(NUMBER, line):
            for status in cudnn_statuses(int(next(filter(None, groups)))):
                yield status.name.removeprefix("CUDNN_STATUS_")


def _family(name: str) -> set[str]:
    return next((same for same in SAME if name in same), {name} if cudnn_statuses_named(name) else set())


def _agreement(cause: str, scenario: str, wanted: set[str], results: list[ScenarioResult]) -> Agreement:
    begun = [r for r in results if ran(r)]
    if not begun:
        why = next((r.skipped for r in results if r.skipped), "not among the states that were run")
        return Agreement(cause=cause, scenario=scenario, agrees=None, why=why)
    failed = [s for r in begun for s in r.steps if s.status and s.call.startswith("cudnn")]
    same = next((s for s in failed if s.name.removeprefix("CUDNN_STATUS_") in wanted), None)
    if same:
        why = f"{same.call} answers {same.status} {same.name} here too"
        return Agreement(cause=cause, scenario=scenario, agrees=True, why=why)
    ends = next((r.fate for r in begun if r.fate.kind != "completed"), None)
    if ends:
        why = f"{ends.last_step or 'the process'} ends with {ends.signal or ends.kind} here"
    elif failed:
        why = f"{failed[0].call} answers {failed[0].status} {failed[0].name} here"
    else:
        why = "every cuDNN call succeeds here"
    return Agreement(cause=cause, scenario=scenario, agrees=False if wanted else None, why=why)
