"""Options of the command line, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from cudnn_doctor.model.options import Options

Style = Literal["plain", "nagios"]
OwnerName = Literal["node", "environment", "program"]
SeverityName = Literal["note", "warning", "error"]


def finite(seconds: float) -> float:
    """Refuses "nan", which no deadline would ever pass, and more than a system call can wait for."""
    if not seconds < 1e6:
        raise typer.BadParameter(f"{seconds} is no number of seconds below 1,000,000.")
    return seconds


Env = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="The Python environment to examine: a venv, a conda prefix, an interpreter."),
]


def named(output: Path | None) -> Path | None:
    """`-o -` is stdout, as elsewhere."""
    return None if output == Path("-") else output


Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", callback=named, help="Write the report to FILE.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite FILE.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="Plain text (also: NO_COLOR).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Text: nothing when healthy, one line a problem else.")]
Timeout = Annotated[
    float, typer.Option(metavar="S", min=0.1, callback=finite, help="Seconds for all live work together.")
]
MatrixFile = Annotated[
    Path | None, typer.Option("--matrix", metavar="FILE", help="Your own rows, laid over compat_matrix.yaml.")
]
Live = Annotated[
    bool,
    typer.Option("--live/--no-live", help="Use the GPUs, load the environment's libraries, in child processes."),
]
TrustEnv = Annotated[
    bool, typer.Option("--trust-env", help="As root: load somebody else's libraries as root, not as their owner.")
]
Trials = Annotated[
    bool, typer.Option("--trials/--no-trials", help="After a problem, try the fixes that a child process can try.")
]
AllCudnn = Annotated[bool, typer.Option("--all-cudnn", help="Live check of every cuDNN copy, not only the winners.")]
FrameworkWork = Annotated[
    bool,
    typer.Option("--framework", help="Let each framework do a convolution itself: runs the environment's code."),
]
Device = Annotated[list[int] | None, typer.Option(metavar="N", min=0, help="CUDA device to use; repeatable.")]
Only = Annotated[list[str] | None, typer.Option(metavar="WHAT", help="Only CD301, CD3 or a category; repeatable.")]
Skip = Annotated[list[str] | None, typer.Option(metavar="WHAT", help="Leave out; repeatable.")]
Require = Annotated[
    list[str] | None,
    typer.Option(metavar="WHAT", help="gpu, driver, cudnn, tensorflow, torch or jax must be there; repeatable."),
]
FailOn = Annotated[SeverityName, typer.Option(help="Least severity that makes exit 1.")]
OwnerOption = Annotated[
    OwnerName | None,
    typer.Option("--owner", help="Judge only what the node's, environment's or program's owner must fix."),
]
ExitStyle = Annotated[
    Style, typer.Option("--exit-style", help="plain: 0, 1, 2; nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.")
]
Replay = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Judge a snapshot or report from elsewhere, - for stdin; example:NAME for one that ships."
    ),
]
CudnnPath = Annotated[
    str | None, typer.Option("--cudnn", metavar="PATH", help="libcudnn.so.N, or its folder; default: what would win.")
]
AnswerFormat = Annotated[Literal["text", "json", "markdown"], typer.Option("--format", help="Form of the answer.")]
NoRedact = Annotated[bool, typer.Option("--no-redact", help="Keep names, addresses and serial numbers.")]


def engine_options(**wanted: object) -> Options:
    """What a command hands to the engine, whose types load only then."""
    from cudnn_doctor.model.options import Options

    return Options(**wanted)  # type: ignore[arg-type]  # typer has checked each one
