"""Files, folders, archives and streams; what is no report is told by name."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from cudnn_doctor.merge.collecting import Arrival
from cudnn_doctor.merge.reading import arrivals
from cudnn_doctor.merge.streams import LARGEST, documents
from cudnn_doctor.model.errors import UsageError
from tests.merge import fleet_of


def written(name: str) -> bytes:
    return json.dumps(fleet_of.report(name), indent=2).encode() + b"\n"


def stream(data: bytes) -> list[Arrival]:
    return list(documents(io.BytesIO(data), "stdin"))


def named(found: Iterable[Arrival]) -> list[tuple[str, str]]:
    return [(a.node, a.state or json.loads(a.data)["snapshot"]["taken_at"]) for a in found]


def taken(name: str) -> str:
    return str(fleet_of.report(name)["snapshot"]["taken_at"])


def test_a_folder_names_nodes_by_files_or_by_their_folders(tmp_path: Path) -> None:
    (tmp_path / "n2").mkdir()
    for path, name in (("n1.json", "n1"), ("n2/report.json", "n2"), ("n3.report.json", "n3")):
        (tmp_path / path).write_bytes(written(name))
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / ".n9.json.part").write_text("{")
    assert named(arrivals([str(tmp_path)])) == [("n1", taken("n1")), ("n3", taken("n3")), ("n2", taken("n2"))]


def test_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("reports/n1.json", written("n1"))
        archive.writestr("reports/n2/report.json", written("n2"))
        archive.writestr("reports/readme.txt", "hello")
    with zipfile.ZipFile(tmp_path / "n3.zip", "w") as archive:  # as `cudnn-doctor report -o n3.zip` writes it
        for name in ("MANIFEST.json", "explanation.json", "report.html"):
            archive.writestr(name, "{}")
        archive.writestr("report.json", written("n3"))
    with tarfile.open(tmp_path / "more.tar.gz", "w:gz") as tar:
        data = written("n4")
        member = tarfile.TarInfo("../../n4.json")  # nothing is unpacked
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    found = named(arrivals([str(tmp_path)]))
    assert found == [("n1", taken("n1")), ("n2", taken("n2")), ("n4", taken("n4")), ("n3", taken("n3"))]


def test_documents_one_after_the_other_and_a_line_each() -> None:
    compact = json.dumps(fleet_of.report("n2")).encode() + b"\n"
    found = stream(b"srun: a remark\n\n" + written("n1") + compact + written("n3"))
    assert named(found) == [("", taken("n1")), ("", taken("n2")), ("", taken("n3"))]


def test_lines_of_many_nodes_mixed_as_clush_and_pdsh_print_them() -> None:
    one, two = (written(n).splitlines(keepends=True) for n in ("n1", "n2"))
    mixed = b"".join(
        line for pair in zip(one, two, strict=False) for line in (b"n1: " + pair[0], b"node-2.cluster: " + pair[1])
    )
    rest = b"".join(b"n1: " + line for line in one[len(two) :])
    rest += b"".join(b"node-2.cluster: " + line for line in two[len(one) :])
    found = stream(b"clush: n4: exited with exit code 7\n" + mixed + rest + b'n3: {\nn3:   "schema"\n')
    assert named(found[:2]) == [("n1", taken("n1")), ("node-2.cluster", taken("n2"))] or named(found[:2]) == [
        ("node-2.cluster", taken("n2")),
        ("n1", taken("n1")),
    ]
    assert (found[2].node, found[2].data) == ("n3", b'{\n  "schema"\n')


def test_the_prefix_of_kubectl_is_the_pod() -> None:
    lines = (b"[pod/doctor-0-abcde/check] " + line for line in written("x").splitlines(keepends=True))
    assert [a.node for a in stream(b"".join(lines))] == ["doctor-0-abcde"]


def test_utf16_as_powershell_writes_it(tmp_path: Path) -> None:
    (tmp_path / "n1.json").write_bytes(written("n1").decode().encode("utf-16"))
    (found,) = arrivals([str(tmp_path)])
    assert json.loads(found.data.decode("utf-16"))["schema"] == "cudnn-doctor/report/1"


def test_a_file_of_a_gigabyte_is_told_without_filling_the_memory(tmp_path: Path) -> None:
    with (tmp_path / "n1.json").open("wb") as file:
        file.write(b"{\n")
        file.truncate(1 << 30)
    with (tmp_path / "n2.json").open("wb") as file:
        for _ in range(2 * LARGEST // (1 << 20)):
            file.write(b'"x"' * (1 << 19))
    found = list(arrivals([str(tmp_path)]))
    assert (found[0].node, found[0].state, found[0].data) == ("n1", "unreadable", b"")
    assert found[0].reason == "it has more than 16 MiB; a report has 0.2"
    assert len(found) == 2
    assert len(found[1].data) < 2 << 20


def test_a_bomb_and_a_broken_archive_are_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("n1.json", b" " * (LARGEST + 1))
        archive.writestr("n2.json", written("n2"))
    (tmp_path / "b.zip").write_bytes(b"PK\x03\x04 and nothing")
    (tmp_path / "c.tar.gz").write_bytes(b"\x1f\x8b\x08 and nothing")
    found = list(arrivals([str(tmp_path)]))
    assert [(a.node, a.state) for a in found] == [
        ("n1", "unreadable"),
        ("n2", None),
        ("b", "unreadable"),
        ("c", "unreadable"),
    ]
    assert found[0].reason == "it has 16 MiB; no report has 16"


def test_other_documents_of_a_stream_are_counted_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 1000 + json.dumps(fleet_of.report("n1")).encode() + b"\n")
    found = list(arrivals([str(path)]))
    assert [(a.node, a.state, a.reason) for a in found] == [
        ("", None, ""),
        ("mixed", "unreadable", "1000 other documents in it: no reports of cudnn-doctor"),
    ]


def test_text_that_is_no_json_at_all(tmp_path: Path) -> None:
    (tmp_path / "n1.json").write_text("hello\nworld\n")
    (tmp_path / "n2.json").write_text("")
    assert [(a.node, a.data) for a in arrivals([str(tmp_path)])] == [("n1", b"hello"), ("n2", b"")]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "n1.json").write_text("{}")
    (tmp_path / "n1.json").chmod(0)
    (found,) = arrivals([str(tmp_path)])
    assert found.reason == "it cannot be read: Permission denied"


def test_what_is_not_there_or_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not there; merge takes files, folders and - for stdin"):
        list(arrivals([str(tmp_path / "none")]))
    with pytest.raises(UsageError, match="cannot be read"):
        list(arrivals(["a\0b"]))
    (tmp_path / "n1.json").symlink_to("/dev/null")
    (found,) = arrivals([str(tmp_path)])
    assert found.reason == "it is no file"
