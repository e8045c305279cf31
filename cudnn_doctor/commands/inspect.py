"""`inspect`: a live process seen from outside."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cudnn_doctor.commands.console import emit, run, screen
from cudnn_doctor.commands.options import Force, NoColor, Output


def inspect(
    pids: Annotated[list[int] | None, typer.Argument(metavar="[PID]...", min=1, help="Processes.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every process that holds a GPU.")] = False,
    stacks: Annotated[bool, typer.Option("--stacks", help="Python stacks by py-spy, without stopping it.")] = False,
    fmt: Annotated[Literal["text", "json"], typer.Option("--format", help="Form of the answer.")] = "text",
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
) -> None:
    """See what a live process really has loaded, without touching it.

    cuDNN, CUDA, cuBLAS and NCCL as they are mapped, with their versions; copies that were replaced under it; GPUs,
    memory, limits, namespaces. Exit codes: 0 nothing wrong, 1 a problem, 2 it could not be read.

    \b
    Examples:
      cudnn-doctor inspect 4711
      cudnn-doctor inspect --all --format json
    """

    def work() -> int:
        from cudnn_doctor.commands import inspect_processes

        if bool(pids) == every:
            raise ValueError("name one or more PIDs, or --all, not both: cudnn-doctor inspect 4711")
        answer = inspect_processes.inspect(tuple(pids or ()), every=every, stacks=stacks)
        if fmt == "json":
            from cudnn_doctor.model.base import encode

            text = encode(answer).decode()
        else:
            from cudnn_doctor.render.inspection import render_inspection

            text = render_inspection(answer, **screen(no_color, output))
        emit(text, output, force, form=fmt)
        return answer.exit_code

    run(work)
