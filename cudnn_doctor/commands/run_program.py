"""The whole of `run`: the program unchanged, and when it has died what killed it, in a few lines on stderr.

A call without options comes here without the parser (`__main__`): it must not be felt.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress

from cudnn_doctor.commands.console import remark
from cudnn_doctor.observe import settings
from cudnn_doctor.observe.wrapper import NOT_FOUND, NOT_RUN, Program, end_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cudnn_doctor.observe.gpu_watch import GpuWatch
    from cudnn_doctor.observe.watch import Watch
    from cudnn_doctor.observe.wrapper import Ended

QUICK = 0.05  # seconds; a program that is over by then is not watched


class Wanted:
    """What the user asked for."""

    __slots__ = ("output", "recording", "redact", "stall", "trace")

    def __init__(
        self, *, trace: bool = False, stall: float = 0.0, output: Path | None = None, recording: Path | None = None,
        redact: bool = True,
    ) -> None:  # fmt: skip
        self.trace, self.stall, self.output, self.recording, self.redact = trace, stall, output, recording, redact


def run_program(command: Sequence[str], wanted: Wanted, closed: frozenset[int]) -> int:
    """Runs it and answers its exit status; a signal that ended it ends this process as well.

    Args:
        closed: descriptors of 0, 1, 2 that our caller had closed.
    """
    folder, why_not = _folder()
    added, lacks = _environment(command[0], folder, wanted)
    if why_not:
        lacks.append(why_not)
    try:
        program = Program(command, {**os.environ, **added}, closed=closed, folder=folder)
    except OSError as error:
        _remove(folder)
        remark(f"{command[0]} could not be started: {error.strerror}.")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN
    session = _Session(program, folder, wanted)
    try:
        ended = program.wait(session.tick)
        session.tell(command, ended, added, lacks)
    finally:
        _remove(folder)
    return end_like(ended)


class _Session:
    """The observers of one run. Whatever fails in them is ours alone: the program goes on."""

    def __init__(self, program: Program, folder: str, wanted: Wanted) -> None:
        from cudnn_doctor.observe.gpu_watch import GpuWatch

        self._program, self._folder, self._wanted = program, folder, wanted
        self._gpu: GpuWatch = GpuWatch(program.started)
        self._watch: Watch | None = None
        self._failure = ""
        self._told_stalls = 0

    def tick(self, seconds: float) -> float:
        """See `Program.wait`."""
        if seconds < QUICK:
            return QUICK - seconds
        try:
            return self._look(seconds)
        except Exception as error:  # the program's life must not depend on what we read of it
            self._failure = f"the observer stopped: {type(error).__name__}: {error}"
            return 3600.0

    def _look(self, seconds: float) -> float:
        from cudnn_doctor.observe.watch import FIRST, Watch

        if self._watch is None:
            self._watch = Watch(self._program, self._gpu, self._folder, stall=self._wanted.stall)
            return FIRST
        pause = self._watch.look(seconds)
        for stall in self._watch.stalls[self._told_stalls :]:
            from cudnn_doctor.render.run_text import stall_text

            _say(stall_text(stall))
        self._told_stalls = len(self._watch.stalls)
        return pause

    def tell(self, command: Sequence[str], ended: Ended, added: dict[str, str], lacks: list[str]) -> None:
        """Says what killed the program; nothing when it ended well, unless the recorder saw something worth a note."""
        wanted = self._wanted
        events = any(name.endswith(".events") for name in _names(self._folder))
        quiet = not ended.code and not wanted.output and not wanted.recording and not events
        if quiet:
            self._gpu.end(last_word=False)
            return
        try:
            from cudnn_doctor.observe.watch import Watch

            watch = self._watch or Watch(self._program, self._gpu, self._folder)
            recording = watch.recording(
                command, ended, added, [*lacks, *filter(None, [self._failure])], trace=wanted.trace
            )
            from cudnn_doctor.commands import run_report

            _say(run_report.report(recording, wanted))
        except Exception as error:  # a fault of ours is one line, and the exit status stays the program's
            remark(f"the run could not be judged: {type(error).__name__}: {error}")


def _say(text: str) -> None:
    if text and sys.stderr is not None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:  # closed or full: the exit status still stands
            return


def _folder() -> tuple[str, str]:
    """A folder for logs of libraries, readable by this user alone; or "" and why there is none."""
    base = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  tempfile costs 10 ms of the program's start
    path = os.path.abspath(f"{base}/cudnn-doctor-{os.getpid()}-{os.urandom(6).hex()}")
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        return "", f"no folder for the libraries' logs and the recorder in {base}: {error.strerror}"
    return path, ""


def _remove(folder: str) -> None:
    for name in _names(folder):
        with suppress(OSError):  # whatever the program did there must not cost it its exit status
            os.unlink(f"{folder}/{name}")
    with suppress(OSError):
        os.rmdir(folder)


def _names(folder: str) -> list[str]:
    """What lies in our folder; nothing where there is none, or the program took it away."""
    try:
        return os.listdir(folder) if folder else []
    except OSError:
        return []


def _environment(program: str, folder: str, wanted: Wanted) -> tuple[dict[str, str], list[str]]:
    """Variables to add to the program's, and what is lacking."""
    from cudnn_doctor import recorder

    added = settings.defaults(os.environ, folder, trace=wanted.trace)
    library, why_not = recorder.library_path()
    if library and folder and (why := _not_recorded(program, library)):
        library, why_not = "", f"{program}: {why}"
    if library and folder:
        added |= recorder.environment(library, folder, os.environ)
        return added, []
    return added, [f"no recorder of contexts, streams and handles: {why_not}"] if why_not else []


def _not_recorded(program: str, library: str) -> str:
    """Why ld.so of this program would not, or not without a complaint, load the recorder; "" where it would."""
    folders = [""] if "/" in program else os.get_exec_path()  # shutil.which costs 10 ms
    path = next((p for f in folders if os.path.isfile(p := os.path.join(f, program))), program)
    try:
        with open(path, "rb") as file, open(library, "rb") as other:
            head, ours, mode = file.read(4096), other.read(20), os.fstat(file.fileno()).st_mode
    except OSError:
        return ""
    if head[:4] != b"\x7fELF":
        return ""  # a script: its interpreter is what counts, and that is not known before it runs
    if head[4] != ours[4] or head[18:20] != ours[18:20]:
        return "it is built for another kind of machine"
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return "it runs with another user's rights, and the loader then takes no library from outside"
    if b"/ld-musl-" in head:
        return "it is linked with musl, whose loader knows no audit libraries"
    return "" if b"/ld-linux" in head or b"/ld64" in head else "it is linked statically"
