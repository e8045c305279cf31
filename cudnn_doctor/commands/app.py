"""The command line: lists the commands; each is a file of its own. Nothing else in the package prints or exits."""

from __future__ import annotations

from typing import Annotated

import typer

from cudnn_doctor import __version__
from cudnn_doctor.commands.check import check
from cudnn_doctor.commands.console import keep_standard_streams, run
from cudnn_doctor.commands.engines import engines
from cudnn_doctor.commands.explain import explain
from cudnn_doctor.commands.fleet import app as fleet
from cudnn_doctor.commands.inspect import inspect
from cudnn_doctor.commands.matrix import matrix
from cudnn_doctor.commands.merge import merge
from cudnn_doctor.commands.recipe import recipe
from cudnn_doctor.commands.report import report
from cudnn_doctor.commands.reproduce import reproduce
from cudnn_doctor.commands.run import run as run_command
from cudnn_doctor.commands.snapshot import snapshot
from cudnn_doctor.commands.try_ import try_

app = typer.Typer(
    name="cudnn-doctor",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (check, explain, inspect, reproduce, engines, report, snapshot, matrix, recipe, merge):
    app.command()(command)
app.add_typer(fleet)
# Everything from the program's name on is the program's.
app.command(name="run", context_settings={"allow_interspersed_args": False})(run_command)
app.command(name="try", context_settings={"allow_interspersed_args": False})(try_)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cudnn-doctor {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find out why TensorFlow, PyTorch or JAX stops in cuDNN.

    Begin with `cudnn-doctor check`; with a log at hand, `cudnn-doctor explain LOG`.

    Exit codes: 0 examined, nothing wrong; 1 a problem; 2 no verdict (wrong usage, nothing to examine, a required
    check could not run).
    """


def main() -> None:
    """Reads the command line and ends the process; `__main__` has understood the plain calls before."""
    import sys

    keep_standard_streams()
    nagios = ("--exit-style", "nagios") in zip(sys.argv, sys.argv[1:], strict=False)
    if nagios or "--exit-style=nagios" in sys.argv:
        typer.BadParameter.mro()[1].exit_code = 3  # type: ignore[attr-defined]  # UsageError of typer's click
    run(app)
