"""`reproduce`: provokes cuDNN's stream errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from cudnn_doctor.commands.console import Progress, emit, ready, run, screen
from cudnn_doctor.commands.options import Device, Env, Force, NoColor, Output, TrustEnv, engine_options, finite


def reproduce(
    env: Env = None,
    trust_env: TrustEnv = False,
    scenario: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this state; repeatable.")] = None,
    list_states: Annotated[bool, typer.Option("--list", help="Print every state and stop.")] = False,
    cudnn: Annotated[
        str | None, typer.Option(metavar="PATH", help="libcudnn.so.N, its folder, or all; default: what would win.")
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="Also states that fault a context: they leave an Xid.")
    ] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Also states that fill the device memory.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Fill the memory although others use the GPU.")] = False,
    repeat: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each state; flaky ones show all.")] = 1,
    from_log: Annotated[
        list[Path] | None, typer.Option("--from", metavar="LOG", help="Only states that could explain this log.")
    ] = None,
    device: Device = None,
    timeout: Annotated[
        float, typer.Option(metavar="S", min=0.1, callback=finite, help="Seconds for all of it.")
    ] = 60.0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="What each state shows and printed.")] = False,
    fmt: Annotated[Literal["text", "json"], typer.Option("--format", help="Form of the report.")] = "text",
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
) -> None:
    """Provoke cuDNN's stream errors, and say which happen here.

    Every known way to them, on live handles in child processes.

    \b
    Examples:
      cudnn-doctor reproduce
      cudnn-doctor reproduce --cudnn all --faults
      cudnn-doctor reproduce --scenario after-fork --repeat 10
      cudnn-doctor reproduce --from train.log
    """

    def work() -> int:
        ready(output, force)
        from cudnn_doctor.render.reproduce import progress_line, render_list, render_reproduction

        if list_states:
            emit(render_list(**screen(no_color, output)), output, force)
            return 0
        from cudnn_doctor import examine
        from cudnn_doctor.model.reproduction import Request
        from cudnn_doctor.reproduce.command import Wanted, reproduce_here

        request = Request(
            states=tuple(scenario or ()), faults=faults, memory=memory, yes=yes, repeat=repeat, timeout=timeout
        )  # fmt: skip
        wanted = Wanted(request=request, cudnn=cudnn, devices=tuple(device or ()), logs=tuple(from_log or ()))
        patient = examine.find_target_env(engine_options(env=env, trust_env=trust_env), os.environ)
        with Progress() as bar:
            document = reproduce_here(wanted, patient, os.environ, lambda *p: bar.show(progress_line(*p)))
        if fmt == "json":
            from cudnn_doctor.model.base import encode

            emit(encode(document).decode(), output, force, form="json")
        else:
            emit(render_reproduction(document, verbose=verbose, **screen(no_color, output)), output, force)
        return document.exit_code

    run(work)
