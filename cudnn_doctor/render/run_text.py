"""What `run` says on stderr after the program's last line: at most 15 lines."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.model.explanation import Cause, Explanation
from cudnn_doctor.model.run_recording import Ending, RunRecording, Stall
from cudnn_doctor.render.clean import disarmed, encodable, one_line, wrap

LINES = 15
MARK = "cudnn-doctor: "
_PROVING = 3  # events that are shown
_LONG = 3  # lines of an event


def verdict_text(run: RunRecording, explanation: Explanation, *, width: int = 100, encoding: str = "utf-8") -> str:
    """The cause, the events that prove it, the line of the program, what to do; "" for a program that ended well and
    gave no reason for a note."""
    if not run.ending.exit_code:
        lines = [f"{MARK}note: {note}" for note in explanation.notes]
    else:
        lines = list(_lines(run, explanation, width))
    lines = [encodable(disarmed(line.rstrip()), encoding) for line in lines]
    return "".join(f"{line}\n" for line in _cut(lines))


def _cut(lines: list[str]) -> list[str]:
    return (
        lines
        if len(lines) <= LINES
        else [*lines[: LINES - 1], "  ... (cudnn-doctor run -o ticket.zip keeps all of it)"]
    )


def _lines(run: RunRecording, explanation: Explanation, width: int) -> Iterator[str]:
    head = f"{MARK}{_ending(run.ending)}. "
    if explanation.verdict == "cause-found":
        best = explanation.causes[0]
        yield from _block(f"{head}CAUSE ({best.confidence}): {best.title} [{best.cause}]", width)
        yield from _evidence(best, width)
        yield from _fixes(best, width)
        return
    yield from _block(f"{head}{explanation.summary}", width)
    for cause in explanation.causes[:2]:
        if cause.evidence:
            yield from _block(f"{cause.cause}: {cause.evidence[0].text}", width, "  - ")
    for lack in explanation.notes[:2]:
        yield from list(_block(lack, width, "  not seen: "))[:2]
    for question in explanation.questions[:2]:
        yield from _block(question.text, width, "  ask: ")


def _ending(ending: Ending) -> str:
    core = " (core dumped)" if ending.core else ""
    how = f"{ending.signal}{core}" if ending.signal else f"exit code {ending.exit_code}"
    return f"The program ended with {how} after {ending.seconds:.1f} s"


def _evidence(cause: Cause, width: int) -> Iterator[str]:
    for evidence in cause.evidence[:_PROVING]:
        where = f", line {evidence.line}" if evidence.line else ""
        because = f" ({evidence.because})" if evidence.because else ""
        first = f"  {evidence.file}{where}: "
        lines = list(_block(f"{evidence.text}{because}", width, first))
        if len(lines) > _LONG:
            lines = list(_block(evidence.text, width, first))
        yield from lines if len(lines) <= _LONG else [*lines[: _LONG - 1], f"{lines[_LONG - 1][: width - 4]} ..."]


def _fixes(cause: Cause, width: int) -> Iterator[str]:
    for fix in cause.fixes[:2]:
        yield from list(_block(fix.text, width, "  do: "))[:2]
        if fix.command:
            yield f"      {one_line(fix.command)}"


def _block(text: str, width: int, first: str = "") -> Iterator[str]:
    for i, line in enumerate(wrap(one_line(text), max(20, width - len(first)))):
        yield (first if not i else " " * min(len(first), 6)) + line


def stall_text(stall: Stall, *, width: int = 100, encoding: str = "utf-8") -> str:
    """A program that stands still, said while it does; nothing is ended."""
    said = (
        f"nothing has moved for {stall.seconds:.0f} s: no output, no processor time, no GPU work. The program goes on."
    )
    lines = list(_block(f"{MARK}{said}", width))
    if stall.stacks:
        lines += [f"  {one_line(line)}" for line in stall.stacks.splitlines() if line.strip()]
    else:
        lines += _block(f"no Python stacks: {stall.stacks_unknown}", width, "  ")
    return "".join(f"{encodable(disarmed(line), encoding)}\n" for line in _cut(lines))
