"""The document of `report` in each of its forms, and the archive that holds all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from cudnn_doctor.model.base import Base

if TYPE_CHECKING:
    from cudnn_doctor.model.explanation import Explanation
    from cudnn_doctor.model.report import Report

Form = Literal["html", "md", "json", "zip"]
FORMS: tuple[Form, ...] = get_args(Form)
MODE = 0o600  # of each entry: readable by its owner alone


class Attachment(Base, frozen=True, kw_only=True):
    """A raw log for the archive, redacted already."""

    name: str
    text: str


def form_of(path: Path) -> Form:
    """The form by the ending of the name.

    Raises:
        ValueError: an ending that stands for no form.
    """
    for form in FORMS:
        if path.suffix.lower() == f".{form}":
            return form
    endings = ", ".join(f".{f}" for f in FORMS)
    ends = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
    raise ValueError(f"{path.name!r} {ends}; a report is written as one of {endings}.")


def document(
    form: Form,
    report: Report,
    *,
    explanation: Explanation | None = None,
    logs: tuple[Attachment, ...] = (),
) -> bytes:
    """The bytes of one form."""
    if form == "zip":
        return _archive(report, explanation, logs)
    if form == "html":
        from cudnn_doctor.render.html import render_html

        return render_html(report, explanation=explanation).encode()
    if form == "md":
        from cudnn_doctor.render.markdown import render_markdown

        return render_markdown(report, explanation=explanation).encode()
    if explanation is not None:  # beside the report's own fields; whoever replays it reads over it
        from msgspec import to_builtins

        from cudnn_doctor.model.base import encode

        return encode({**to_builtins(report), "explanation": to_builtins(explanation)})
    from cudnn_doctor.render.json_ import render_json

    return render_json(report).encode()


def _archive(report: Report, explanation: Explanation | None, logs: tuple[Attachment, ...]) -> bytes:
    """All forms, the explanation, the logs and a manifest. The same report gives the same bytes."""
    import json
    from hashlib import sha256
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    from cudnn_doctor.model.base import encode

    files = {f"report.{form}": document(form, report, explanation=explanation) for form in FORMS if form != "zip"}
    about = {
        "report.html": "the whole report for a browser or a mail client",
        "report.md": "the report for an issue, under 60,000 characters",
        "report.json": "the report for programs, schema cudnn-doctor/report/1; `cudnn-doctor check --replay` reads it",
    }
    if explanation is not None:
        files["explanation.json"] = encode(explanation)
        about["explanation.json"] = "what the log says, schema cudnn-doctor/explanation/1"
    for i, log in enumerate(logs, 1):
        name = f"logs/{i}-{_plain_name(log.name)}"
        files[name] = log.text.encode("utf-8", "backslashreplace")
        about[name] = "a log that the user added"
    manifest = {
        "schema": "cudnn-doctor/manifest/1",
        "tool": f"{report.tool.name} {report.tool.version}",
        "taken_at": report.snapshot.taken_at,
        "verdict": report.verdict,
        "notes": list(report.notes),
        "files": [
            {"name": name, "bytes": len(data), "sha256": sha256(data).hexdigest(), "what": about[name]}
            for name, data in files.items()
        ],
    }
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, data in (("MANIFEST.json", json.dumps(manifest, indent=2).encode() + b"\n"), *files.items()):
            entry = ZipInfo(name)  # its time stays 1980: the report says when it was made
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = MODE << 16
            archive.writestr(entry, data)
    return out.getvalue()


def _plain_name(name: str) -> str:
    """A file name without folders and without what another system refuses."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in Path(name).name)
    return kept.lstrip(".")[-80:] or "log"
