"""`report`: one document for a ticket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cudnn_doctor.commands.console import Progress, emit, ready, remark, run
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
    addresses, serial numbers and secrets are replaced.

    \b
    Examples:
      cudnn-doctor report -o ticket.html
      cudnn-doctor report -o ticket.zip --reproduce --log train.log
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
        content = archive.document(form, made.report, explanation=made.explanation, logs=made.logs)
        if output is None:
            emit(content.decode(), form=form)
        else:
            files.write(output, content, force=force)
            remark(f"written to {output}; {made.report.verdict}: {made.report.reason}")
        return made.report.exit_code

    run(work)
