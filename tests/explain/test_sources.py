"""What can be read and what cannot: compressed, wide, damaged, endless and absent sources."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import io
import lzma
import os
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from pathlib import Path

import pytest

from cudnn_doctor.diagnose import InputError
from cudnn_doctor.logs.sources import CHUNK, open_sources
from tests.explain.plain import answer

LINE = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
TEXT = f"first\n{LINE}last line\n".encode()


def read(*names: str, seconds: float = 20.0) -> tuple[list[tuple[str, bytes]], list[str]]:
    notes: list[str] = []
    got = [(s.name, b"".join(s.pieces)) for s in open_sources(list(names), time.monotonic() + seconds, notes)]
    return got, notes


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.log", TEXT),
        ("a.log.gz", gzip.compress(TEXT)),
        ("two-members.gz", gzip.compress(TEXT[:20]) + gzip.compress(TEXT[20:])),
        ("named-wrongly.txt", gzip.compress(TEXT)),
        ("a.log.xz", lzma.compress(TEXT)),
        ("a.log.bz2", bz2.compress(TEXT)),
        ("powershell.log", TEXT.decode().encode("utf-16")),
        ("no-mark.log", TEXT.decode().encode("utf-16-le")),
        ("big-endian.log", b"\xfe\xff" + TEXT.decode().encode("utf-16-be")),
        ("utf32.log", TEXT.decode().encode("utf-32")),
        ("wide.gz", gzip.compress(TEXT.decode().encode("utf-16"))),
    ],
)
def test_bytes_come_out_as_they_went_in(tmp_path: Path, name: str, data: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    got, notes = read(str(file))
    assert got == [(str(file), TEXT)]
    assert notes == []


def test_nul_bytes_alone_do_not_make_text_wide(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"\0" * 4096 + TEXT)
    assert read(str(file))[0][0][1] == b"\0" * 4096 + TEXT


def test_each_file_of_a_zip_is_a_source(tmp_path: Path) -> None:
    file = tmp_path / "logs.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("dir/", "")
        archive.writestr("dir/a.log", TEXT)
        archive.writestr("b.log", TEXT.decode().encode("utf-16"))
    assert read(str(file))[0] == [(f"{file}:dir/a.log", TEXT), (f"{file}:b.log", TEXT)]


def test_end_of_a_cut_archive_is_told(tmp_path: Path) -> None:
    file = tmp_path / "cut.gz"
    data = gzip.compress(os.urandom(300_000))
    file.write_bytes(data[:200_000])
    ((_, got),), notes = read(str(file))
    assert len(got) > 100_000
    assert notes == [f"{file}: the gzip data ends early; what could be read is explained"]


def test_damage_in_an_archive_is_told_and_what_came_before_counts(tmp_path: Path) -> None:
    file = tmp_path / "bad.gz"
    data = bytearray(gzip.compress(os.urandom(300_000)))
    data[250_000:250_400] = bytes(400)
    file.write_bytes(data)
    ((_, got),), notes = read(str(file))
    assert got
    assert len(notes) == 1
    assert "damaged gzip data" in notes[0]


def test_garbage_after_an_archive_is_common_and_no_damage(tmp_path: Path) -> None:
    file = tmp_path / "padded.gz"
    file.write_bytes(gzip.compress(TEXT) + bytes(512))
    assert read(str(file)) == ([(str(file), TEXT)], [])


def test_bomb_stops_early(tmp_path: Path) -> None:
    """10 GB in 10 MB: a thousandfold expansion is no log."""
    file = tmp_path / "bomb.gz"
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with file.open("wb") as out:
        for _ in range(300):
            out.write(packer.compress(bytes(1 << 20)))
        out.write(packer.flush())
    notes: list[str] = []
    start = time.monotonic()
    size = sum(len(p) for s in open_sources([str(file)], start + 60, notes) for p in s.pieces)
    assert 64 << 20 <= size <= (64 << 20) + 2 * CHUNK
    assert notes == [f"{file}: 0 MiB expand to more than 64 MiB; reading stopped there"]


def test_bomb_in_a_zip_stops_early(tmp_path: Path) -> None:
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x", "w") as out:
        for _ in range(80):
            out.write(bytes(1 << 20))
    ((_, got),), notes = read(str(file))
    assert 64 << 20 <= len(got) <= (64 << 20) + 2 * CHUNK
    assert notes == [f"{file}:x: reading stopped after 64 MiB"]


def test_zstd_says_how_to_read_it_where_python_cannot(tmp_path: Path) -> None:
    file = tmp_path / "a.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(16))
    if sys.version_info >= (3, 14) or importlib.util.find_spec("zstandard"):
        assert "damaged zstd data" in read(str(file))[1][0]
        return
    with pytest.raises(InputError, match=r"zstd -dc .* \| cudnn-doctor explain -"):
        read(str(file))


def test_zstd_is_read_where_python_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the package's decoder stood in for: it has no size limit and is fed little at a time."""

    class Decoder:
        eof = False
        unused_data = b""

        def decompress(self, data: bytes) -> bytes:
            return data.replace(b"\x28\xb5\x2f\xfd", b"")

    class ZstdDecompressor:
        def decompressobj(self) -> Decoder:
            return Decoder()

    module = type(sys)("zstandard")
    module.ZstdDecompressor = ZstdDecompressor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "zstandard", module)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    file = tmp_path / "a.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd" + TEXT)
    assert read(str(file))[0] == [(str(file), TEXT)]


