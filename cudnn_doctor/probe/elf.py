"""Reads what the dynamic linker reads of an ELF file: class, machine and the dynamic section.

pyelftools would do, but importing it takes 100 ms and reading one library 4 ms (measured on cuDNN 9.27); the whole
check on a machine without GPU has less. This reader takes 0.1 ms a library and the tests compare it with pyelftools.
Layout: System V ABI, chapters 4 and 5.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

from cudnn_doctor.model.base import Base

_PT_LOAD, _PT_DYNAMIC = 1, 2
_SHT_PROGBITS, _SHT_DYNSYM, _STT_OBJECT = 1, 11, 1
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH, _DT_FLAGS_1 = 1, 5, 14, 15, 29, 0x6FFFFFFB
_DF_1_NODEFLIB = 0x800
_ET_EXEC, _ET_DYN = 2, 3
_EM = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183, "ppc64le": 21, "s390x": 22, "riscv64": 243, "i686": 3}
_MAX_TABLE = 1 << 20  # a program header table or dynamic section is a few kilobytes; more is a broken file


class ElfError(ValueError):
    """The file is no ELF object that the dynamic linker takes; the text is the linker's own word where it has one."""


class ForeignElfError(ElfError):
    """A sound ELF object for another machine: the dynamic linker passes over it and goes on searching."""


class Dynamic(Base, frozen=True, kw_only=True):
    """The dynamic section. Search paths are as written, `$ORIGIN` and all; an ignored DT_RPATH is left out."""

    needed: tuple[str, ...] = ()
    soname: str = ""
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    no_default_dirs: bool = False  # DF_1_NODEFLIB


class _Layout:
    """Where the fields are in a 32-bit or 64-bit file of either byte order."""

    def __init__(self, ident: bytes) -> None:
        self.wide = ident[4] == 2
        order = "<" if ident[5] == 1 else ">"
        self.header = struct.Struct(order + ("HHIQQQIHHHHHH" if self.wide else "HHIIIIIHHHHHH"))
        self.segment = struct.Struct(order + ("IIQQQQQQ" if self.wide else "IIIIIIII"))
        self.section = struct.Struct(order + ("IIQQQQIIQQ" if self.wide else "IIIIIIIIII"))
        self.entry = struct.Struct(order + ("qQ" if self.wide else "iI"))
        self.symbol = struct.Struct(order + ("IBBHQQ" if self.wide else "IIIBBH"))


class _Header:
    def __init__(self, file: BinaryIO, machine: str) -> None:
        ident = file.read(16)
        if len(ident) < 16:
            raise ElfError("file too short")
        if ident[:4] != b"\x7fELF":
            raise ElfError("invalid ELF header")
        if ident[4] not in (1, 2) or ident[5] not in (1, 2):
            raise ElfError("invalid ELF class or byte order")
        self.layout = _Layout(ident)
        if self.layout.wide != (sys.maxsize > 1 << 32):
            raise ForeignElfError(f"wrong ELF class: ELFCLASS{64 if self.layout.wide else 32}")
        if (ident[5] == 1) != (sys.byteorder == "little"):
            raise ElfError("ELF file data encoding not little-endian" if ident[5] == 2 else "not big-endian")
        raw = file.read(self.layout.header.size)
        if len(raw) < self.layout.header.size:
            raise ElfError("file too short")
        fields = self.layout.header.unpack(raw)
        self.kind, e_machine = fields[0], fields[1]
        self.segments = (fields[4], fields[9])  # offset, count
        self.sections = (fields[5], fields[11], fields[12])  # offset, count, index of the names
        wanted = _EM.get(machine.lower())
        if wanted is not None and e_machine != wanted:
            raise ForeignElfError(f"for another machine (e_machine {e_machine}, here {wanted})")
        if self.kind not in (_ET_EXEC, _ET_DYN):
            raise ElfError("only ET_DYN and ET_EXEC can be loaded")

    def section_rows(self, file: BinaryIO) -> list[tuple[Any, ...]]:
        """The section table, one tuple of the format's fields a section."""
        offset, count, _ = self.sections
        return list(self.layout.section.iter_unpack(_read(file, offset, count * self.layout.section.size)))


def read_dynamic(path: str | Path, machine: str = "") -> Dynamic:
    """The dynamic section of a library or executable for this machine.

    Args:
        machine: name of the machine ("x86_64"); this one's where empty.

    Raises:
        ForeignElfError: for another class or machine.
        ElfError: not an ELF object, or a damaged one.
        OSError: not readable.
    """
    with open(path, "rb", buffering=0) as file:
        header = _Header(file, machine or this_machine())
        try:
            return _dynamic(file, header)
        except (struct.error, ValueError, IndexError) as e:
            raise ElfError(f"damaged dynamic section: {e}") from e


def bytes_needed(path: str | Path) -> int:
    """Bytes that the file must have by its own headers: up to the end of its last segment and of its section table. A
    shorter file was cut off: the loader maps it, and the process ends with SIGBUS or at a symbol that is not there.

    Raises:
        ElfError: not an ELF object for this machine, or one without whole headers.
        OSError: not readable.
    """
    with open(path, "rb", buffering=0) as file:
        header = _Header(file, this_machine())
        offset, count = header.segments
        size = header.layout.segment.size
        try:
            rows = _read(file, offset, count * size)
        except ValueError:
            return int(offset + count * size)
        at, length = (2, 5) if header.layout.wide else (1, 4)
        ends = [int(row[at] + row[length]) for row in header.layout.segment.iter_unpack(rows)]
        table, sections, _ = header.sections
        return max((*ends, int(table + sections * header.layout.section.size), int(offset + count * size)))


