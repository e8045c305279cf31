"""What the engines have in common: the plan, one process with a deadline, and what each node left behind."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from cudnn_doctor.merge.collecting import Arrival
from cudnn_doctor.merge.streams import LARGEST
from cudnn_doctor.model.fleet import NodeState

TICK = 0.1  # seconds between two looks at a process
GRACE = 3.0  # seconds that a process has to end after SIGTERM
STOPPED = ("137", "143")  # what a shell says of a command that SIGKILL or SIGTERM ended
WORDS = 300  # characters of a node's last words
# What a node runs: its report, what it said and how it ended go to files that bear the node's name.
SCRIPT = 'd=$1 n=$2; shift 2; "$@" --output "$d/$n.json" 2> "$d/$n.err"; echo $? > "$d/$n.exit"'


class Plan(NamedTuple):
    """What is to be run where."""

    nodes: tuple[str, ...]  # asked for; none: all that the engine knows
    check: tuple[str, ...]  # the command on a node; its report goes to stdout
    folder: Path  # for reports
    timeout: float  # seconds for everything
    options: tuple[str, ...]  # for the engine
    say: Callable[[str], None]  # a remark for the user
    show: Callable[[str], None]  # the line of progress


class Ended(NamedTuple):
    """How a process ended."""

    code: int | None  # None: it was ended by us
    errors: str  # its stderr, the first LARGEST bytes
    interrupted: bool = False  # by Ctrl-C


def run(
    command: Sequence[str],
    plan: Plan,
    until: float,
    *,
    progress: Callable[[], str] = str,
    output: IO[bytes] | None = None,
    quiet: bool = False,
) -> Ended:
    """Runs a command until it ends or `until` (by time.monotonic) is there, and its process group with it.

    Raises:
        OSError: the command cannot be started.
    """
    if not quiet:
        plan.say(shlex.join(command))
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        code, interrupted = None, False
        try:
            while (code := process.poll()) is None and time.monotonic() < until:
                plan.show(progress())
                time.sleep(TICK)
        except KeyboardInterrupt:  # what has come until now is still to be shown
            interrupted = True
        if code is None:
            _end(process)
        plan.show("")
        errors.seek(0)
        return Ended(code, errors.read(LARGEST).decode("utf-8", "replace"), interrupted)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
            return


def progress(nodes: Sequence[str], folder: Path) -> str:
    """ "3 of 8 done, 4 running, 1 not started", by the files that nodes have left."""
    ended = sum(_file(folder, n, "exit").exists() for n in nodes)
    started = sum(_file(folder, n, "err").exists() for n in nodes)
    return f"{ended} of {len(nodes)} done, {started - ended} running, {len(nodes) - started} not started"


def started(node: str, folder: Path) -> bool:
    return _file(folder, node, "err").exists()


def ended(node: str, folder: Path) -> bool:
    """Whether the command on a node came to an end of its own."""
    return _status(folder, node) not in ("", *STOPPED)


def _status(folder: Path, node: str) -> str:
    """Exit status as text; "" while there is none."""
    file = _file(folder, node, "exit")
    return file.read_text().strip() if file.exists() else ""


def _file(folder: Path, node: str, ending: str) -> Path:
    return folder / f"{node}.{ending}"


def from_files(
    nodes: Iterable[str], plan: Plan, why: Mapping[str, tuple[NodeState, str]], *, late: bool
) -> Iterator[Arrival]:
    """What SCRIPT left on each node; `why` holds what the engine said of nodes that left nothing. Once it is late, one
    that was stopped by a signal was stopped by us."""
    for node in nodes:
        report = _file(plan.folder, node, "json")
        if report.exists():
            with report.open("rb") as file:
                data = file.read(LARGEST + 1)
            yield Arrival(node, str(report), data)
        elif (code := _status(plan.folder, node)) and not (late and code in STOPPED):
            words = _file(plan.folder, node, "err").read_bytes()[-LARGEST:].decode("utf-8", "replace")
            yield Arrival(node, "", state="failed", reason=failed(code, words))
        elif started(node, plan.folder):
            yield Arrival(node, "", state="timed-out", reason="it began and gave no report in time")
        else:
            state, reason = why.get(node, ("not-reached", "the task did not begin on it"))
            yield Arrival(node, "", state=state, reason=reason)


def failed(code: object, words: str) -> str:
    """Why a node that ran the command has no report: exit status and last words."""
    lines = words.strip().splitlines()
    last = lines[-1].strip()[:WORDS] if lines else ""
    return f"exit {code} without a report{': ' + last if last else ''}"
