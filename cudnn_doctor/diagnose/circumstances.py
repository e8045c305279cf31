"""What a text says of the surroundings of a failure (knowledge/circumstances.yaml), and the names in it that make a
command run as it stands."""

from __future__ import annotations

from collections.abc import Sequence

from cudnn_doctor.logs.patterns import Circumstance
from cudnn_doctor.logs.regex import rx

_SCRIPT = r"(?:^|[\s$>])(?:python3?|torchrun|accelerate launch)(?: -[um])?\s+((?:[\w.-]+/)*[\w.-]+\.py)\b"
_FILE = r"libcudnn\w*\.so\.(\d+)|cudnn\w*64_(\d+)(?:\.dll)?"
_FRAME = r'^file "((?:[\w.-]+/)*[\w.-]+\.py)", line \d+, in <module>'


def circumstances(lines: Sequence[str], table: Sequence[Circumstance]) -> dict[str, list[int]]:
    """Token -> index of the first line that gives it. `lines` are in lower case."""
    whole = "\n".join(lines)
    found: dict[str, list[int]] = {}
    for entry in table:
        if not any(word in whole for word in entry.words):
            continue
        for index, line in enumerate(lines):
            if any(w in line for w in entry.words) and (not entry.pattern or rx(entry.pattern).search(line)):
                found[entry.id] = [index]
                break
    return found


def wanted_major(lines: Sequence[str]) -> str:
    """The major version of cuDNN in the file name that a loader asks for ("9" of libcudnn_ops.so.9, cudnn_ops64_9.dll);
    "" where none is named. `lines` are in lower case."""
    for line in lines:
        if ("libcudnn" in line or "64_" in line) and (match := rx(_FILE).search(line)):
            return match[1] or match[2]
    return ""


def script(lines: Sequence[str]) -> str:
    """The program's own file as the text names it (a command line, or the traceback's outermost frame); "" where it
    names none. `lines` keep their case."""
    for pattern in (_SCRIPT, _FRAME):
        for line in lines:
            if ".py" in line and (match := rx(pattern, 2).search(line)):
                return match[1]
    return ""