def read_section(path: str | Path, name: str, limit: int) -> bytes:
    """The bytes of a section such as ".rodata", at most `limit`; empty where the file has no such section.

    Raises:
        ElfError: not an ELF object for this machine, or a damaged one.
        OSError: not readable.
    """
    with open(path, "rb", buffering=0) as file:
        header = _Header(file, this_machine())
        try:
            rows = header.section_rows(file)
            names_index = header.sections[2]
            names = _read(file, rows[names_index][4], rows[names_index][5])
            for row in rows:
                if _text(names, row[0]) == name:
                    return _read(file, row[4], min(row[5], limit), limit=limit)
        except (struct.error, ValueError, IndexError) as e:
            raise ElfError(f"damaged section table: {e}") from e
    return b""


def read_number(path: str | Path, symbol: str, limit: int = 8 << 20) -> int | None:
    """The value of an exported variable of four bytes as the file has it; None where the file exports none so named.

    Raises:
        ElfError: not an ELF object for this machine, or a damaged one.
        OSError: not readable.
    """
    with open(path, "rb", buffering=0) as file:
        header = _Header(file, this_machine())
        try:
            rows = header.section_rows(file)
            wide = header.layout.wide
            for table in (r for r in rows if r[1] == _SHT_DYNSYM):
                names = rows[table[6]]
                text = _read(file, names[4], names[5], limit=limit)
                name = text.find(f"\0{symbol}\0".encode()) + 1
                symbols = _read(file, table[4], table[5], limit=limit)
                for entry in header.layout.symbol.iter_unpack(symbols) if name else ():
                    kind, value, size = (entry[1], entry[4], entry[5]) if wide else (entry[3], entry[1], entry[2])
                    if entry[0] == name and kind & 15 == _STT_OBJECT and size == 4:
                        place = next(r for r in rows if r[1] == _SHT_PROGBITS and r[3] <= value < r[3] + r[5])
                        return int.from_bytes(_read(file, place[4] + value - place[3], 4), sys.byteorder)
        except (struct.error, ValueError, IndexError, StopIteration) as e:
            raise ElfError(f"damaged symbol table: {e}") from e
    return None


def this_machine() -> str:
    """The machine's name as the kernel gives it."""
    return os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")


def _dynamic(file: BinaryIO, header: _Header) -> Dynamic:
    offset, count = header.segments
    loads: list[tuple[int, int, int]] = []  # address, size in the file, offset
    where = (0, 0)
    for row in header.layout.segment.iter_unpack(_read(file, offset, count * header.layout.segment.size)):
        if header.layout.wide:
            kind, _, at, address, _, size, _, _ = row
        else:
            kind, at, address, _, size, _, _, _ = row
        if kind == _PT_LOAD:
            loads.append((address, size, at))
        elif kind == _PT_DYNAMIC:
            where = (at, size)
    entries: list[tuple[int, int]] = []
    for tag, value in header.layout.entry.iter_unpack(_read(file, *where)):
        if tag == 0:
            break
        entries.append((tag, value))
    first = dict(reversed(entries))
    table = first.get(_DT_STRTAB, -1)
    strings = next((at + table - address for address, size, at in loads if address <= table < address + size), 0)

    def text(tag: int) -> str:
        return _string(file, strings + first[tag]) if tag in first else ""

    runpath = text(_DT_RUNPATH)
    # ld.so ignores DT_RPATH where there is a DT_RUNPATH (glibc, elf_get_dynamic_info), and an empty one.
    rpath = "" if _DT_RUNPATH in first else text(_DT_RPATH)
    return Dynamic(
        needed=tuple(_string(file, strings + value) for tag, value in entries if tag == _DT_NEEDED),
        soname=text(_DT_SONAME),
        rpath=tuple(rpath.split(":")) if rpath else (),
        runpath=tuple(runpath.split(":")) if runpath else (),
        no_default_dirs=bool(first.get(_DT_FLAGS_1, 0) & _DF_1_NODEFLIB),
    )


def _seek(file: BinaryIO, offset: int) -> None:
    try:
        file.seek(offset)
    except (OSError, OverflowError) as e:
        raise ValueError("an offset outside of the file") from e


def _read(file: BinaryIO, offset: int, size: int, limit: int = _MAX_TABLE) -> bytes:
    if size > limit:
        raise ValueError(f"a table of {size} bytes")
    _seek(file, offset)
    data = file.read(size)
    if len(data) < size:
        raise ValueError("file too short")
    return data


def _string(file: BinaryIO, offset: int) -> str:
    data = b""
    while b"\0" not in data:
        _seek(file, offset + len(data))
        more = file.read(512)
        if not more or len(data) > _MAX_TABLE:
            raise ValueError("a string without end")
        data += more
    return os.fsdecode(data[: data.index(b"\0")])


def _text(data: bytes, offset: int) -> str:
    return os.fsdecode(data[offset : data.index(b"\0", offset)])
