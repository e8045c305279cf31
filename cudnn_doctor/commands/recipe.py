"""`recipe`: files for CI and clusters, printed."""

from __future__ import annotations

from typing import Annotated

import typer

from cudnn_doctor.commands.console import emit, ready, run
from cudnn_doctor.commands.options import Force, Output


def recipe(
    name: Annotated[str | None, typer.Argument(help="A recipe's name; none: the list of all.")] = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Print a file for CI or a cluster, to copy and adapt.

    \b
    Examples:
      cudnn-doctor recipe
      cudnn-doctor recipe slurm-prolog.sh -o /etc/slurm/slurm-prolog.sh
    """

    def work() -> int:
        ready(output, force)
        from cudnn_doctor import recipes

        if name is not None:
            emit(recipes.read(name), output, force)
        else:
            width = max(map(len, recipes.names()))
            emit("".join(f"{n:{width}}  {recipes.purpose(n)}\n" for n in recipes.names()), output, force)
        return 0

    run(work)
