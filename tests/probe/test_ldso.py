"""The emulated search against the real dynamic linker: the same layouts, and /proc/self/maps of a real process."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from cudnn_doctor.model.facts import SearchStep
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
    dice = random.Random(seed)  # noqa: S311 - a fixed choice
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

    def tags() -> tuple[list[str], list[str]]:
        written = path_of(dice.randint(1, 3)) if dice.random() < 0.6 else []
        return (written, []) if dice.random() < 0.5 else ([], written)

    linked = dice.random() < 0.5
    rpath, runpath = tags()
    asker = library(
        top / "x" / "libask.so",
        soname="libask.so",
        needed=[(SONAME, doc)] if linked else [],
        asks_for="" if linked else SONAME,
        rpath=rpath,
        runpath=runpath,
    )
    rpath, runpath = tags()
    outer = library(
        top / "y" / "libouter.so",
        soname="libouter.so",
        needed=[("", asker)],
        rpath=[*rpath, "$ORIGIN/../x"] if not runpath else [],
        runpath=[*runpath, "$ORIGIN/../x"] if runpath else [],
    )
    rpath, runpath = tags()
    executable = program(top / "z" / "program", rpath=rpath, runpath=runpath)
    names = [str(dice.choice([asker, outer])) if dice.random() < 0.8 else SONAME]
    if dice.random() < 0.2:
        names.insert(0, str(dice.choice(folders) / SONAME))
    environ = {}
    if dice.random() < 0.5:
        environ["LD_LIBRARY_PATH"] = dice.choice(":;").join([*path_of(dice.randint(1, 3)), *dice.choice([[], [""]])])
    if dice.random() < 0.3:
        preload = str(dice.choice(folders) / dice.choice([SONAME, "libdoc.so.7.0.0"]))
        environ["LD_PRELOAD"] = dice.choice([preload, SONAME, f"libnothing.so {preload}", f"{preload}:{SONAME}"])
    return executable, names, environ, not linked


@pytest.mark.parametrize("seed", range(36))
def test_random_layout_as_ld_so_does(seed: int, tmp_path: Path, doc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable, names, environ, asks = layout(seed, tmp_path, doc)
    real, printed = loaded(executable, names, environ, tmp_path / "a")
    monkeypatch.chdir(tmp_path / "a")
    process = emulated(executable, names, environ, asks=asks)
    assert mapped(process) == real, (names, environ, printed)


def process_of(environ: dict[str, str], *, secure: bool = False) -> Process:
    return Process(System(()), environ, secure=secure)


def test_steps_tell_where_it_looked_and_why_a_file_does_not_count(tmp_path: Path, doc: Path) -> None:
    copy(doc, tmp_path / "good" / SONAME)
    foreign = bytearray(doc.read_bytes())
    foreign[4] = 1
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / SONAME).write_bytes(foreign)
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / SONAME).symlink_to("gone")
    (tmp_path / "empty").mkdir()
    names = ["missing", "empty", "foreign", "dangling", "good", "never"]
    found = process_of({"LD_LIBRARY_PATH": ":".join(f"{tmp_path}/{n}" for n in names)}).search(SONAME)
    assert found.path == f"{tmp_path}/good/{SONAME}"
    assert found.step == "LD_LIBRARY_PATH"
    assert found.steps == tuple(
        SearchStep(step="LD_LIBRARY_PATH", directory=f"{tmp_path}/{name}", found=name == "good", skipped=why)
        for name, why in [
            ("missing", "no such directory"),
            ("empty", ""),
            ("foreign", "wrong ELF class: ELFCLASS32"),
            ("dangling", "a symbolic link to nothing"),
            ("good", ""),
        ]
    )


def test_a_file_that_is_no_elf_file_ends_the_search(tmp_path: Path, doc: Path) -> None:
    copy(doc, tmp_path / "good" / SONAME)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / SONAME).write_text("version https://git-lfs.github.com/spec/v1\n")
    found = process_of({"LD_LIBRARY_PATH": f"{tmp_path}/bad:{tmp_path}/good"}).search(SONAME)
    assert (found.path, found.error) == ("", f"{tmp_path}/bad/{SONAME}: invalid ELF header")


def test_a_setuid_program_ignores_the_variables(tmp_path: Path, doc: Path) -> None:
    copy(doc, tmp_path / SONAME)
    environ = {"LD_LIBRARY_PATH": str(tmp_path), "LD_PRELOAD": str(tmp_path / SONAME)}
    assert process_of(environ).search(SONAME).step == "LD_PRELOAD"
    assert process_of(environ, secure=True).search(SONAME).path == ""


def test_the_cache_comes_before_the_default_directories(tmp_path: Path, doc: Path) -> None:
    copy(doc, tmp_path / "usr/lib" / SONAME)
    copy(doc, tmp_path / "opt/lib" / SONAME)
    cached = Process(System([(SONAME, f"/opt/lib/{SONAME}")], tmp_path), {}).search(SONAME)
    assert (cached.step, cached.path) == ("ld.so.cache", f"{tmp_path}/opt/lib/{SONAME}")
    stale = Process(System([(SONAME, f"/gone/{SONAME}")], tmp_path), {}).search(SONAME)
    assert (stale.step, stale.path) == ("default directories", f"{tmp_path}/usr/lib/{SONAME}")


def test_hwcaps_folders_of_this_cpu_come_first(tmp_path: Path, doc: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor: 0\nflags\t: fpu sse4_2 avx2\n")
    for level in ("x86-64-v4", "x86-64-v2", "x86-64-v3"):
        copy(doc, tmp_path / f"lib/glibc-hwcaps/{level}" / SONAME)
    copy(doc, tmp_path / "lib" / SONAME)
    found = Process(System((), tmp_path), {"LD_LIBRARY_PATH": f"{tmp_path}/lib"}).search(SONAME)
    assert found.path == f"{tmp_path}/lib/glibc-hwcaps/x86-64-v3/{SONAME}"


def test_nodefaultlib_leaves_the_default_directories_out(tmp_path: Path, doc: Path) -> None:
    copy(doc, tmp_path / "usr/lib" / SONAME)
    asker = library(tmp_path / "libask.so", asks_for=SONAME, flags=["-Wl,-z,nodefaultlib"])
    process = Process(System([(SONAME, f"/usr/lib/{SONAME}")], tmp_path), {})
    opened, _ = process.open(str(asker))
    assert process.search(SONAME, opened).path == ""
    assert process.search(SONAME).path == f"{tmp_path}/usr/lib/{SONAME}"


def test_what_is_loaded_already_is_not_searched_for(tmp_path: Path, doc: Path) -> None:
    first = copy(doc, tmp_path / "first" / "any-name.so")
    copy(doc, tmp_path / "second" / SONAME)
    process = process_of({"LD_LIBRARY_PATH": f"{tmp_path}/second"})
    process.open(str(first), because="preloaded by torch/__init__.py")
    assert process.search(SONAME).path == str(first)  # by its DT_SONAME
    assert process.search(SONAME).step == "preloaded by torch/__init__.py"


def test_missing_libraries_are_named_and_the_rest_is_loaded(tmp_path: Path, doc: Path) -> None:
    gone = library(tmp_path / "gone" / "libcudart.so.12", soname="libcudart.so.12")
    user = library(tmp_path / "libuser.so", needed=[("", gone), ("", doc)], rpath=[str(doc.parent)])
    gone.unlink()
    process = process_of({})
    opened, missing = process.open(str(user))
    assert opened is not None
    assert [m.name for m in missing] == ["libcudart.so.12"]
    assert process.found[SONAME].path == str(doc)


def test_a_ring_of_links_ends_the_list_and_not_the_search(tmp_path: Path) -> None:
    """glibc's open_path gives up the list of directories at a file that it cannot open (ELOOP), then goes on with the
    next list; a file that is no ELF object ends everything."""
    first, second, cached = tmp_path / "first", tmp_path / "second", tmp_path / "cached"
    for folder in (first, second, cached):
        library(folder / "libx.so.1", soname="libx.so.1")
    (first / "libx.so.1").unlink()
    (first / "libx.so.1").symlink_to("libx.so.1")
    environ = {"LD_LIBRARY_PATH": f"{first}:{second}"}
    system = System([("libx.so.1", f"{cached}/libx.so.1")], Path("/"))
    found = Process(system, environ).search("libx.so.1")
    assert (found.path, found.step) == (f"{cached}/libx.so.1", "ld.so.cache")
    (first / "libx.so.1").unlink()
    (first / "libx.so.1").write_bytes(b"")
    ended = Process(System([("libx.so.1", f"{cached}/libx.so.1")], Path("/")), environ).search("libx.so.1")
    assert (ended.path, ended.error) == ("", f"{first}/libx.so.1: file too short")
    assert ended.stopped_at == f"{first}/libx.so.1"
