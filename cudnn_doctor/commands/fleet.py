"""`fleet`: `check` once on every node, over the engine that the cluster has, and one picture of what came back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cudnn_doctor.commands.console import Progress, emit, ready, remark, run
from cudnn_doctor.commands.options import Force, Live, NoColor, Output, finite
from cudnn_doctor.commands.picture import Expect, FailOn, Form, Nodes, Quorum, Redact, Request, expected_nodes, show

if TYPE_CHECKING:
    from cudnn_doctor.fleet.running import Plan
    from cudnn_doctor.merge.collecting import Arrival

app = typer.Typer(
    name="fleet",
    no_args_is_help=True,
    help="Run `check` on every node of a cluster and show which node differs.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
CLOCKS = 600.0  # seconds between reports of one run from which a node's clock is doubted

Within = Annotated[
    float, typer.Option("--timeout", metavar="S", min=1, callback=finite, help="Seconds for all nodes together.")
]
Program = Annotated[
    str | None, typer.Option(metavar="PATH", help="cudnn-doctor on the nodes; default: the path of this one.")
]
Reports = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Keep the nodes' reports here; without it they are removed.")
]
EngineOptions = Annotated[
    str, typer.Option("--engine-options", metavar="TEXT", help="Passed on, such as '--partition=gpu --gres=gpu:8'.")
]


@app.command()
def slurm(
    nodes: Nodes = None, timeout: Within = 60.0, live: Live = True, program: Program = None, reports: Reports = None,
    engine_options: EngineOptions = "", expect: Expect = None, quorum: Quorum = "", fail_on: FailOn = "problem",
    fmt: Form = "text", redact: Redact = False, output: Output = None, force: Force = False, no_color: NoColor = False,
) -> None:  # fmt: skip
    """One srun over all nodes that are up; the nodes are sinfo's, or those of the allocation.

    Reports are written to a folder that all nodes must see: --reports DIR, else one in the working folder.

    \b
    Examples:
      cudnn-doctor fleet slurm
      cudnn-doctor fleet slurm --nodes 'n[1-100]' --engine-options '--partition=gpu --gres=gpu:8' --quorum 95%
    """
    request = _request(nodes, quorum, fail_on, expect, redact, fmt, output, force, no_color)

    def arrivals(plan: Plan) -> Iterator[Arrival]:
        from cudnn_doctor.fleet import slurm as engine

        return engine.arrivals(plan)

    _run(arrivals, request, timeout, live, program, reports, engine_options, shared=True)


@app.command()
def ssh(
    nodes: Nodes = None, via: Annotated[
        Literal["clush", "pdsh", "ssh"] | None, typer.Option(help="Default: the first that is installed.")
    ] = None, timeout: Within = 60.0, live: Live = True, program: Program = None, reports: Reports = None,
    engine_options: EngineOptions = "", expect: Expect = None, quorum: Quorum = "", fail_on: FailOn = "problem",
    fmt: Form = "text", redact: Redact = False, output: Output = None, force: Force = False, no_color: NoColor = False,
) -> None:  # fmt: skip
    """clush or pdsh where installed, else ssh, 64 nodes at once.

    \b
    Examples:
      cudnn-doctor fleet ssh --nodes 'n[1-100]'
      cudnn-doctor fleet ssh --nodes @gpu --via clush --no-live
    """
    request = _request(nodes, quorum, fail_on, expect, redact, fmt, output, force, no_color)

    def arrivals(plan: Plan) -> Iterator[Arrival]:
        from cudnn_doctor.fleet import ssh as engine

        return engine.arrivals(plan, via)

    _run(arrivals, request, timeout, live, program, reports, engine_options)


@app.command()
def ray(
    nodes: Nodes = None, address: Annotated[str, typer.Option(metavar="HOST:PORT", help="The cluster.")] = "auto",
    timeout: Within = 60.0, live: Live = True, program: Program = None, reports: Reports = None,
    expect: Expect = None, quorum: Quorum = "", fail_on: FailOn = "problem",
    fmt: Form = "text", redact: Redact = False, output: Output = None, force: Force = False, no_color: NoColor = False,
) -> None:  # fmt: skip
    """One task a node of a Ray cluster; needs pip install 'cudnn-doctor[ray]'.

    \b
    Examples:
      cudnn-doctor fleet ray --address 10.0.0.1:6379
    """
    request = _request(nodes, quorum, fail_on, expect, redact, fmt, output, force, no_color)

    def arrivals(plan: Plan) -> Iterator[Arrival]:
        from cudnn_doctor.fleet import ray_ as engine

        return engine.arrivals(plan, address)

    _run(arrivals, request, timeout, live, program, reports, "")


@app.command()
def kubernetes(
    nodes: Nodes = None,
    image: Annotated[str, typer.Option(metavar="IMAGE", help="An image that holds cudnn-doctor.")] = "cudnn-doctor",
    namespace: Annotated[str, typer.Option(metavar="NAME", help="Where the Job is to run.")] = "default",
    timeout: Within = 300.0,
    live: Live = True,
    output: Output = None,
    force: Force = False,
) -> None:
    """Print the manifest of a Job with one pod a node; nothing is applied.

    \b
    Examples:
      cudnn-doctor fleet kubernetes --nodes 'n[1-100]' --image registry.example/cudnn-doctor:1 -o job.yaml
    """

    def work() -> int:
        ready(output, force)
        import yaml

        from cudnn_doctor.fleet.kubernetes import manifest

        job = manifest(expected_nodes(nodes), image, _check("cudnn-doctor", live), timeout, namespace)
        emit(yaml.safe_dump(job, sort_keys=False), output, force, form="yaml")
        remark(
            "apply it with kubectl; when none of its pods is active, pipe their logs (kubectl logs with the selector "
            f"app.kubernetes.io/name=cudnn-doctor and --tail=-1) into: cudnn-doctor merge - --nodes '{nodes}'"
        )
        return 0

    run(work)


# ---------------------------------------------------------------- what they share


def _request(
    nodes: str | None, quorum: str, fail_on: Literal["problem", "difference"], expect: Path | None, redact: bool,
    fmt: Literal["text", "json", "markdown", "html", "junit", "prometheus"], output: Path | None, force: bool,
    no_color: bool,
) -> Callable[[], Request]:  # fmt: skip
    """Made only when the work begins: what cannot be read is told as every error is."""
    return lambda: Request(
        expected_nodes(nodes), quorum, fail_on, expect, redact, fmt, output, force, no_color, apart=CLOCKS
    )


def _check(program: str, live: bool) -> tuple[str, ...]:
    return (program, "check", "--format", "json", *(() if live else ("--no-live",)))


def _program() -> str:
    """This program's own path: most clusters share it."""
    import shutil

    return shutil.which(sys.argv[0]) or "cudnn-doctor"


def _run(
    engine: Callable[[Plan], Iterator[Arrival]],
    request: Callable[[], Request],
    timeout: float,
    live: bool,
    program: str | None,
    reports: Path | None,
    engine_options: str,
    shared: bool = False,
) -> None:
    def work() -> int:
        import shlex
        import tempfile

        from cudnn_doctor.fleet.running import Plan

        wanted = request()
        ready(wanted.output, wanted.force)
        place = Path.cwd() if shared else None
        with tempfile.TemporaryDirectory(prefix=".cudnn-doctor-", dir=place) as own, Progress() as bar:
            folder = Path(own)
            if reports is not None:
                reports.mkdir(exist_ok=True)
                folder = reports.resolve()
                if any(folder.iterdir()):
                    raise ValueError(f"--reports {reports} is not empty: old reports would count as new ones.")
            plan = Plan(
                nodes=wanted.nodes, check=_check(program or _program(), live), folder=folder, timeout=timeout,
                options=tuple(shlex.split(engine_options)), say=remark, show=bar.show,
            )  # fmt: skip
            return show(engine(plan), wanted, keep=folder if reports is not None else None)

    run(work)
