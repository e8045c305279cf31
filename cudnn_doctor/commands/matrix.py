"""`matrix`: asks the compatibility matrix."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cudnn_doctor.commands.console import emit, run, screen
from cudnn_doctor.commands.options import AnswerFormat, Force, MatrixFile, NoColor, Output


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
        from cudnn_doctor.matrix.load import load_matrix
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
