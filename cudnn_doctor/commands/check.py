"""`check`: examines this machine and gives a verdict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cudnn_doctor.commands.console import Progress, emit, ready, remark, run, screen
from cudnn_doctor.commands.options import (
    AllCudnn,
    Device,
    Env,
    ExitStyle,
    FailOn,
    Force,
    FrameworkWork,
    Live,
    MatrixFile,
    NoColor,
    Only,
    Output,
    OwnerOption,
    Quiet,
    Replay,
    Require,
    Skip,
    Timeout,
    Trials,
    TrustEnv,
    engine_options,
)
from cudnn_doctor.render import Format


def check(
    env: Env = None,
    fmt: Annotated[Format, typer.Option("--format", help="Form of the report.")] = "text",
    output: Output = None,
    force: Force = False,
    quiet: Quiet = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every rule's answer with its evidence.")] = False,
    no_color: NoColor = False,
    live: Live = True,
    trust_env: TrustEnv = False,
    trials: Trials = True,
    all_cudnn: AllCudnn = False,
    framework: FrameworkWork = False,
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
    node: Annotated[str, typer.Option(metavar="NAME", help="This machine's name in a fleet, for `merge`.")] = "",
    list_rules: Annotated[bool, typer.Option("--list", help="Print every rule and stop.")] = False,
) -> None:
    """Examine this machine and give a verdict.

    What runs: the environment's cuDNN and what it needs are loaded, in child processes; where root examines an
    environment of another user, as that user. With --no-live nothing of the environment runs: versions come from its
    files. The driver's own libraries (libcuda, NVML) answer in both cases.

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
        env=env, trust_env=trust_env, live=live, trials=trials, all_cudnn=all_cudnn, framework=framework,
        devices=tuple(device or ()), timeout=timeout, matrix=matrix,
        only=tuple(only or ()), skip=tuple(skip or ()), require=tuple(require or ()), fail_on=fail_on, owner=owner,
        exit_style=exit_style,
    )  # fmt: skip

    def work() -> int:
        ready(output, force)
        from cudnn_doctor import examine
        from cudnn_doctor.model.errors import UsageError
        from cudnn_doctor.render import render
        from cudnn_doctor.trials import check as examined

        if quiet and verbose:
            raise UsageError("--quiet and --verbose contradict each other: leave one of them out.")
        _, report = examined(options, os.environ, replay, examine.today())
        if node:
            from msgspec.structs import replace

            report = replace(report, node=node)
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


def _summarise(page: Path, text: str) -> None:
    """Adds to the page of a job of GitHub Actions; the verdict stands where that is not to be."""
    try:
        with page.open("a", encoding="utf-8") as job:
            job.write(text)
    except OSError as e:
        remark(f"no job summary: {page}: {e.strerror}")
