"""`report`: one document for a ticket."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cudnn_doctor.commands.console import Progress, emit, ready, remark, run, screen
from cudnn_doctor.commands.options import (
    AllCudnn,
    Device,
    Env,
    Force,
    Live,
    MatrixFile,
    NoRedact,
    Output,
    Replay,
    Timeout,
    TrustEnv,
    engine_options,
)

if TYPE_CHECKING:
    from cudnn_doctor.commands.ticket import Ticket


def report(
    env: Env = None,
    output: Output = None,
    force: Force = False,
    log: Annotated[
        list[Path] | None, typer.Option("--log", metavar="FILE", help="A log to explain; repeatable.")
    ] = None,
    with_states: Annotated[bool, typer.Option("--reproduce", help="Add the states of `reproduce`.")] = False,
    with_engines: Annotated[bool, typer.Option("--engines", help="Add the quick form of `engines`.")] = False,
    no_redact: NoRedact = False,
    show_redactions: Annotated[
        bool, typer.Option("--show-redactions", help="List on stderr what was replaced, and by what.")
    ] = False,
    review: Annotated[
        bool, typer.Option("--review", help="Show every changed line beside what becomes of it; ask on a terminal.")
    ] = False,
    live: Live = True,
    trust_env: TrustEnv = False,
    all_cudnn: AllCudnn = False,
    device: Device = None,
    timeout: Timeout = 20.0,
    matrix: MatrixFile = None,
    replay: Replay = None,
) -> None:
    """Write one document to attach to a ticket.

    Its form is that of FILE's ending: html, md, json or zip. Without -o, markdown on stdout. User, host, home,
    addresses, serial numbers and secrets are replaced; on a terminal, what was replaced is told before it is written.

    \b
    Examples:
      cudnn-doctor report -o ticket.html
      cudnn-doctor report -o ticket.zip --reproduce --log train.log
      cudnn-doctor report -o ticket.zip --log train.log --review
      cudnn-doctor report --replay box.json > issue.md
    """
    options = engine_options(
        env=env,
        trust_env=trust_env,
        live=live,
        all_cudnn=all_cudnn,
        devices=tuple(device or ()),
        timeout=timeout,
        matrix=matrix,
    )

    def work() -> int:
        ready(output, force)
        from cudnn_doctor import examine
        from cudnn_doctor.commands import files, ticket
        from cudnn_doctor.render import archive

        form = archive.form_of(output) if output else "md"
        request = ticket.Request(
            options=options, replay=replay, logs=tuple(log or ()), states=with_states, engines=with_engines,
            redact=not no_redact,
        )  # fmt: skip
        with Progress() as bar:
            made = ticket.make(request, os.environ, examine.today(), bar.show)
        if show_redactions:
            for r in made.redactions:
                remark(f"{r.kind}: {r.original!r} became {r.replacement!r}, {r.count} times")
        if not no_redact and not _shown(made, review, output):
            remark("nothing was written.")
            return 2
        content = archive.document(form, made.report, explanation=made.explanation, logs=made.logs)
        if output is None:
            emit(content.decode(), form=form)
        else:
            files.write(output, content, force=force)
            remark(f"written to {output}; {made.report.verdict}: {made.report.reason}")
        return made.report.exit_code

    run(work)


def _shown(made: Ticket, review: bool, output: Path | None) -> bool:
    """Shows on the terminal what was replaced, and with --review all of it. Whether the ticket may be written: a
    reviewer at a terminal is asked."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (terminal or review):
        return True
    from cudnn_doctor.render.review import preview, side_by_side

    width = screen(no_color=True, output=None)["width"]
    shown = side_by_side(made.changes, width) if review else ""
    typer.echo(shown + preview(made.redactions, made.changes, made.doubtful), err=True, nl=False)
    asked = review and terminal and sys.stdin is not None and sys.stdin.isatty()
    return not asked or typer.confirm(f"Write {output or 'it to stdout'}?", default=False, err=True)
