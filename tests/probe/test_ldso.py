"""The emulated search against the real dynamic linker: the same layouts, and /proc/self/maps of a real process."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from cudnn_doctor.model import SearchStep
from cudnn_doctor.probe.ldcache import read_ld_cache
from cudnn_doctor.probe.ldso import Process, System
from tests.probe.elf_builder import library, loaded, needs_gcc, program

pytestmark = needs_gcc
SONAME = "libdoc.so.7"


def emulated(executable: Path, names: list[str], environ: dict[str, str], *, asks: bool) -> Process:
    """The same as the test program does: opens each name, then what `ask` of it or of what it links asks for."""
    process = Process(System(read_ld_cache()), environ, str(executable))
    for name in names:
        opened, _ = process.open(name)
        asker = process.named("libask.so")
        if asks and opened and asker and "libdoc" not in name:
            process.open(SONAME, asker)
    return process


def mapped(process: Process) -> set[str]:
    return {os.path.realpath(lib.path) for lib in process.loaded if "libdoc" in os.path.basename(lib.path)}


@pytest.fixture(scope="module")
def doc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("doc") / SONAME, soname=SONAME)


def copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
    return target


def layout(seed: int, top: Path, doc: Path) -> tuple[Path, list[str], dict[str, str], bool]:
    """A random layout: copies of the library in some of six folders, good and bad; an asker with a search path that
    links it or dlopens it, itself linked by an outer library; a program with a search path; the variables."""
    dice = random.Random(seed)
    folders = [top / name for name in "abcdef"]
    for folder in folders:
        folder.mkdir()
        kind = dice.choice(["none", "none", "good", "good", "link", "other class", "dangling", "text", "other name"])
        file = folder / SONAME
        if kind == "good":
            copy(doc, file)
        elif kind == "link":
            copy(doc, folder / "libdoc.so.7.1.2")
            file.symlink_to("libdoc.so.7.1.2")
        elif kind == "other class":
            data = bytearray(doc.read_bytes())
            data[4] = 1
            file.write_bytes(data)
        elif kind == "dangling":
            file.symlink_to("nowhere.so")
        elif kind == "text" and dice.random() < 0.5:
            file.write_text("INPUT(libdoc.so.7.0.0)\n")
        elif kind == "other name":
            copy(doc, folder / "libdoc.so.7.0.0")

    def path_of(count: int) -> list[str]:
        chosen = dice.sample(folders, count)
        return [dice.choice([str(f), f"$ORIGIN/../{f.name}", f"${{ORIGIN}}/../{f.name}/."]) for f in chosen]

    def tags() -> dict[str, list[str]]:
        return {dice.choice(["rpath", "runpath"]): path_of(dice.randint(1, 3))} if dice.random() < 0.6 else {}

    linked = dice.random() < 0.5
    asker = library(
        top / "x" / "libask.so",
        soname="libask.so",
        needed=[(SONAME, doc)] if linked else [],
        asks_for="" if linked else SONAME,
        **tags(),
    )
    outer_tags = tags() or {"rpath": []}
    key = next(iter(outer_tags))
    outer = library(
        top / "y" / "libouter.so", soname="libouter.so", needed=[("", asker)], **{key: [*outer_tags[key], "$ORIGIN/../x"]}
    )
    executable = program(top / "z" / "program", **tags())
    names = [str(dice.choice([asker, outer])) if dice.random() < 0.8 else SONAME]
    if dice.random() < 0.2:
        names.insert(0, str(dice.choice(folders) / SONAME))
    environ = {}
    if dice.random() < 0.5:
        environ["LD_LIBRARY_PATH"] = dice.choice(":;").join([*path_of(dice.randint(1, 3)), *dice.choice([[], [""]])])
    if dice.random() < 0.2:
        environ["LD_PRELOAD"] = str(dice.choice(folders) / dice.choice([SONAME, "libdoc.so.7.0.0"]))
    return executable, names, environ, not linked


@pytest.mark.parametrize("seed", range(48))
def test_random_layout_as_ld_so_does(seed: int, tmp_path: Path, doc: Path) -> None:
    executable, names, environ, asks = layout(seed, tmp_path, doc)
    real, printed = loaded(executable, names, environ, tmp_path / "a")
    os.chdir(tmp_path / "a")
    process = emulated(executable, names, environ, asks=asks)
    assert mapped(process) == real, (names, environ, printed)
