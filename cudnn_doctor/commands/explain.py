"""`explain`: what a log, a ticket or a code means."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from cudnn_doctor.commands.console import emit, run, screen
from cudnn_doctor.commands.options import AnswerFormat, Env, Force, NoColor, Output, engine_options, finite


def explain(
    what: Annotated[
        list[str], typer.Argument(metavar="FILE...|-|CODE", help="Logs of one case, - for stdin, or a code.")
    ],
    separate: Annotated[bool, typer.Option("--separate", help="A case for each file.")] = False,
    snapshot_file: Annotated[
        str | None, typer.Option("--snapshot", metavar="FILE", help="Facts of the machine that wrote the log.")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="The log is from this machine: read its facts too.")] = False,
    env: Env = None,
    timeout: Annotated[float, typer.Option(metavar="S", min=0.1, callback=finite, help="Seconds for reading.")] = 60.0,
    fmt: AnswerFormat = "text",
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
) -> None:
    """Name the root cause that a log shows, or what to ask.

    Every answer exits 0, an undetermined one too; 2 when there is nothing that can be read.

    \b
    Examples:
      cudnn-doctor explain train.log
      dmesg | cudnn-doctor explain - train.log.gz
      cudnn-doctor explain 7
      cudnn-doctor explain CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH
    """

    def work() -> int:
        from cudnn_doctor.commands import explain_text

        facts = None
        if snapshot_file is not None and (here or env is not None):
            raise ValueError(
                "--snapshot is of another machine, --here and --env are of this one: leave one of them out."
            )
        if env is not None and not here:
            raise ValueError("--env says where to look with --here; without it a log is read and no machine.")
        if snapshot_file is not None or here:
            from cudnn_doctor import examine, recordings

            options = engine_options(env=env, live=False)
            facts = recordings.load(snapshot_file) if snapshot_file is not None else examine.gather(options, os.environ)
        text = explain_text.answer(
            what, fmt, separate=separate, snapshot=facts.snapshot if facts else None, timeout=timeout,
            **screen(no_color, output),
        )  # fmt: skip
        emit(text, output, force, form=fmt)
        return 0

    run(work)
