"""Files that leave the program: whole or not at all, readable by their owner alone, never over a file that is there
unless the user says so."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from cudnn_doctor.model.base import Base

if TYPE_CHECKING:
    from cudnn_doctor.model.explanation import Explanation
    from cudnn_doctor.model.report import Report

Form = Literal["html", "md", "json", "zip"]
FORMS: tuple[Form, ...] = get_args(Form)
MODE = 0o600


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


def write(path: Path, content: str | bytes, *, force: bool = False) -> None:
    """Writes `content` (text as UTF-8) to `path` in one step.

    Raises:
        OSError: with a message for the user: the file is there and `force` is not given, the folder is missing or may
            not be written, the disk is full. Nothing is left behind then.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    refuse(path, force=force)
    with _explained(path):
        if _is_stream(path):
            with path.open("ab") as out:
                out.write(data)
        else:
            _replace(path, data, force=force)


def refuse(path: Path, *, force: bool = False) -> None:
    """Raises what `write` would, as far as that can be told before there is anything to write.

    Raises:
        OSError: as `write`.
    """
    with _explained(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not force and os.path.lexists(path) and not _is_stream(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _is_stream(path: Path) -> bool:
    """A device, a named pipe, what the shell opened: there is nothing to replace."""
    if path.exists() and not path.is_file():
        return True
    return str(path) in ("/dev/stdout", "/dev/stderr") or str(path.parent) in ("/dev/fd", "/proc/self/fd")


def _replace(path: Path, data: bytes, *, force: bool) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), MODE)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        if force:
            part.replace(path)
        else:
            _link(part, path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _link(part: Path, path: Path) -> None:
    """Gives the finished file its name, failing when somebody else took it meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links (FAT, some network shares)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
        part.replace(path)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as e:
        raise FileExistsError(f"{path} is there already and was kept; --force replaces it.") from e
    except IsADirectoryError as e:
        raise IsADirectoryError(f"{path} is a folder; name a file in it.") from e
    except OSError as e:
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}; nothing was written.") from e
        what = e.strerror or str(e)
        raise OSError(f"{path} could not be written: {what}. Nothing is left of it; -o takes another place.") from e


# ---------------------------------------------------------------- what is in the files


def write_report(
    path: Path,
    report: Report,
    *,
    explanation: Explanation | None = None,
    logs: tuple[Attachment, ...] = (),
    force: bool = False,
) -> None:
    """Writes the report in the form that the ending of `path` names. Everything is redacted already or not at all:
    this only writes.

    Raises:
        ValueError: an ending that stands for no form.
        OSError: as `write`.
    """
    write(path, document(form_of(path), report, explanation=explanation, logs=logs), force=force)


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