def test_what_is_no_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory; name the files in it"):
        read(str(tmp_path))
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        read(str(tmp_path / "absent.log"))
    with pytest.raises(InputError, match="is not a file name"):
        read("a\0b")
    broken = tmp_path / "a.zip"
    broken.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(InputError, match="looks like a zip and cannot be read"):
        read(str(broken))


def test_file_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal is simulated: root may read everything."""
    file = tmp_path / "a.log"
    file.write_bytes(TEXT)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("cudnn_doctor.logs.sources.os.open", refuse)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read(str(file))


def test_empty_input_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "empty.log"
    file.touch()
    with pytest.raises(InputError, match=r"nothing to explain: .*empty\.log is empty"):
        answer([file])


def test_pipe_that_never_ends_is_read_until_the_time_limit(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    stop = threading.Event()

    def feed() -> None:
        with fifo.open("wb", buffering=0) as out:
            try:
                out.write(TEXT)
                while not stop.wait(0.02):
                    out.write(b"step\n" * 1000)
            except BrokenPipeError:
                return

    writer = threading.Thread(target=feed)
    writer.start()
    start = time.monotonic()
    told = answer([fifo], timeout=0.7)
    took = time.monotonic() - start
    stop.set()
    writer.join()
    assert took < 20
    assert told["causes"][0]["cause"] == "prior-cuda-fault"
    assert told["notes"][0] == f"{fifo}: reading stopped at the time limit; what had come until then is explained"


def test_pipe_without_a_writer_ends(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with pytest.raises(InputError):
        answer([fifo], timeout=0.3)


@pytest.mark.parametrize("data", [TEXT, gzip.compress(TEXT), TEXT.decode().encode("utf-16")])
def test_standard_input(data: bytes) -> None:
    code = "from cudnn_doctor.diagnose import explain; print(explain(['-']).causes[0].evidence[0].line)"
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True, timeout=60)
    assert done.stdout == b"2\n"


def test_zip_from_a_pipe() -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("a.log", TEXT)
    code = "from cudnn_doctor.diagnose import explain; print(list(explain(['-']).sources))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=whole.getvalue(), capture_output=True, check=True, timeout=60
    )
    assert done.stdout == b"['standard input:a.log']\n"


def test_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        answer(["-"])
