"""Opens what is to be explained and gives its bytes, decompressed, in bounded pieces.

Nothing here trusts the input: sizes, expansion and time are bounded, a pipe that never ends stops at the deadline, and
every failure is an `InputError` or a note, never a traceback.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from cudnn_doctor.model.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

CHUNK = 1 << 18
MAX_EXPANDED = 16 << 30  # bytes of one source after decompression
MAX_RATIO = 200  # real logs compress 5- to 80-fold
RATIO_FROM = 64 << 20  # the ratio is judged from this many decompressed bytes on
MAX_ZIP = 64 << 20  # a zip from a pipe must fit in memory: its directory is at the end
MAX_MEMBERS = 200
XZ_MEMORY = 256 << 20

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)


_MARKS = (  # the longer ones first
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


class Stream:
    """Pieces of one source."""

    def __init__(self, name: str, pieces: Iterator[bytes], again: Callable[[], Iterator[bytes]] | None = None) -> None:
        self.name = name
        self.pieces = pieces
        self.again = again  # the same pieces from the start, where reading them twice is cheap


def open_sources(sources: list[str], deadline: float, notes: list[str]) -> Iterator[Stream]:
    """One stream per source, per member for a zip; `"-"` is standard input. `deadline` is by time.monotonic.

    Raises:
        InputError: a source cannot be opened at all.
    """
    for source in sources:
        if source == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise InputError("standard input is closed; give a file instead of -")
            yield from _unpacked("standard input", sys.stdin.buffer, deadline, notes)
            continue
        with _open(source) as handle:
            yield from _unpacked(source, handle, deadline, notes)


def _open(path: str) -> BinaryIO:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path} is a directory; name the files in it")
        if stat.S_ISSOCK(mode):
            raise InputError(f"{path} is a socket, not a log")
        # A named pipe without a writer would block open() itself.
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | (getattr(os, "O_NONBLOCK", 0) if stat.S_ISFIFO(mode) else 0)
        return os.fdopen(os.open(path, flags), "rb", buffering=0)
    except InputError:
        raise
    except OSError as e:
        raise InputError(f"{path} cannot be read: {e.strerror or e}") from None
    except ValueError as e:  # a NUL in the name
        raise InputError(f"{path!r} is not a file name: {e}") from None


def _unpacked(name: str, handle: BinaryIO, deadline: float, notes: list[str]) -> Iterator[Stream]:
    raw = _raw(name, handle, deadline, notes)
    first = next(raw, b"")
    kind = next((kind for magic, kind in _MAGIC if first.startswith(magic)), "")
    pieces = _chain(first, raw)
    if kind == "zip":
        yield from _zip(name, handle, pieces, deadline, notes)
        return
    if kind:
        pieces = _expand(name, kind, pieces, notes)
    plain = not kind and handle is not sys.stdin.buffer and not _waits(handle.fileno()) and not _wide(first)
    yield Stream(name, pieces if plain else _text(pieces), (lambda: _from_start(name)) if plain else None)


def _text(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces as UTF-8, whatever they are in."""
    first = next(pieces, b"")
    yield from _recoded(_chain(first, pieces), _wide(first))


def _from_start(path: str) -> Iterator[bytes]:
    with suppress(OSError), open(path, "rb", buffering=0) as file:  # what can still be read counts
        while piece := file.read(CHUNK):
            yield piece


