"""What the command line says and how it ends: the report on stdout, remarks on stderr, one exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn, TypedDict

    class Screen(TypedDict):
        """What a renderer needs to know of the place where its text will be read."""

        width: int
        color: bool
        encoding: str


LONGEST = 2000  # characters of a remark


class Progress:
    """One line on stderr that is written over; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._on = sys.stderr is not None and sys.stderr.isatty()

    def show(self, line: str) -> None:
        if self._on:
            sys.stderr.write(f"\r\033[K{line}")
            sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.show("")


closed_by_caller: frozenset[int] = frozenset()  # what `keep_standard_streams` found closed


def keep_standard_streams() -> None:
    """Leads descriptors 0 to 2 that the caller closed to /dev/null, so that no file or pipe of ours gets their number
    and a child takes it for its output."""
    global closed_by_caller  # noqa: PLW0603  known only here, and wanted by `run` alone
    closed = [fd for fd in range(3) if not _is_open(fd)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    closed_by_caller = frozenset(closed)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def screen(no_color: bool, output: Path | None) -> Screen:
    stdout = sys.stdout  # None where the caller closed it (>&-)
    terminal = output is None and stdout is not None and stdout.isatty()
    color = terminal and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = min(200, max(40, _columns()))
    encoding = "utf-8" if output else (stdout and stdout.encoding) or "ascii"
    return {"width": width, "color": color, "encoding": encoding}


def _columns() -> int:
    if not os.environ.get("COLUMNS") and not (sys.stdout and sys.stdout.isatty()):
        return 100  # a pipe or a file; shutil would answer the same and costs 3 ms
    import shutil

    return shutil.get_terminal_size((100, 24)).columns


def ready(output: Path | None, force: bool) -> None:
    """Says before the work, not after it, that its result could not be kept.

    Raises:
        OSError: `output` is there and `force` is not given, is a folder, or lies in none.
    """
    if output is not None:
        from cudnn_doctor.commands.files import refuse

        refuse(output, force=force)


def emit(text: str, output: Path | None = None, force: bool = False, *, form: str = "text") -> None:
    """The report: to `output`, else to stdout. There the form "text" speaks the stream's encoding as far as that goes;
    every other form is a document in UTF-8. A reader that closes its pipe early (`| head`) has what it wanted: that is
    no error.

    Raises:
        OSError: it cannot be written, in words for the user.
    """
    if output is not None:
        from cudnn_doctor.commands.files import write

        write(output, text, force=force)
        remark(f"written to {output}")
        return
    if sys.stdout is None:
        if text:
            raise OSError("stdout is closed, the report has nowhere to go; -o FILE writes it to a file.")
        return
    encoding = sys.stdout.encoding or "ascii"
    try:
        if form == "text" or sys.stdout.isatty():
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        else:
            sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit must not fail again
    except OSError as e:
        raise OSError(f"the report could not be written to stdout: {e.strerror}.") from e


def remark(text: str) -> None:
    """One line on stderr, of bounded length; what it quotes of a file cannot act there. Where stderr is closed or
    full nobody hears it, and the exit code still stands."""
    from cudnn_doctor.render.clean import one_line

    text = one_line(text)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"cudnn-doctor: {text}\n")
            sys.stderr.flush()


def run(work: Callable[[], int], *, failure: int = 2) -> NoReturn:
    """Runs a command to its exit code; an error of the user's or of ours is one line on stderr and `failure`."""
    try:
        code = work()
    except KeyboardInterrupt:
        remark("interrupted")
        code = failure
    except OSError as e:
        if e.errno == errno.EMFILE:  # nothing more can be imported
            sys.stderr.write("cudnn-doctor: too many open files for this limit; `ulimit -n 4096` raises it.\n")
            raise SystemExit(failure) from e
        remark(f"{e.filename}: {e.strerror}" if e.filename and e.strerror else str(e))
        code = failure
    except ValueError as e:  # engine.UsageError is one
        remark(str(e))
        code = failure
    except Exception as e:
        where = _last_frame(e)
        remark(f"internal error: {type(e).__name__}: {e} ({where}). Please report it with this line.")
        code = failure
    raise SystemExit(code)


def _last_frame(error: BaseException) -> str:
    frame, last = error.__traceback__, None
    while frame:
        last, frame = frame, frame.tb_next
    return f"{os.path.basename(last.tb_frame.f_code.co_filename)}:{last.tb_lineno}" if last else "no frame"
