"""`snapshot`: the facts of this machine as JSON."""

from __future__ import annotations

import os

from cudnn_doctor.commands.console import emit, ready, run
from cudnn_doctor.commands.options import (
    AllCudnn,
    Device,
    Env,
    Force,
    Live,
    NoRedact,
    Output,
    Timeout,
    TrustEnv,
    engine_options,
)


def snapshot(
    env: Env = None,
    output: Output = None,
    force: Force = False,
    live: Live = True,
    trust_env: TrustEnv = False,
    all_cudnn: AllCudnn = False,
    device: Device = None,
    timeout: Timeout = 20.0,
    no_redact: NoRedact = False,
) -> None:
    """Store the facts of this machine as JSON.

    `check --replay FILE` judges them elsewhere, without this hardware.

    \b
    Examples:
      cudnn-doctor snapshot -o box.json
    """
    options = engine_options(
        env=env, trust_env=trust_env, live=live, all_cudnn=all_cudnn, devices=tuple(device or ()), timeout=timeout
    )

    def work() -> int:
        ready(output, force)
        from cudnn_doctor import examine, recordings
        from cudnn_doctor.model.base import encode

        document = recordings.snapshot_file(examine.facts(options, os.environ, None))
        if not no_redact:
            from cudnn_doctor.redact.redactor import redact

            document, _ = redact(document)
        emit(encode(document).decode(), output, force, form="json")
        return 0

    run(work)
