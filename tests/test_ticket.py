"""`report`: one document with everything, in each form, that leaks nothing."""

from __future__ import annotations

import gzip
import json
import os
import re
from datetime import date
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import jsonschema
import msgspec
import pytest
from typer.testing import CliRunner

from cudnn_doctor import recordings
from cudnn_doctor.commands import ticket
from cudnn_doctor.commands.app import app
from cudnn_doctor.model.base import decode, known, value_or
from cudnn_doctor.model.live import Termination
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Report
from cudnn_doctor.redact.changes import doubtful
from cudnn_doctor.redact.redactor import Identity, Redactor
from cudnn_doctor.render import archive
from cudnn_doctor.render.review import preview
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.judge import judge
from cudnn_doctor.rules.sample import live_check, sample
from cudnn_doctor.schemas import path_of
from tests import _cli
from tests._cli import save
from tests.render.test_html import Page

TODAY = date(2026, 12, 1)
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWx"  # noqa: S105  planted
UUID = "GPU-4a3b8c1d-1111-2222-3333-444455556666"
# What must not get out, wherever it stood: in the facts, in what a library printed, in the logs.
SECRETS = ("zaphod", "magrathea", "10.1.2.3", TOKEN, UUID, "1654523003107", "hunter2", "aa:bb:cc:dd:ee:ff")
LOG = f"""\
zaphod@magrathea:~$ python /home/zaphod/train.py --token {TOKEN}
<script>alert(1)</script> ::error::gotcha \x1b[31mred\x1b[0m [bold]x[/bold]
2026-11-30 12:00:00 I worker at 10.1.2.3 aa:bb:cc:dd:ee:ff on {UUID}, password=hunter2
Serial Number: 1654523003107
E tensorflow/stream_executor/cuda/cuda_event.cc:29] Error polling for event status: CUDA_ERROR_ILLEGAL_ADDRESS
F tensorflow/stream_executor/cuda/cuda_dnn.cc:211] Check failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)Failed to set cuDNN stream.
"""  # noqa: E501
ENVIRON = {"USER": "zaphod", "HOME": "/home/zaphod", "HOSTNAME": "magrathea"}


def planted() -> Case:
    """The healthy machine of somebody, with a mixed cuDNN and secrets in the facts."""
    printed = f"/home/zaphod/run.sh on magrathea with {TOKEN}"
    case = sample(
        {
            "patient.prefix": "/home/zaphod/venv",
            "gpus.0.uuid": known(UUID, "NVML"),
            "host.environment.LD_LIBRARY_PATH": "/home/zaphod/lib:/usr/local/cuda/lib64",
            "cudnn.0.sublibraries.2.version": known("9.1.0", "cudnnGetVersion"),
        },
        live=(live_check(fate=Termination(kind="completed", stderr=printed)),),
    )
    return Case(case.snapshot, case.scenarios)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    return save(tmp_path, planted())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "zaphod-train.log"
    path.write_text(LOG)
    return path


