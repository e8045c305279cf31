"""Report files: whole or not at all, private, never over another file."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from cudnn_doctor.commands.files import write
from cudnn_doctor.model.base import decode
from cudnn_doctor.model.report import Report
from cudnn_doctor.render.archive import Attachment, document, form_of
from tests.render.build import report
from tests.render.test_html import explanation


def test_a_file_is_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    old = os.umask(0)
    try:
        write(path, document(form_of(path), report()))
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert decode(path.read_bytes(), Report) == report()
    assert os.listdir(tmp_path) == ["r.json"]


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"r\.md is there already and was kept; --force replaces it"):
        write(path, "new")
    assert path.read_text() == "precious"
    write(path, "new", force=True)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["r.md"]


def test_a_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link.md"
    target.write_text("precious")
    link.symlink_to(target)
    with pytest.raises(FileExistsError):
        write(link, "new")
    write(link, "new", force=True)
    assert target.read_text() == "precious"
    assert link.read_text() == "new"


def test_somebody_else_takes_the_name_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.md"
    monkeypatch.setattr(os.path, "lexists", lambda _: path.write_text("theirs") == 0)
    with pytest.raises(FileExistsError):
        write(path, "ours")
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["r.md"]


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write(tmp_path / "r.md", "new")
    assert (tmp_path / "r.md").read_text() == "new"
    with pytest.raises(FileExistsError):
        write(tmp_path / "r.md", "newer")
    assert os.listdir(tmp_path) == ["r.md"]


def test_no_folder_a_folder_and_a_pipe(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write(tmp_path / "no" / "r.md", "x")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        write(tmp_path, "x", force=True)
    write(Path(os.devnull), "x", force=True)
    assert Path(os.devnull).is_char_device()


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    code = f"""
    import resource, signal
    from pathlib import Path
    from cudnn_doctor.commands.files import write
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        write(Path({str(tmp_path / "r.md")!r}), "x" * 100_000)
    except OSError as e:
        print(e)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"{tmp_path}/r.md could not be written: File too large. Nothing is left of it; -o takes another place.\n"
    )
    assert os.listdir(tmp_path) == []


def test_a_full_disk_keeps_the_file_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.md"
    path.write_text("precious")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="could not be written: No space left on device"):
        write(path, "new", force=True)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["r.md"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_ours(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="could not be written: Permission denied"):
        write(tmp_path / "r.md", "x")


@pytest.mark.parametrize(("name", "form"), [("a.html", "html"), ("a.MD", "md"), ("a.b.json", "json"), ("a.zip", "zip")])
def test_the_ending_says_the_form(name: str, form: str) -> None:
    assert form_of(Path(name)) == form


@pytest.mark.parametrize("name", ["report", "a.pdf", "html"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"a report is written as one of \.html, \.md, \.json, \.zip"):
        form_of(Path(name))


def test_the_archive_holds_all_and_says_what() -> None:
    logs = (Attachment(name="../../etc/train.log", text="line\n"), Attachment(name="..", text="x"))
    data = document("zip", report(), explanation=explanation("why"), logs=logs)
    assert data == document("zip", report(), explanation=explanation("why"), logs=logs)
    with ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        assert names == [
            "MANIFEST.json", "report.html", "report.md", "report.json", "explanation.json", "logs/1-train.log",
            "logs/2-log",
        ]  # fmt: skip
        assert {i.external_attr >> 16 for i in archive.infolist()} == {0o600}
        manifest = json.loads(archive.read("MANIFEST.json"))
        assert [f["name"] for f in manifest["files"]] == names[1:]
        for entry in manifest["files"]:
            content = archive.read(entry["name"])
            assert (entry["bytes"], entry["sha256"]) == (len(content), sha256(content).hexdigest())
            assert entry["what"]
        assert manifest["verdict"] == "problem"
        assert decode(archive.read("report.json"), Report) == report()
        assert json.loads(archive.read("explanation.json"))["schema"] == "cudnn-doctor/explanation/1"
        assert archive.read("logs/1-train.log") == b"line\n"


@pytest.mark.parametrize("form", ["html", "md"])
def test_the_explanation_is_in_the_documents(form: str) -> None:
    text = document(form, report(), explanation=explanation("because of memory")).decode()  # type: ignore[arg-type]
    assert "What the log says" in text
    assert text.count("because of memory") >= 5
