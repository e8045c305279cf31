"""From what came for the nodes to the picture on stdout: what `merge` and `fleet` have in common."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from cudnn_doctor.commands.console import emit, remark, screen
from cudnn_doctor.commands.files import write

if TYPE_CHECKING:
    from cudnn_doctor.merge.collecting import Arrival, Collector
    from cudnn_doctor.merge.picture import Wanted
    from cudnn_doctor.model.report import Report, SnapshotFile

Nodes = Annotated[
    str | None,
    typer.Option(metavar="SET", help="Nodes that are expected, n[1-100]; one without a report becomes a row."),
]
Quorum = Annotated[
    str, typer.Option(metavar="N|N%", help="Nodes that must answer, or exit 2, whatever the others say; default all.")
]
FailOn = Annotated[
    Literal["problem", "difference"],
    typer.Option("--fail-on", help="What makes exit 1: a bad node, or one that differs too."),
]
Expect = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Compare with this report; without it with the majority.")
]
Form = Annotated[
    Literal["text", "json", "markdown", "html", "junit", "prometheus"],
    typer.Option("--format", help="Form of the picture."),
]
Redact = Annotated[bool, typer.Option("--redact", help="For a ticket: node, user and host names are replaced.")]


class Request(NamedTuple):
    """What the user asked of the picture."""

    nodes: tuple[str, ...]
    quorum: str
    fail_on: Literal["problem", "difference"]
    expect: Path | None
    redact: bool
    fmt: Literal["text", "json", "markdown", "html", "junit", "prometheus"]
    output: Path | None
    force: bool
    no_color: bool
    apart: float = 86_400.0  # seconds from which two reports of one picture are told to be apart


def expected_nodes(nodes: str | None) -> tuple[str, ...]:
    """The names that `--nodes` stands for.

    Raises:
        UsageError: it cannot be read.
    """
    from cudnn_doctor.merge.nodeset import expand

    return expand(nodes) if nodes is not None else ()


def show(arrivals: Iterable[Arrival], request: Request, keep: Path | None = None) -> int:
    """Collects, draws and prints; the exit code. Ctrl-C ends the collecting: what has come is shown. Reports that came
    without a file are kept in the folder `keep`.

    Raises:
        UsageError: nothing came and no node is expected, or `--expect` is no report.
    """
    from cudnn_doctor.merge.collecting import Collector
    from cudnn_doctor.merge.picture import draw
    from cudnn_doctor.render.fleet import render_fleet

    collector = Collector(_judged)
    wanted = _wanted(collector, request)
    try:
        for arrival in arrivals:
            collector.add(arrival)
            if keep is not None and arrival.data and not (keep / f"{arrival.node}.json").exists():
                write(keep / f"{arrival.node}.json", arrival.data)
    except KeyboardInterrupt:
        remark("interrupted: the picture shows what had come until then")
    if request.redact:
        from cudnn_doctor.merge.anonymous import renamed

        collector.rows, nodes = renamed(collector.rows, wanted.nodes)
        wanted = wanted._replace(nodes=nodes)
    fleet = draw(collector, wanted)
    if request.redact:
        from cudnn_doctor.redact.redactor import redact

        fleet, _ = redact(fleet)
    text = render_fleet(fleet, request.fmt, **screen(request.no_color, request.output))
    emit(text, request.output, request.force, form=request.fmt)
    return fleet.exit_code


def _wanted(collector: Collector, request: Request) -> Wanted:
    from cudnn_doctor.merge.collecting import Arrival
    from cudnn_doctor.merge.parsing import NotAReportError
    from cudnn_doctor.merge.picture import Wanted
    from cudnn_doctor.merge.streams import LARGEST
    from cudnn_doctor.model.errors import UsageError

    wanted = Wanted(nodes=request.nodes, quorum=request.quorum, fail_on=request.fail_on, apart=request.apart)
    if request.expect is None:
        return wanted
    try:
        with request.expect.open("rb") as file:
            data = file.read(LARGEST + 1)
        expected = collector.expected(Arrival(request.expect.stem, "", data))
    except OSError as e:
        raise UsageError(f"--expect {request.expect}: {e.strerror}.") from e
    except NotAReportError as e:
        raise UsageError(f"--expect {request.expect}: {e}.") from e
    return wanted._replace(expected=expected, reference=f"{request.expect.name} (--expect)")


def _judged(snapshot: SnapshotFile) -> Report:
    """A snapshot as the report that `check --replay` would give."""
    from cudnn_doctor.examine import today
    from cudnn_doctor.model.options import Options
    from cudnn_doctor.model.report import Examination
    from cudnn_doctor.rules.judge import judge

    return judge(Examination(snapshot=snapshot.snapshot, scenarios=snapshot.scenarios), Options(), today())