def call(*words: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `report`, run as zaphod."""
    done = CliRunner().invoke(app, ["report", *map(str, words)], env={**dict.fromkeys(_cli.OURS), **ENVIRON})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def leaked(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def test_the_plants_are_really_there(box: Path, log: Path) -> None:
    code, text, _ = call("--replay", box, "--log", log, "--no-redact")
    assert code == 1
    assert set(leaked(text)) >= {"zaphod"}
    assert set(leaked(box.read_text() + log.read_text())) == set(SECRETS)


@pytest.mark.parametrize("ending", archive.FORMS)
def test_each_form_says_all_and_leaks_nothing(tmp_path: Path, box: Path, log: Path, ending: str) -> None:
    path = tmp_path / f"ticket.{ending}"
    code, out, err = call("--replay", box, "--log", log, "-o", path)
    assert (code, out) == (1, "")
    assert re.fullmatch(
        rf"cudnn-doctor: written to {re.escape(str(path))}; problem: CD306 cuDNN 9\.19\.0 \(.*\): Mixed: .*\n", err
    )
    assert path.stat().st_mode & 0o777 == 0o600
    data = path.read_bytes()
    if ending == "zip":
        with ZipFile(BytesIO(data)) as archive:
            texts = {name: archive.read(name).decode() for name in archive.namelist()}
        assert sorted(texts) == [
            "MANIFEST.json", "explanation.json", "logs/1-_user-1_-train.log", "report.html", "report.json", "report.md",
        ]  # fmt: skip
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in texts["logs/1-_user-1_-train.log"]
    else:
        texts = {path.name: data.decode()}
    assert {name: leaked(text) for name, text in texts.items()} == {name: [] for name in texts}
    for name, text in texts.items():
        assert "\x1b" not in text or name.startswith("logs/"), name  # those are raw
        if name.startswith(("ticket.", "report.")):
            assert "CD306" in text, name
            assert "An earlier GPU kernel failed; the cuDNN line is only the messenger" in text, name


def test_the_json_form_is_a_report_with_the_explanation_beside(tmp_path: Path, box: Path, log: Path) -> None:
    path = tmp_path / "ticket.json"
    call("--replay", box, "--log", log, "-o", path)
    document = json.loads(path.read_text())
    jsonschema.Draft202012Validator(json.loads(path_of("report-1").read_text())).validate(document)
    assert document["explanation"]["causes"][0]["cause"] == "prior-cuda-fault"
    assert document["exit_code"] == 1
    assert document["snapshot"]["patient"]["prefix"] == "~/venv"
    again = judge(recordings.load(str(path)), Options(), TODAY)
    assert again.verdict == "problem"
    assert len(again.findings) == len(document["findings"])


def test_a_log_cannot_act(tmp_path: Path, box: Path, log: Path) -> None:
    page = tmp_path / "ticket.html"
    call("--replay", box, "--log", log, "-o", page)
    tags = {tag for tag, _ in Page(page.read_text()).elements}
    assert "script" not in tags
    _, text, _ = call("--replay", box, "--log", log)
    assert "<script" not in text


def test_markdown_on_stdout_is_the_markdown_of_the_file(tmp_path: Path, box: Path) -> None:
    code, out, err = call("--replay", box)
    assert (code, err) == (1, "")
    path = tmp_path / "ticket.md"
    call("--replay", box, "-o", path)
    assert path.read_text() == out
    assert out.startswith("# cudnn-doctor")
    assert "> Redacted: " in out


def test_what_was_replaced_is_listed_without_the_secret(box: Path, log: Path) -> None:
    code, out, err = call("--replay", box, "--log", log, "--show-redactions")
    assert code == 1
    listed = dict(re.findall(r"cudnn-doctor: (\w+): '([^']+)' became", err))
    assert set(listed) == {"home", "host", "user", "address", "mac", "secret", "uuid", "serial"}
    assert TOKEN not in err
    assert "cudnn-doctor: home: '/home/zaphod' became '~', " in err
    assert call("--replay", box, "--log", log)[1] == out


def test_a_review_shows_all_side_by_side(tmp_path: Path, box: Path, log: Path) -> None:
    path = tmp_path / "ticket.md"
    code, _, err = call("--replay", box, "--log", log, "--review", "-o", path)
    assert code == 1
    rows = [tuple(part.strip() for part in line.split(" | ", 1)) for line in err.splitlines() if " | " in line]
    assert rows[0] == ("before", "after")
    assert ("Serial Number: 1654523003107", "Serial Number: <serial-1>") in rows
    assert "\nReplaced: " in err
    assert f"written to {path}; problem: CD306 " in err
    assert leaked(path.read_text()) == []


def test_the_preview_names_kinds_and_what_was_least_sure() -> None:
    redactor = Redactor(Identity())
    text = redactor.text("token=abc1\nYour key phrase: m8Kd2vQx7Lp1Zr4Tw9Ys\n/home/carol/x")
    shown = preview(redactor.redactions, tuple(redactor.changes()), ("value Zq8rT2mNp4Ls9vXw1bYc6dEf0",))
    assert "m8Kd2" not in text
    assert shown == (
        "Replaced: 2 secret, 1 user.\n"
        "Replaced by their look alone:\n"
        "  Your key phrase: m8Kd2vQx7Lp1Zr4Tw9Ys  ->  Your key phrase: <secret>\n"
        "Left as they are, though they look drawn at random:\n"
        "  value Zq8rT2mNp4Ls9vXw1bYc6dEf0\n"
        "See all of it with --review before you post the ticket.\n"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("value Zq8rT2mNp4Ls9vXw1bYc6dEf0", True),
        ("commit 0123456789abcdef0123456789abcdef01234567", False),
        ("_ZN3c104cuda20CUDACachingAllocator9allocatorE", False),
        ("/opt/conda/lib/python3.10/site-packages/torch", False),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32", False),
    ],
)
def test_what_still_looks_drawn_at_random(line: str, expected: bool) -> None:
    assert list(doubtful(line)) == ([line] if expected else [])


def test_no_redact_is_marked(tmp_path: Path, box: Path, log: Path) -> None:
    for ending in ("md", "html", "json"):
        path = tmp_path / f"raw.{ending}"
        code, _, _ = call("--replay", box, "--log", log, "--no-redact", "-o", path)
        assert code == 1
        assert "Not redacted (--no-redact): names, paths, addresses and serial numbers are as they are." in re.sub(
            r"\s+", " ", path.read_text()
        )
        assert "zaphod" in path.read_text()


def test_an_existing_file_is_kept_and_nothing_is_examined_for_it(
    tmp_path: Path, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ticket.html"
    path.write_text("precious")

    def examined(*_: object) -> ticket.Ticket:
        raise AssertionError("this would be lost")

    with monkeypatch.context() as patch:
        patch.setattr(ticket, "make", examined)
        code, out, err = call("--replay", box, "-o", path)
    assert (code, out) == (2, "")
    assert err == f"cudnn-doctor: {path} is there already and was kept; --force replaces it.\n"
    assert path.read_text() == "precious"
    assert call("--replay", box, "-o", path, "--force")[0] == 1
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["box.json", "ticket.html"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ticket.pdf", "'ticket.pdf' ends in '.pdf'; a report is written as one of .html, .md, .json, .zip.\n"),
        ("ticket", "'ticket' has no ending; a report is written as one of .html, .md, .json, .zip.\n"),
    ],
)
def test_an_ending_that_stands_for_no_form(tmp_path: Path, box: Path, name: str, told: str) -> None:
    assert call("--replay", box, "-o", tmp_path / name) == (2, "", f"cudnn-doctor: {told}")
    assert not (tmp_path / name).exists()


def test_a_log_that_cannot_be_read(tmp_path: Path, box: Path) -> None:
    path = tmp_path / "ticket.md"
    code, out, err = call("--replay", box, "--log", tmp_path / "none.log", "-o", path)
    assert (code, out) == (2, "")
    assert err == f"cudnn-doctor: {tmp_path}/none.log cannot be read: No such file or directory\n"
    assert not path.exists()


def test_states_of_a_recording_cannot_be_made(box: Path) -> None:
    code, out, err = call("--replay", box, "--reproduce")
    assert (code, out) == (2, "")
    assert "a recording holds no GPU" in err


def test_a_long_log_goes_in_from_its_end(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket, "LOG_LIMIT", 19_950)
    with log.open("a") as out:
        out.writelines("x" * 99 + "\n" for _ in range(500))
    made = ticket.make(
        ticket.Request(options=Options(live=False), replay=str(save(tmp_path, sample())), logs=(log,)),
        ENVIRON, TODAY, lambda _: None,
    )  # fmt: skip
    (kept,) = made.logs
    left_out = log.stat().st_size - 199 * 100
    assert kept.text == f"[... the first {left_out} bytes are left out ...]\n" + ("x" * 99 + "\n") * 199
    assert made.explanation is not None
    assert made.explanation.causes[0].cause == "prior-cuda-fault"  # the whole of it was read


@pytest.mark.parametrize("how", ["gzip", "utf-16", "utf-16 without mark", "zip"])
def test_a_log_that_is_packed_or_wide_is_redacted_as_text(tmp_path: Path, box: Path, how: str) -> None:
    path = tmp_path / ("train.log.gz" if how == "gzip" else "train.log")
    if how == "gzip":
        path.write_bytes(gzip.compress(LOG.encode()))
    elif how == "zip":
        with ZipFile(path, "w") as archive:
            archive.writestr("a/inner.log", LOG)
    else:
        path.write_bytes(LOG.encode("utf-16" if how == "utf-16" else "utf-16-le"))
    ending = tmp_path / "ticket.zip"
    assert call("--replay", box, "--log", path, "-o", ending)[0] == 1
    with ZipFile(ending) as archive:
        (name,) = [n for n in archive.namelist() if n.startswith("logs/")]
        assert name == ("logs/1-inner.log" if how == "zip" else "logs/1-train.log")
        text = archive.read(name).decode()
    assert "Failed to set cuDNN stream." in text
    assert "\0" not in text
    assert [secret for secret in SECRETS if secret in text] == []


def test_a_pipe_would_be_empty_at_the_second_reading(tmp_path: Path, box: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told = f"cudnn-doctor: --log {pipe} is a pipe or a device: write it to a file first, a log is read twice.\n"
    assert call("--replay", box, "--log", pipe) == (2, "", told)


def test_a_file_of_proc_has_no_size(box: Path) -> None:
    assert call("--replay", box, "--log", "/proc/self/status")[0] == 1


PEOPLE = (("root", "/root"), ("cuda", "/home/cuda"), ("mallory", "/x/cudnn"), ("snapshot", "/snapshot"))


@pytest.mark.parametrize(("user", "home"), PEOPLE)
def test_whoever_runs_it_the_document_stays_a_document(tmp_path: Path, user: str, home: str) -> None:
    case = sample({"patient.prefix": f"{home}/venv", "host.environment.LD_LIBRARY_PATH": f"{home}/lib"})
    made = ticket.make(
        ticket.Request(options=Options(), replay=str(save(tmp_path, case))),
        {"USER": user, "HOME": home}, TODAY, lambda _: None,
    )  # fmt: skip
    assert made.report.snapshot.patient.prefix == "~/venv"
    assert made.report.verdict == "ok"
    for form in archive.FORMS:
        data = archive.document(form, made.report)
        assert f"{home}/".encode() not in re.sub(rb'"/snapshot/[^"]*"|/snapshot/\w+', b"", data)
    assert decode(archive.document("json", made.report), Report) == made.report
    assert msgspec.structs.replace(made.report, notes=()).findings


def test_the_machine_itself_is_examined_without_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "here.json"
    code, _, _ = call("--no-live", "-o", path)
    document = decode(path.read_bytes(), Report)
    assert document.exit_code == code
    assert value_or(document.snapshot.host.kernel, "") == os.uname().release
