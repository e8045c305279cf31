"""`run`: a program unchanged, and what killed it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cudnn_doctor.commands import console
from cudnn_doctor.commands.options import finite


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND [ARG]...", help="The program, as you call it.")],
    trace: Annotated[
        bool,
        typer.Option("--trace", help="cuDNN's full log and synchronous launches: slower, and the timing is another."),
    ] = False,
    stall: Annotated[
        float,
        typer.Option(metavar="S", min=0.0, callback=finite, help="Report stacks when nothing moved for S seconds."),
    ] = 0.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A ticket: html, md, json or zip.")
    ] = None,
    recording: Annotated[
        Path | None, typer.Option("--recording", metavar="FILE", help="Save what was seen, for `explain FILE`.")
    ] = None,
    no_redact: Annotated[bool, typer.Option("--no-redact", help="Keep names, addresses and serial numbers.")] = False,
) -> None:
    """Run a program unchanged and say what killed it.

    Its output, signals, terminal and exit status stay as they are. When it ends well nothing is said; else at most 15
    lines on stderr: the cause, the events that prove it, the line of the program, what to do.

    \b
    Examples:
      cudnn-doctor run -- python train.py
      cudnn-doctor run -o ticket.zip -- python train.py --epochs 3
      cudnn-doctor run --stall 120 -- torchrun train.py
    """

    def work() -> int:
        if sys.platform != "linux":
            raise OSError(f"run follows a program by Linux's own means; this is {sys.platform}. explain reads its log.")
        from cudnn_doctor.commands.run_program import Wanted, run_program

        if output is not None:
            from cudnn_doctor.render.archive import form_of

            form_of(output)
        if trace:
            console.remark(
                "--trace writes cuDNN's full log and waits for each kernel: slower, and the timing is another."
            )
        wanted = Wanted(trace=trace, stall=stall, output=output, recording=recording, redact=not no_redact)
        return run_program(command, wanted, console.closed_by_caller)

    console.run(work)
