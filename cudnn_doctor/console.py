"""What the command line says and how it ends: the report on stdout, remarks on stderr, one exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypedDict


class Progress:
    """One line on stderr that is written over; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()

    def show(self, line: str) -> None:
        if self._on:
            sys.stderr.write(f"\r\033[K{line}")
            sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.show("")


class Screen(TypedDict):
    """What a renderer needs to know of the place where its text will be read."""

    width: int
    color: bool
    encoding: str


def screen(no_color: bool, output: Path | None) -> Screen:
    import shutil

    terminal = output is None and sys.stdout.isatty()
    color = terminal and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = min(200, max(40, shutil.get_terminal_size((100, 24)).columns))
    encoding = "utf-8" if output else (sys.stdout.encoding or "ascii")
    return {"width": width, "color": color, "encoding": encoding}


def emit(text: str, output: Path | None = None, force: bool = False) -> None:
    """The report: to `output`, else to stdout, whatever the stream's encoding can say."""
    if output is not None:
        from cudnn_doctor.report_file import write

        write(output, text, force=force)
        remark(f"written to {output}")
        return
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def remark(text: str) -> None:
    """One line on stderr; what it quotes of a file cannot act there."""
    from cudnn_doctor.render.clean import one_line

    text = one_line(text)
    sys.stderr.write(f"cudnn-doctor: {text}\n")


def run(work: Callable[[], int], *, failure: int = 2) -> NoReturn:
    """Runs a command to its exit code; an error of the user's or of ours is one line on stderr and `failure`."""
    from cudnn_doctor.engine import UsageError

    try:
        code = work()
    except BrokenPipeError:  # `| head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = failure
    except KeyboardInterrupt:
        remark("interrupted")
        code = failure
    except (UsageError, OSError, ValueError) as e:
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
    return f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}" if last else "no frame"
