"""The ELF reader against pyelftools on real libraries, and on damaged files."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from cudnn_doctor.probe.elf import Dynamic, ElfError, ForeignElfError, read_dynamic, read_section
from tests.probe.elf_builder import library, needs_gcc


def by_pyelftools(path: Path) -> Dynamic:
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        for segment in ELFFile(file).iter_segments("PT_DYNAMIC"):
            tags = list(segment.iter_tags())
            values = {t.entry.d_tag: t for t in tags}
            runpath = values["DT_RUNPATH"].runpath if "DT_RUNPATH" in values else ""
            rpath = values["DT_RPATH"].rpath if "DT_RPATH" in values and not runpath else ""
            flags = values["DT_FLAGS_1"].entry.d_val if "DT_FLAGS_1" in values else 0
            return Dynamic(
                needed=tuple(t.needed for t in tags if t.entry.d_tag == "DT_NEEDED"),
                soname=values["DT_SONAME"].soname if "DT_SONAME" in values else "",
                rpath=tuple(rpath.split(":")) if rpath else (),
                runpath=tuple(runpath.split(":")) if runpath else (),
                no_default_dirs=bool(flags & 0x800),
            )
    return Dynamic()


def real_libraries() -> list[Path]:
    folders = [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path(sys.prefix)]
    found = [p for f in folders if f.is_dir() for p in sorted(f.rglob("*.so*")) if p.is_file() and not p.is_symlink()]
    return random.Random(9).sample(found, min(40, len(found)))  # noqa: S311 - a fixed choice


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF is Linux's")
def test_real_libraries_as_pyelftools_reads_them() -> None:
    compared = 0
    for path in [Path(os.path.realpath(sys.executable)), *real_libraries()]:
        try:
            mine = read_dynamic(path)
        except ElfError:
            continue  # a linker script, or another machine's
        assert mine == by_pyelftools(path), path
        compared += 1
    assert compared > 5


@needs_gcc
@pytest.mark.parametrize(
    ("rpath", "runpath"),
    [((), ()), (("$ORIGIN", "/opt/x"), ()), ((), ("${ORIGIN}/../lib", "")), (("/a" * 2000,), ())],
)
def test_search_paths_as_linked(tmp_path: Path, rpath: tuple[str, ...], runpath: tuple[str, ...]) -> None:
    helper = library(tmp_path / "libhelper.so.3", soname="libhelper.so.3")
    path = library(
        tmp_path / "lib.so", soname="libdoc.so.7", rpath=rpath, runpath=runpath, needed=[("libhelper.so.3", helper)]
    )
    read = read_dynamic(path)
    assert (read.soname, read.rpath, read.runpath) == ("libdoc.so.7", rpath, runpath)
    assert read.needed[0] == "libhelper.so.3"
    assert read == by_pyelftools(path)


@needs_gcc
def test_a_section(tmp_path: Path) -> None:
    path = library(tmp_path / "lib.so", text='const char *name(void) { return "libcublasLt.so.12"; }\n')
    assert b"libcublasLt.so.12\0" in read_section(path, ".rodata", 1 << 20)
    assert len(read_section(path, ".rodata", 4)) == 4
    assert read_section(path, ".nothing", 1 << 20) == b""


@needs_gcc
def test_files_that_are_passed_over_and_files_that_end_the_search(tmp_path: Path) -> None:
    path = library(tmp_path / "lib.so")
    good = path.read_bytes()
    cases: list[tuple[bytes, type[ElfError], str]] = [
        (b"", ElfError, "file too short"),
        (b"INPUT(libcudnn.so.9)", ElfError, "invalid ELF header"),
        (good[:40], ElfError, "file too short"),
        (good[:4] + b"\x01" + good[5:], ForeignElfError, "wrong ELF class: ELFCLASS32"),
        (good[:18] + b"\x08\x00" + good[20:], ForeignElfError, "for another machine"),
        (good[:16] + b"\x01\x00" + good[18:], ElfError, "only ET_DYN and ET_EXEC"),
        (good[:300], ElfError, "damaged dynamic section"),
    ]
    for content, error, words in cases:
        path.write_bytes(content)
        with pytest.raises(error, match=words) as caught:
            read_dynamic(path)
        assert isinstance(caught.value, ForeignElfError) == (error is ForeignElfError)
    with pytest.raises(FileNotFoundError):
        read_dynamic(tmp_path / "nothing")


@needs_gcc
def test_damage_never_raises_anything_else(tmp_path: Path) -> None:
    path = library(tmp_path / "lib.so", soname="libdoc.so.7", rpath=("$ORIGIN",))
    good = bytearray(path.read_bytes())
    dice = random.Random(4)  # noqa: S311 - a fixed choice
    for _ in range(400):
        broken = bytearray(good)
        for _ in range(dice.randint(1, 8)):
            broken[dice.randrange(dice.choice([64, 600, len(good)]))] = dice.randrange(256)
        path.write_bytes(broken)
        try:
            assert isinstance(read_dynamic(path), Dynamic)
            read_section(path, ".rodata", 1 << 16)
        except ElfError:
            pass