def _wide(first: bytes) -> str:
    """The encoding of text in units of two or four bytes (PowerShell writes UTF-16), "" for all others."""
    for mark, encoding in _MARKS:
        if first.startswith(mark):
            return encoding
    sample = first[:1024]
    odd, even = sample[1::2].count(0), sample[::2].count(0)
    if max(odd, even) < len(sample) // 5 or min(odd, even) > max(odd, even) // 8:
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _recoded(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """The pieces as UTF-8; damaged units become replacement characters."""
    if not encoding:
        yield from pieces
        return
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _raw(name: str, handle: BinaryIO, deadline: float, notes: list[str]) -> Iterator[bytes]:
    """Pieces as they come, until the end or the deadline. A pipe without data is waited for, not blocked on."""
    fd = handle.fileno()
    waits = _waits(fd)
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or (waits and not _ready(fd, left)):
            notes.append(f"{name}: reading stopped at the time limit; what had come until then is explained")
            return
        try:
            piece = os.read(fd, CHUNK)
        except BlockingIOError:
            time.sleep(min(0.02, max(left, 0)))
            continue
        except OSError as e:
            notes.append(f"{name}: reading failed ({e.strerror or e}); what had come until then is explained")
            return
        if not piece:
            return
        yield piece


def _waits(fd: int) -> bool:
    """Whether a read can block for long. Regular files never; Windows cannot wait for a pipe."""
    return sys.platform != "win32" and not stat.S_ISREG(os.fstat(fd).st_mode)


def _ready(fd: int, seconds: float) -> bool:
    import select

    try:
        return bool(select.select([fd], [], [], seconds)[0])
    except (OSError, ValueError):  # a descriptor that cannot be waited for: read it
        return True


def _expand(name: str, kind: str, pieces: Iterator[bytes], notes: list[str]) -> Iterator[bytes]:
    """Decompressed pieces of at most CHUNK bytes. Damage and bombs end the stream with a note."""
    make = _decoder(name, kind)
    decoder, read, given, fresh = make(), 0, 0, True
    data = b""
    while True:
        if not data:
            data = next(pieces, b"")
            read += len(data)
            if not data:
                if not fresh:
                    notes.append(f"{name}: the {kind} data ends early; what could be read is explained")
                return
        try:
            out, data = _step(decoder, data)
        except Exception as e:  # zlib.error, LZMAError, OSError, ZstdError, MemoryError of the memory limit
            if not (fresh and given):  # trailing garbage after a complete member is common and harmless
                notes.append(f"{name}: damaged {kind} data ({str(e)[:80]}); what could be read is explained")
            return
        fresh = False
        given += len(out)
        if out:
            yield out
        if given > MAX_EXPANDED or (given > RATIO_FROM and given > MAX_RATIO * read):
            notes.append(f"{name}: {read >> 20} MiB expand to more than {given >> 20} MiB; reading stopped there")
            return
        if decoder.eof:
            data, decoder, fresh = decoder.unused_data or data, make(), True


def _step(decoder: Any, data: bytes) -> tuple[bytes, bytes]:
    """One bounded piece out of `data`, and what is left to feed."""
    if hasattr(decoder, "unconsumed_tail"):  # zlib keeps the rest outside
        out: bytes = decoder.decompress(data, CHUNK)
        return out, decoder.unconsumed_tail
    if hasattr(decoder, "needs_input"):  # lzma, bz2, compression.zstd keep it inside
        out = decoder.decompress(data, CHUNK)
        while not out and not decoder.needs_input and not decoder.eof:
            out = decoder.decompress(b"", CHUNK)
        return out, b"" if decoder.needs_input or decoder.eof else _INSIDE
    return decoder.decompress(data[:4096]), data[4096:]  # the package zstandard has no limit: feed little


class _Inside(bytes):
    """Empty input that is still worth a call: the decoder holds output back."""

    def __bool__(self) -> bool:
        return True


_INSIDE = _Inside()


def _decoder(name: str, kind: str) -> Callable[[], Any]:
    if kind == "gzip":
        import zlib

        return lambda: zlib.decompressobj(31)
    if kind == "xz":
        import lzma

        return lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY)
    if kind == "bzip2":
        import bz2

        return bz2.BZ2Decompressor
    return _zstd(name)


def _zstd(name: str) -> Callable[[], Any]:
    import importlib

    try:
        made: Callable[[], Any] = importlib.import_module("compression.zstd").ZstdDecompressor
    except ImportError:
        try:
            package = importlib.import_module("zstandard")
        except ImportError:
            raise InputError(
                f"{name} is zstd data and this Python cannot read it (3.14 can, or install zstandard); "
                f"run: zstd -dc {name} | cudnn-doctor explain -"
            ) from None
        return lambda: package.ZstdDecompressor().decompressobj()
    return made


def _zip(name: str, handle: BinaryIO, pieces: Iterator[bytes], deadline: float, notes: list[str]) -> Iterator[Stream]:
    import io
    import zipfile

    source: BinaryIO = handle
    if not handle.seekable():
        whole = bytearray()
        for piece in pieces:
            whole += piece
            if len(whole) > MAX_ZIP:
                raise InputError(
                    f"{name} is a zip of more than {MAX_ZIP >> 20} MiB from a pipe; save it as a file first"
                )
        source = io.BytesIO(whole)
    try:
        archive = zipfile.ZipFile(source)
        members = [m for m in archive.infolist() if not m.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as e:
        raise InputError(f"{name} looks like a zip and cannot be read: {e}") from None
    if len(members) > MAX_MEMBERS:
        notes.append(f"{name}: only the first {MAX_MEMBERS} of {len(members)} files in the zip are read")
    for member in members[:MAX_MEMBERS]:
        inside = f"{name}:{member.filename}"
        yield Stream(inside, _text(_member(archive, member, inside, deadline, notes)))


def _member(archive: Any, member: Any, name: str, deadline: float, notes: list[str]) -> Iterator[bytes]:
    given = 0
    try:
        with archive.open(member) as file:
            while piece := file.read(CHUNK):
                given += len(piece)
                yield piece
                bomb = given > RATIO_FROM and given > MAX_RATIO * max(member.compress_size, 1)
                if bomb or given > MAX_EXPANDED or time.monotonic() > deadline:
                    notes.append(f"{name}: reading stopped after {given >> 20} MiB")
                    return
    except Exception as e:  # encrypted, damaged, unknown method: zipfile raises many kinds
        notes.append(f"{name}: cannot be read from the zip ({str(e)[:80]})")
