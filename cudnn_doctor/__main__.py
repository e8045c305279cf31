"""The entry point: `cudnn-doctor` and `python -m cudnn_doctor`.

A call that has no option but `--format` needs no parser, and typer takes longer to import than such a check takes for
all of its work on a machine without a GPU (tests/bench). Such calls are understood here, every other one by `app`;
tests/test_main.py holds the two together.

Nothing on the way of `explain` imports typing, a tenth of the time that a ticket takes: a false TYPE_CHECKING of a
module's own tells type checkers the same.
"""

# No `from __future__` here, which would import that module before this is done.
import os
import sys


def _leave_working_directory() -> None:
    """Takes the working directory, which `python -m` puts first and an empty entry in PYTHONPATH means, out of the
    places that modules are imported from: whoever may write there would run code as whoever calls."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed: nothing can be imported from it
        here = ""
    if __name__ == "__main__" and sys.path[0] == here:
        del sys.path[0]
    added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if added != [""] and not all(map(os.path.isabs, added)) and here in sys.path:
        sys.path.remove(here)  # `site` has made the empty entry absolute
    sys.path[:] = [p for p in sys.path if p not in ("", ".")]


_leave_working_directory()

from collections.abc import Sequence  # noqa: E402

from cudnn_doctor.commands.console import emit, keep_standard_streams, run, screen  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cudnn_doctor.commands.explain_text import Form


def plain(words: Sequence[str]) -> "tuple[str, tuple[str, ...], Form] | None":
    """Command, files and form of `check` or `explain FILE...` with these words, None for a call that `app` has to
    read."""
    command, *rest = words or ("",)
    form: Any = "text"
    if "--format" in rest[:-1]:
        at = rest.index("--format")
        form = rest[at + 1]
        del rest[at : at + 2]
    options = [word for word in rest if word.startswith("-") and word != "-"]
    if options or form not in ("text", "json", "markdown") or os.name == "nt":  # there click expands *.log
        return None
    if (command, bool(rest)) not in (("check", False), ("explain", True)):
        return None
    return command, tuple(rest), form


def main() -> None:
    """Runs the command and ends the process."""
    if sys.argv[1:3] == ["run", "--"] and sys.argv[3:] and sys.platform == "linux":
        run(lambda: _run_program(sys.argv[3:]))
    call = plain(sys.argv[1:])
    if call is None:
        from cudnn_doctor.commands import app

        app.main()
    else:
        command, files, form = call
        keep_standard_streams()
        run(lambda: _check(form) if command == "check" else _explain(files, form))


def _run_program(command: Sequence[str]) -> int:
    """`run -- COMMAND` without options. The program starts before anything else is loaded."""
    keep_standard_streams()
    from cudnn_doctor.commands import console
    from cudnn_doctor.commands.run_program import Wanted, run_program

    return run_program(command, Wanted(), console.closed_by_caller)


def _check(form: "Form") -> int:
    from cudnn_doctor import examine, trials
    from cudnn_doctor.model.options import Options
    from cudnn_doctor.render import render

    options = Options()
    _, report = trials.check(options, os.environ, None, examine.today())
    emit(render(report, form, **screen(no_color=False, output=None)), form=form)
    return report.exit_code


def _explain(files: Sequence[str], form: "Form") -> int:
    from cudnn_doctor.commands import explain_text

    emit(explain_text.answer(files, form, **screen(no_color=False, output=None)), form=form)
    return 0


if __name__ == "__main__":
    main()
