"""An uncaught Python exception at the end of a program's output that has nothing to do with the GPU."""

from __future__ import annotations

import re

from cudnn_doctor.model.run_recording import RunRecording
from cudnn_doctor.postmortem.deaths import INSTALLED, text_of
from cudnn_doctor.postmortem.finding import LIKELY, Finding, event

_START = "Traceback (most recent call last):"
_LAST = re.compile(
    r"^(?!File\b)([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Iteration|Timeout|[A-Z]\w+)?)(?::|$)"
)
_PLACE = re.compile(r'^\s+File "([^"]+)", line (\d+)(?:, in (.+))?$')
_GPU = re.compile(
    r"cuda|cudnn|cublas|cusolver|cufft|nccl|\bgpu\b|\bxla\b|device-side|out of memory|resource_?exhausted|stream|"
    r"PTX|driver|jaxlib|internal: |failed_precondition",
    re.IGNORECASE,
)


def python_error(run: RunRecording) -> Finding | None:
    """The last traceback of the output, where its exception names nothing of the GPU."""
    if not run.ending.exit_code or run.ending.signal:
        return None
    text = text_of(run).replace("\r", "")
    at = text.rfind(_START)
    if at < 0:
        return None
    lines = text[at:].splitlines()[1:]
    last = next((line for line in lines if line and not line[0].isspace() and _LAST.match(line)), "")
    if not last or _GPU.search(last):
        return None
    places = [m for line in lines if (m := _PLACE.match(line))]
    own = [m for m in places if not INSTALLED.search(m[1])] or places
    evidence = [event(last.strip(), "the exception that nobody caught", source="its output")]
    if own:
        where = f"{own[-1][1]}:{own[-1][2]}" + (f" in {own[-1][3]}" if own[-1][3] else "")
        evidence.append(event(where, "the innermost line of the program's own code", source="its output"))
    return Finding(cause="python-error", points=LIKELY + 2, evidence=tuple(evidence))
