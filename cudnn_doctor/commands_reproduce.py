"""The command `reproduce`, apart from the command line's own module."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from cudnn_doctor.options import Device, Env, Force, NoColor, Output


def reproduce(
    env: Env = None,
    cudnn: Annotated[
        str | None,
        typer.Option(metavar="PATH", help='libcudnn.so.N or its folder, or "all"; default: the copy that would win.'),
    ] = None,
    scenario: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this state; repeatable.")] = None,
    faults: Annotated[bool, typer.Option("--faults", help="Also states that fault the context (an Xid line).")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Also states that fill the GPU's memory.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Fill the memory although others use the GPU.")] = False,
    repeat: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Make every state N times.")] = 1,
    from_log: Annotated[
        str | None, typer.Option("--from", metavar="LOG", help="Only what could explain this log; - for stdin.")
    ] = None,
    device: Device = None,
    timeout: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds for all of it.")] = 120.0,
    fmt: Annotated[Literal["text", "json"], typer.Option("--format", help="Form of the report.")] = "text",
    output: Output = None,
    force: Force = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="What each state shows, and its child's end.")
    ] = False,
    no_color: NoColor = False,
    list_states: Annotated[bool, typer.Option("--list", help="Print every state and stop.")] = False,
) -> None:
    """Make every known way to a stream error on live handles: what can give 7 (2007) on this box, what cannot.

    \b
    Examples:
      cudnn-doctor reproduce
      cudnn-doctor reproduce --cudnn all --faults --memory
      cudnn-doctor reproduce --scenario stream-destroyed --repeat 20
      cudnn-doctor reproduce --from train.log
    """
    from cudnn_doctor import cli

    def work() -> int:
        from cudnn_doctor.render.reproduce import progress_line, render_list, render_reproduction

        screen = cli._screen(no_color, output)
        if list_states:
            cli._emit(render_list(**screen), output, force)
            return 0
        from cudnn_doctor.probe.patient import find_patient
        from cudnn_doctor.reproduce.fit import states_for, with_agreements
        from cudnn_doctor.reproduce.gather import gather
        from cudnn_doctor.reproduce.report import report
        from cudnn_doctor.reproduce.run import run_states
        from cudnn_doctor.reproduce.types import Request

        states = tuple(scenario or ())
        explanation = None
        if from_log is not None:
            from cudnn_doctor.explain import explain

            explanation = explain([from_log])
            states = states or states_for(explanation)
        request = Request(states=states, faults=faults, memory=memory, yes=yes, repeat=repeat, timeout=timeout)
        patient = find_patient(env, os.environ)
        bench = gather(patient, os.environ, cudnn, tuple(device or ()), users=faults or memory)
        with cli._Progress() as bar:
            results = run_states(
                request,
                bench.copies,
                bench.devices,
                bench.mps,
                os.environ,
                lambda done, total, name: bar.show(progress_line(done, total, name)),
            )
        document = report(results, bench.copies, bench.devices)
        if explanation is not None:
            document = with_agreements(document, explanation)
        if fmt == "json":
            from cudnn_doctor.model import encode

            cli._emit(encode(document).decode(), output, force)
        else:
            cli._emit(render_reproduction(document, verbose=verbose, **screen), output, force)
        return document.exit_code

    cli._run(work)
