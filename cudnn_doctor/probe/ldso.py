"""What glibc's dynamic linker would load, told from files alone: nothing is opened by it, no child is started.

`Process` stands for a process to be: `open` is dlopen with all that it pulls in by DT_NEEDED, `search` is the search
for one name. The order is that of glibc's elf/dl-load.c and ld.so(8): already loaded (by name or DT_SONAME, so
LD_PRELOAD and earlier dlopens win); DT_RPATH of the requesting object, of the objects that loaded it and of the
executable, unless the requesting object has a DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH of the requesting object;
ld.so.cache; the default directories. A file for another machine is passed over. A file that is no ELF file at all ends
the search with an error; one that cannot even be opened (a ring of links, a failing disk) ends only the list of
directories that it was met in (open_path and open_verify of elf/dl-load.c, glibc 2.36).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from cudnn_doctor.model.base import Base
from cudnn_doctor.model.facts import SearchStep
from cudnn_doctor.probe.elf import Dynamic, ElfError, ForeignElfError, read_dynamic, this_machine
from cudnn_doctor.probe.root_files import at

# Mapped into every process before anything is searched for.
_ALWAYS_THERE = ("libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "ld-linux", "libutil.so.")
_TRIPLETS = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "ppc64le": "powerpc64le-linux-gnu"}
# glibc-hwcaps levels of the x86-64 psABI, best first, with a CPU flag that only that level's CPUs have.
_LEVELS = (("x86-64-v4", "avx512vl"), ("x86-64-v3", "avx2"), ("x86-64-v2", "sse4_2"))
_Ends = Literal["nothing", "the list", "the search"]  # what a file that does not serve puts an end to


class Found(Base, frozen=True, kw_only=True):
    """Where one name leads. `path` is empty where it leads nowhere; `error` says why, where it is more than absence,
    and `stopped_at` is then the file that the search ended with."""

    name: str
    path: str = ""
    step: str = ""
    steps: tuple[SearchStep, ...] = ()
    error: str = ""
    stopped_at: str = ""


def tidy(path: str) -> str:
    """The path without "..": the folder that it truly leads to, and the file's own name as it stands."""
    if ".." not in path:
        return path
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


class Library:
    """One object in the process: its file, its dynamic section, and the object that asked for it."""

    def __init__(self, path: str, dynamic: Dynamic, loader: Library | None) -> None:
        self.path, self.dynamic, self.loader = path, dynamic, loader
        self.names = {path, dynamic.soname} - {""}

    @property
    def origin(self) -> str:
        """$ORIGIN: the folder of the path by which it was opened; symbolic links stay (glibc resolves none)."""
        return os.path.dirname(os.path.join(os.getcwd(), self.path))


class System:
    """What the search depends on beside the process: the cache, the default directories, what files hold."""

    def __init__(self, ld_cache: Sequence[tuple[str, str]], root: Path = Path("/"), machine: str = "") -> None:
        self.root, self.machine = root, machine or this_machine()
        self.cache: dict[str, str] = {}
        for name, path in ld_cache:
            self.cache.setdefault(name, at(root, path))
        triplet = _TRIPLETS.get(self.machine, "")
        self.multiarch = bool(triplet) and os.path.isdir(at(root, f"/usr/lib/{triplet}"))
        wide = os.path.isdir(at(root, "/lib64"))
        self.lib = f"lib/{triplet}" if self.multiarch else "lib64" if wide else "lib"
        names = (self.lib, "lib") if self.multiarch else (self.lib,)
        self.default_dirs = tuple(at(root, f"{top}/{name}") for name in names for top in ("", "/usr"))
        self._files: dict[str, Dynamic | OSError | ElfError] = {}
        self._levels: tuple[str, ...] | None = None

    def read(self, path: str) -> Dynamic:
        """The dynamic section of a file, read once.

        Raises:
            OSError, ForeignElfError, ElfError: as `read_dynamic`.
        """
        known = self._files.get(path)
        if known is None:
            try:
                known = read_dynamic(path, self.machine)
            except (OSError, ElfError) as e:
                known = e
            self._files[path] = known
        if isinstance(known, Dynamic):
            return known
        raise known

    def levels(self) -> tuple[str, ...]:
        """glibc-hwcaps folders that this CPU may use, best first."""
        if self._levels is None:
            flags: set[str] = set()
            try:
                for line in (self.root / "proc/cpuinfo").read_text(errors="replace").splitlines():
                    if line.startswith("flags"):
                        flags = set(line.split())
                        break
            except OSError:
                pass
            self._levels = tuple(level for level, flag in _LEVELS if flag in flags)
        return self._levels


