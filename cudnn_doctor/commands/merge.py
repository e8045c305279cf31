"""`merge`: reports of many nodes, one picture."""

from __future__ import annotations

from typing import Annotated

import typer

from cudnn_doctor.commands.console import ready, run
from cudnn_doctor.commands.options import Force, NoColor, Output
from cudnn_doctor.commands.picture import Expect, FailOn, Form, Nodes, Quorum, Redact, Request, expected_nodes, show


def merge(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="FILE|DIR|-...", help="Reports and snapshots: files, folders, zip, tar; - for stdin."),
    ],
    nodes: Nodes = None,
    expect: Expect = None,
    quorum: Quorum = "",
    fail_on: FailOn = "problem",
    fmt: Form = "text",
    redact: Redact = False,
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
) -> None:
    """Put the reports of many nodes into one picture: which node differs, and in what.

    A node is named by its file, n17.json or n17/report.json; on stdin by the label that clush, pdsh and
    kubectl logs --prefix put before each line.

    Exit codes: 0 all nodes answered and are well; 1 a node has a problem (or differs, with --fail-on
    difference); 2 fewer than --quorum answered.

    \b
    Examples:
      cudnn-doctor merge reports/
      cudnn-doctor merge reports/ --nodes 'n[1-100]' --fail-on difference
      cudnn-doctor merge reports/ --expect golden.json --format html -o fleet.html
      pdsh -w 'n[1-100]' cudnn-doctor check --format json | cudnn-doctor merge -
    """

    def work() -> int:
        ready(output, force)
        from cudnn_doctor.merge.reading import arrivals

        request = Request(expected_nodes(nodes), quorum, fail_on, expect, redact, fmt, output, force, no_color)
        return show(arrivals(sources), request)

    run(work)
