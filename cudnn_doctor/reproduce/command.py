"""The whole of `reproduce`: what there is to run on, the states, the document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cudnn_doctor.live.choose import devices_to_check
from cudnn_doctor.model.base import Base
from cudnn_doctor.model.reproduction import Reproduction, Request
from cudnn_doctor.reproduce.gather import gather
from cudnn_doctor.reproduce.plan import wanted_states
from cudnn_doctor.reproduce.prestart import EarlyStates
from cudnn_doctor.reproduce.report import report
from cudnn_doctor.reproduce.run import Progress, run_states

if TYPE_CHECKING:
    from cudnn_doctor.model.facts import TargetEnv


class Wanted(Base, frozen=True, kw_only=True):
    """A request with what it is to run on."""

    request: Request = Request()
    cudnn: str | None = None  # a path, "all", or None for what would win
    devices: tuple[int, ...] = ()  # CUDA ordinals; empty for all
    logs: tuple[Path, ...] = ()  # run only states that could explain these


def reproduce_here(
    wanted: Wanted, patient: TargetEnv, environ: Mapping[str, str], progress: Progress | None = None
) -> Reproduction:
    """Runs the states on this machine.

    Raises:
        ValueError: no GPU, no cuDNN, a state that there is not, or a log that cannot be read.
    """
    request = wanted.request
    wanted_states(request)  # a wrong name is told before anything is read
    explanation = None
    if wanted.logs:
        from cudnn_doctor.diagnose import explain
        from cudnn_doctor.reproduce.match_log import states_for

        explanation = explain(wanted.logs)
        request = msgspec.structs.replace(request, states=states_for(explanation))
    early = EarlyStates(request, devices_to_check(environ, wanted.devices), environ)
    try:
        bench = gather(patient, environ, wanted.cudnn, wanted.devices, users=request.faults or request.memory)
        results = run_states(request, bench.copies, bench.devices, bench.mps, environ, progress, early)
    finally:
        early.abandon()
    document = report(results, bench.copies, bench.devices)
    if explanation is not None:
        from cudnn_doctor.reproduce.match_log import with_agreements

        document = with_agreements(document, explanation)
    return document
