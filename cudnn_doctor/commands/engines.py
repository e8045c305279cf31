"""`engines`: finds execution plans that run in the wrong stream."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from cudnn_doctor.commands.console import Progress, emit, ready, run, screen
from cudnn_doctor.commands.options import CudnnPath, Env, Force, NoColor, Output, TrustEnv, engine_options, finite


def engines(
    env: Env = None,
    trust_env: TrustEnv = False,
    cudnn: CudnnPath = None,
    op: Annotated[list[str] | None, typer.Option(metavar="NAME", help="conv-forward, matmul, ...; repeatable.")] = None,
    dtype: Annotated[list[str] | None, typer.Option(metavar="NAME", help="fp16, bf16, fp32, int8; repeatable.")] = None,
    engine: Annotated[list[int] | None, typer.Option(metavar="N", help="Global index; repeatable.")] = None,
    max_plans: Annotated[int | None, typer.Option(metavar="N", min=1, help="Plans of one problem at most.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the plans that the heuristics propose.")] = False,
    device: Annotated[int, typer.Option(metavar="N", min=0, help="CUDA device to use.")] = 0,
    timeout: Annotated[
        float, typer.Option(metavar="S", min=0.1, callback=finite, help="Seconds for all of it.")
    ] = 900.0,
    fmt: Annotated[Literal["text", "json"], typer.Option("--format", help="Form of the report.")] = "text",
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
) -> None:
    """Find execution plans that run in the wrong stream.

    Kernels that do not land in the handle's stream read data that is not there yet (MXNet PR 21104).

    \b
    Examples:
      cudnn-doctor engines --quick
      cudnn-doctor engines --op conv-forward --dtype fp16 --format json -o engines.json
      cudnn-doctor engines --cudnn /usr/lib/x86_64-linux-gnu/libcudnn.so.9
    """
    options = engine_options(env=env, trust_env=trust_env, devices=(device,))

    def work() -> int:
        ready(output, force)
        from cudnn_doctor.engines.run import chosen
        from cudnn_doctor.engines.run import run as examine
        from cudnn_doctor.examine import live_targets
        from cudnn_doctor.model.engines import EngineOptions
        from cudnn_doctor.render.engines import progress_line, render_engines
        from cudnn_doctor.rules.engines import findings

        chosen(op or (), dtype or (), quick=quick)  # a wrong name is told before anything is read
        ((path, preload), *_) = live_targets(options, os.environ, cudnn).copies
        wanted = EngineOptions(
            cudnn=path, preload=preload, device=device, operations=tuple(op or ()), data_types=tuple(dtype or ()),
            engines=tuple(engine or ()), max_plans=max_plans, quick=quick, timeout=timeout,
        )  # fmt: skip
        with Progress() as bar:
            report = examine(wanted, lambda p: bar.show(progress_line(p)))
        if fmt == "json":
            from cudnn_doctor.model.base import encode

            emit(encode(report).decode(), output, force, form="json")
        else:
            emit(render_engines(report, findings(report), **screen(no_color, output)), output, force)
        return report.exit_code

    run(work)
