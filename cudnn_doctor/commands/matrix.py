"""`matrix`: asks the compatibility matrix."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cudnn_doctor.commands.console import emit, run, screen
from cudnn_doctor.commands.options import AnswerFormat, Force, MatrixFile, NoColor, Output, Replay

if TYPE_CHECKING:
    from cudnn_doctor.matrix.target import Target


def matrix(
    subject: Annotated[
        str | None,
        typer.Argument(help="tensorflow, torch, jax, cudnn, gpu, driver, cuda or what; none: what there is."),
    ] = None,
    name: Annotated[str | None, typer.Argument(help="A version, or a GPU's name.")] = None,
    driver: Annotated[str | None, typer.Option(metavar="VERSION", help="Your driver's release.")] = None,
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="Your GPU.")] = None,
    python: Annotated[str | None, typer.Option(metavar="VERSION", help="Your Python.")] = None,
    system: Annotated[
        Literal["linux", "windows", "wsl", "macos"] | None,
        typer.Option(help="Your system; linux if not said."),
    ] = None,
    machine: Annotated[
        Literal["x86_64", "aarch64"] | None, typer.Option(help="Your processor; by the GPU if not said.")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="Ask for this machine.")] = False,
    replay: Replay = None,
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
      cudnn-doctor matrix torch --here
      cudnn-doctor matrix what --gpu "GTX 1080" --driver 470
      cudnn-doctor matrix gpu "Tesla K80"
    """

    def work() -> int:
        from cudnn_doctor.matrix.answer import answer, overview
        from cudnn_doctor.matrix.load import load_matrix
        from cudnn_doctor.render.matrix import render_matrix

        if here and replay:
            raise ValueError("--here is this machine, --replay another one: leave one of them out.")
        data = load_matrix(matrix_file)
        if subject is None:
            if driver or gpu or python or machine or here or replay:
                raise ValueError("matrix: the machine belongs to a subject, such as tensorflow 2.18.")
            found = overview(data)
        else:
            found = answer(
                subject, name or "", data, driver=driver, gpu=gpu, python=python, system=system, machine=machine,
                here=_facts(replay) if here or replay else None,
            )  # fmt: skip
        text = render_matrix(found, fmt, width=screen(no_color, output)["width"])
        emit(text, output, force, form=fmt)
        return 1 if found.verdict == "problem" else 0

    run(work)


def _facts(replay: str | None) -> Target:
    """What the solver needs of this machine, or of a recorded one."""
    from cudnn_doctor import examine
    from cudnn_doctor.commands.options import engine_options
    from cudnn_doctor.matrix.target import target_of

    return target_of(examine.facts(engine_options(live=False), os.environ, replay).snapshot)
