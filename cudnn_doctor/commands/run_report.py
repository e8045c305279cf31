"""From the recording of a run to the lines on stderr, the ticket and the saved recording."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cudnn_doctor import diagnose
from cudnn_doctor.commands import files
from cudnn_doctor.commands.console import remark
from cudnn_doctor.logs.patterns import load
from cudnn_doctor.model.errors import InputError
from cudnn_doctor.model.explanation import Explanation
from cudnn_doctor.model.run_recording import RunRecording, encode_run
from cudnn_doctor.postmortem.conclude import conclude
from cudnn_doctor.render.run_text import verdict_text

if TYPE_CHECKING:
    from cudnn_doctor.commands.run_program import Wanted


def report(run: RunRecording, wanted: Wanted) -> str:
    """The lines for stderr; writes the recording and the ticket where they are wanted."""
    explanation = judge(run)
    if wanted.recording:
        _keep(wanted.recording, encode_run(_redacted(run) if wanted.redact else run))
    if wanted.output:
        _ticket(run, explanation, wanted.output, redact=wanted.redact)
    stderr = sys.stderr
    encoding = (stderr and stderr.encoding) or "ascii"
    return verdict_text(run, explanation, encoding=encoding)


def judge(run: RunRecording) -> Explanation:
    """Why it died."""
    return conclude(run, _told(run), load().causes)


def _told(run: RunRecording) -> Explanation | None:
    """What `explain` says of the output and of the libraries' own logs."""
    texts = [s.head + ("\n" + s.tail if s.tail else "") for s in run.streams]
    texts += [log.text for log in run.logs if log.name.startswith("cudnn")]  # the driver's is full of harmless lines
    text = "\n".join(t for t in texts if t.strip())
    if not text or not run.ending.exit_code:
        return None
    memory = os.memfd_create("output")  # no disk, which may be full
    try:
        with os.fdopen(memory, "w", encoding="utf-8", errors="replace", closefd=False) as file:
            file.write(text)
        return diagnose.explain([f"/proc/self/fd/{memory}"], timeout=10.0)
    except InputError:  # nothing in it that is text
        return None
    finally:
        os.close(memory)


def _redacted(run: RunRecording) -> RunRecording:
    from cudnn_doctor.redact.redactor import redact

    return redact(run)[0]


def _keep(path: Path, data: bytes) -> None:
    try:
        files.write(path, data, force=True)
    except OSError as error:
        remark(str(error))


def _ticket(run: RunRecording, explanation: Explanation, output: Path, *, redact: bool) -> None:
    """What `report` writes, with the run in it."""
    from cudnn_doctor import examine
    from cudnn_doctor.commands import ticket
    from cudnn_doctor.model.options import Options
    from cudnn_doctor.render import archive

    request = ticket.Request(options=Options(live=False), run=run, explanation=explanation, redact=redact)
    try:
        made = ticket.make(request, os.environ, examine.today(), lambda _: None)
        form = archive.form_of(output)
        files.write(output, archive.document(form, made.report, explanation=made.explanation, logs=made.logs),
                    force=True)  # fmt: skip
        remark(f"written to {output}")
    except (OSError, ValueError) as error:
        remark(f"the ticket could not be written: {error}")
