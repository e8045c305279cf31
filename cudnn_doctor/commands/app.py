"""The command line: parses, calls the engine, prints, exits. Nothing else in the package prints or exits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from cudnn_doctor import __version__
from cudnn_doctor.commands.console import Progress, emit, keep_standard_streams, ready, remark, run, screen
from cudnn_doctor.commands.live_commands import engines, reproduce
from cudnn_doctor.commands.options import (
    AllCudnn,
    AnswerFormat,
    CheckFormat,
    Device,
    Env,
    ExitStyle,
    FailOn,
    Force,
    Live,
    MatrixFile,
    NoColor,
    NoRedact,
    Only,
    Output,
    OwnerOption,
    Quiet,
    Replay,
    Require,
    Skip,
    Timeout,
    engine_options,
    finite,
)

app = typer.Typer(
    name="cudnn-doctor",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


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


@app.command()
def check(
    env: Env = None,
    fmt: Annotated[CheckFormat, typer.Option("--format", help="Form of the report.")] = "text",
    output: Output = None,
    force: Force = False,
    quiet: Quiet = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every rule's answer with its evidence.")] = False,
    no_color: NoColor = False,
    live: Live = True,
    all_cudnn: AllCudnn = False,
    deep: Annotated[bool, typer.Option("--deep", help="Add the quick form of `engines` (about 10 s).")] = False,
    device: Device = None,
    timeout: Timeout = 20.0,
    only: Only = None,
    skip: Skip = None,
    require: Require = None,
    fail_on: FailOn = "error",
    owner: OwnerOption = None,
    exit_style: ExitStyle = "plain",
    matrix: MatrixFile = None,
    replay: Replay = None,
    list_rules: Annotated[bool, typer.Option("--list", help="Print every rule and stop.")] = False,
) -> None:
    """Examine this machine and give a verdict.

    \b
    Examples:
      cudnn-doctor check
      cudnn-doctor check --env /opt/venv --require gpu --format json -o report.json
      cudnn-doctor check --quiet --owner node          # in a Slurm prolog
      cudnn-doctor check --replay example:h200-two-copies
    """
    if list_rules:
        from cudnn_doctor.render.rules import render_rules

        emit(render_rules(), output, force)
        return
    options = engine_options(
        env=env, live=live, all_cudnn=all_cudnn, devices=tuple(device or ()), timeout=timeout, matrix=matrix,
        only=tuple(only or ()), skip=tuple(skip or ()), require=tuple(require or ()), fail_on=fail_on, owner=owner,
        exit_style=exit_style,
    )  # fmt: skip

    def work() -> int:
        ready(output, force)
        from cudnn_doctor import examine
        from cudnn_doctor.model.errors import UsageError
        from cudnn_doctor.render import render
        from cudnn_doctor.rules.judge import judge

        if quiet and verbose:
            raise UsageError("--quiet and --verbose contradict each other: leave one of them out.")
        report = judge(examine.facts(options, os.environ, replay), options, examine.today())
        if deep:
            from cudnn_doctor.commands import live_tests

            with Progress() as bar:
                report = live_tests.add(
                    report, options, os.environ, bar.show, engines=True, replayed=replay is not None
                )
        form = "quiet" if quiet and fmt == "text" else "nagios" if exit_style == "nagios" and fmt == "text" else fmt
        text = render(report, form, verbose=verbose, **screen(no_color, output))
        emit(text, output, force, form=fmt)
        if fmt == "github" and (summary := os.environ.get("GITHUB_STEP_SUMMARY")):
            _summarise(Path(summary), render(report, "markdown"))
        return report.exit_code

    run(work, failure=3 if exit_style == "nagios" else 2)


@app.command()
def snapshot(
    env: Env = None,
    output: Output = None,
    force: Force = False,
    live: Live = True,
    all_cudnn: AllCudnn = False,
    device: Device = None,
    timeout: Timeout = 20.0,
    no_redact: NoRedact = False,
) -> None:
    """Store the facts of this machine as JSON.

    `check --replay FILE` judges them elsewhere, without this hardware.

    \b
    Examples:
      cudnn-doctor snapshot -o box.json
    """
    options = engine_options(env=env, live=live, all_cudnn=all_cudnn, devices=tuple(device or ()), timeout=timeout)

    def work() -> int:
        ready(output, force)
        from cudnn_doctor import examine, recordings
        from cudnn_doctor.model.base import encode

        document = recordings.snapshot_file(examine.facts(options, os.environ, None))
        if not no_redact:
            from cudnn_doctor.redact.redactor import redact

            document, _ = redact(document)
        emit(encode(document).decode(), output, force, form="json")
        return 0

    run(work)


@app.command()
def matrix(
    subject: Annotated[
        str | None, typer.Argument(help="tensorflow, torch, jax, cudnn, gpu, driver or cuda; none: what there is.")
    ] = None,
    name: Annotated[str | None, typer.Argument(help="A version, or a GPU's name.")] = None,
    driver: Annotated[str | None, typer.Option(metavar="VERSION", help="Your driver's release.")] = None,
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="Your GPU.")] = None,
    python: Annotated[str | None, typer.Option(metavar="VERSION", help="Your Python.")] = None,
    system: Annotated[Literal["linux", "windows"], typer.Option(help="Your operating system.")] = "linux",
    fmt: AnswerFormat = "text",
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
    matrix_file: MatrixFile = None,
) -> None:
    """Ask the compatibility matrix what fits, and by which rule.

    \b
    Examples:
      cudnn-doctor matrix
      cudnn-doctor matrix tensorflow 2.18 --driver 535.54 --gpu "RTX 5090"
      cudnn-doctor matrix cudnn 9.10
      cudnn-doctor matrix gpu "Tesla K80"
    """

    def work() -> int:
        from cudnn_doctor.matrix.answer import answer, overview
        from cudnn_doctor.matrix.tables import load_matrix
        from cudnn_doctor.render.matrix import render_matrix

        data = load_matrix(matrix_file)
        if subject is None:
            if driver or gpu or python:
                raise ValueError("matrix: --driver, --gpu and --python belong to a subject, such as tensorflow 2.18.")
            found = overview(data)
        else:
            found = answer(subject, name or "", data, driver=driver, gpu=gpu, python=python, system=system)
        text = render_matrix(found, fmt, width=screen(no_color, output)["width"])
        emit(text, output, force, form=fmt)
        return 1 if found.verdict == "problem" else 0

    run(work)


app.command()(reproduce)
app.command()(engines)


@app.command()
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
        from cudnn_doctor.commands import explaining

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
        text = explaining.answer(
            what, fmt, separate=separate, snapshot=facts.snapshot if facts else None, timeout=timeout,
            **screen(no_color, output),
        )  # fmt: skip
        emit(text, output, force, form=fmt)
        return 0

    run(work)


@app.command()
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
        env=env, live=live, all_cudnn=all_cudnn, devices=tuple(device or ()), timeout=timeout, matrix=matrix
    )

    def work() -> int:
        ready(output, force)
        from cudnn_doctor import examine
        from cudnn_doctor.commands import files, ticket

        form = files.form_of(output) if output else "md"
        request = ticket.Request(
            options=options, replay=replay, logs=tuple(log or ()), states=with_states, engines=with_engines,
            redact=not no_redact,
        )  # fmt: skip
        with Progress() as bar:
            made = ticket.make(request, os.environ, examine.today(), bar.show)
        if show_redactions:
            for r in made.redactions:
                remark(f"{r.kind}: {r.original!r} became {r.replacement!r}, {r.count} times")
        content = files.document(form, made.report, explanation=made.explanation, logs=made.logs)
        if output is None:
            emit(content.decode(), form=form)
        else:
            files.write(output, content, force=force)
            remark(f"written to {output}; {made.report.verdict}: {made.report.reason}")
        return made.report.exit_code

    run(work)


def _summarise(page: Path, text: str) -> None:
    """Adds to the page of a job of GitHub Actions; the verdict stands where that is not to be."""
    try:
        with page.open("a", encoding="utf-8") as job:
            job.write(text)
    except OSError as e:
        remark(f"no job summary: {page}: {e.strerror}")


def main() -> None:
    """Reads the command line and ends the process; `__main__` has understood the plain calls before."""
    import sys

    keep_standard_streams()
    nagios = ("--exit-style", "nagios") in zip(sys.argv, sys.argv[1:], strict=False)
    if nagios or "--exit-style=nagios" in sys.argv:
        typer.BadParameter.mro()[1].exit_code = 3  # type: ignore[attr-defined]  # UsageError of typer's click
    run(app)