class Process:
    """A process to be, from its start on. `executable` is the program; without one, a program without DT_RPATH."""

    def __init__(
        self, system: System, environ: Mapping[str, str], executable: str = "", *, secure: bool = False
    ) -> None:
        self.system = system
        self.main = self._executable(executable)
        self.loaded: list[Library] = []
        self.found: dict[str, Found] = {}  # first search for each name
        self._inodes: dict[tuple[int, int], Library] = {}
        listed = "" if secure else environ.get("LD_LIBRARY_PATH", "")
        self.library_path = tuple(self._expand(listed.replace(";", ":").split(":"), self.main)) if listed else ()
        preload = "" if secure else environ.get("LD_PRELOAD", "")
        for name in preload.replace(":", " ").split():
            self.open(name, self.main, because="LD_PRELOAD")
        for name in self.main.dynamic.needed:
            self._load(self._locate(name, self.main), self.main)

    def open(
        self, name: str, caller: Library | None = None, *, because: str = ""
    ) -> tuple[Library | None, list[Found]]:
        """dlopen: the object, or None where it is not to be had, and what was needed and not found.

        Args:
            name: a soname, or a path (anything with a slash), which is not searched for.
            caller: the object whose code calls dlopen; the executable where left out.
            because: names the step, where the name is not searched for but loaded by someone's decision.
        """
        first = self._load(self._locate(name, caller or self.main, because), caller or self.main)
        missing: list[Found] = []
        queue = [first] if first else []
        for library in queue:  # breadth first, as ld.so does; grows as it goes
            for needed in library.dynamic.needed:
                if needed.startswith(_ALWAYS_THERE):
                    continue
                known = self.named(needed)
                loaded = known or self._load(self._locate(needed, library), library)
                if loaded is None:
                    missing.append(self.found[needed])
                elif known is None:
                    queue.append(loaded)
        return first, missing

    def named(self, name: str) -> Library | None:
        """The object that a search for this name would be given without a search."""
        return next((lib for lib in self.loaded if name in lib.names), None)

    def search(self, name: str, caller: Library | None = None) -> Found:
        """The search for a name without a slash on behalf of `caller`."""
        caller = caller or self.main
        loaded = self.named(name)
        if loaded:
            earlier = next((f for f in self.found.values() if f.path == loaded.path), None)
            return earlier or Found(name=name, path=loaded.path, step="already loaded")
        steps: list[SearchStep] = []
        for step, directories in self._places(caller):
            for path in self._listed(name, step, directories, caller, steps):
                problem, ends = self._problem(path)
                place = os.path.dirname(tidy(path))
                steps.append(SearchStep(step=step, directory=place, found=not problem, skipped=problem))
                if ends == "the search":
                    return Found(
                        name=name,
                        step=step,
                        steps=tuple(steps),
                        error=f"{tidy(path)}: {problem}",
                        stopped_at=tidy(path),
                    )
                if not problem:
                    return Found(name=name, path=path, step=step, steps=tuple(steps))
                if ends == "the list":
                    break
        return Found(name=name, steps=tuple(steps))

    def _listed(
        self, name: str, step: str, directories: Sequence[str], caller: Library, steps: list[SearchStep]
    ) -> Iterator[str]:
        """The files of that name in these directories, in order; a directory without one is noted in `steps`."""
        for directory in directories:
            paths = list(self._candidates(directory, name, caller))
            yield from paths
            if not paths:
                gone = "no such directory" if directory and not os.path.isdir(directory) else ""
                place = os.path.realpath(directory) if ".." in directory else directory
                steps.append(SearchStep(step=step, directory=place, found=False, skipped=gone))

    def _places(self, caller: Library) -> Iterator[tuple[str, Sequence[str]]]:
        if not caller.dynamic.runpath:
            chain: list[Library] = []
            library: Library | None = caller
            while library and library not in chain:
                chain.append(library)
                library = library.loader
            if self.main not in chain:
                chain.append(self.main)
            for library in chain:
                if library.dynamic.rpath:
                    yield f"DT_RPATH of {tidy(library.path)}", self._expand(library.dynamic.rpath, library)
        if self.library_path:
            yield "LD_LIBRARY_PATH", self.library_path
        if caller.dynamic.runpath:
            yield f"DT_RUNPATH of {tidy(caller.path)}", self._expand(caller.dynamic.runpath, caller)
        yield "ld.so.cache", ("",)
        if not caller.dynamic.no_default_dirs:
            yield "default directories", self.system.default_dirs

    def _candidates(self, directory: str, name: str, caller: Library) -> Iterator[str]:
        if not directory:  # the cache, which names files
            path = self.system.cache.get(name, "")
            if path and not (caller.dynamic.no_default_dirs and os.path.dirname(path) in self.system.default_dirs):
                yield path
            return
        if os.path.isdir(f"{directory}/glibc-hwcaps"):
            for level in self.system.levels():
                path = f"{directory}/glibc-hwcaps/{level}/{name}"
                if os.path.exists(path):
                    yield path
        path = f"{directory.rstrip('/')}/{name}"
        if os.path.lexists(path):
            yield path

    def _problem(self, path: str) -> tuple[str, _Ends]:
        """Why a file does not serve, and what ends with it."""
        try:
            self.system.read(path)
        except FileNotFoundError:
            return "a symbolic link to nothing", "nothing"
        except PermissionError:
            return "not readable", "nothing"
        except ForeignElfError as e:
            return str(e), "nothing"
        except (ElfError, IsADirectoryError) as e:
            return str(e) if isinstance(e, ElfError) else "a directory", "the search"
        except OSError as e:
            return e.strerror or "cannot be read", "the list"
        return "", "nothing"

    def _locate(self, name: str, caller: Library, because: str = "") -> Found:
        if "/" not in name:
            found = self.search(name, caller)
            if because and found.path:
                steps = (SearchStep(step=because, directory=os.path.dirname(found.path), found=True),)
                found = Found(name=name, path=found.path, step=because, steps=steps)
        else:
            problem = "not there" if not os.path.exists(name) else self._problem(name)[0]
            step = because or f"dlopen of {name}"
            steps = (SearchStep(step=step, directory=os.path.dirname(name), found=not problem, skipped=problem),)
            at = tidy(name) if problem and os.path.lexists(name) else ""
            error = f"{tidy(name)}: {problem}" if problem else ""
            found = Found(name=name, path="" if problem else name, step=step, steps=steps, error=error, stopped_at=at)
        self.found.setdefault(name, found)
        return found

    def _load(self, found: Found, loader: Library) -> Library | None:
        if not found.path:
            return None
        try:
            status = os.stat(found.path)
            dynamic = self.system.read(found.path)
        except (OSError, ElfError):
            return None
        library = self._inodes.get((status.st_dev, status.st_ino))
        if library is None:
            library = Library(found.path, dynamic, loader)
            self._inodes[status.st_dev, status.st_ino] = library
            self.loaded.append(library)
            if dynamic.soname:
                self.found.setdefault(dynamic.soname, found)
        library.names.add(found.name)
        return library

    def _executable(self, path: str) -> Library:
        try:
            real = os.path.realpath(path)  # the kernel's /proc/self/exe is what $ORIGIN of the program comes from
            return Library(real, self.system.read(real), None) if path else Library("", Dynamic(), None)
        except (OSError, ElfError):
            return Library(path, Dynamic(), None)

    def _expand(self, directories: Sequence[str], library: Library) -> list[str]:
        """Directories with $ORIGIN, $LIB and $PLATFORM filled in; an empty one is the working directory."""
        values = {"ORIGIN": library.origin, "LIB": self.system.lib, "PLATFORM": self.system.machine}
        result: list[str] = []
        for directory in directories:
            filled = directory or "."
            for name, value in values.items():
                filled = filled.replace(f"${{{name}}}", value).replace(f"${name}", value)
            if filled not in result:
                result.append(filled)
        return result
