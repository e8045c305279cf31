"""Builds small real ELF libraries with gcc, and a program that loads them, so that ld.so itself can be asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None or not os.path.exists("/proc/self/maps"), reason="needs gcc and /proc: Linux"
)

# Opens each argument, calls its `ask` where it has one, then prints the mapped files whose name has "libdoc".
_PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int count, char **names) {
  for (int i = 1; i < count; i++) {
    void *handle = dlopen(names[i], RTLD_NOW);
    if (!handle) { fprintf(stderr, "%s\n", dlerror()); continue; }
    void (*ask)(void) = (void (*)(void))dlsym(handle, "ask");
    if (ask) ask();
  }
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) {
    char *path = strchr(line, '/');
    if (path && strstr(path, "libdoc")) fputs(path, stdout);
  }
  return 0;
}
"""
_ASKER = r"""
#include <dlfcn.h>
#include <stdio.h>
void ask(void) { if (!dlopen("%s", RTLD_NOW)) fprintf(stderr, "%%s\n", dlerror()); }
"""


def library(
    path: Path,
    *,
    soname: str = "",
    rpath: Sequence[str] = (),
    runpath: Sequence[str] = (),
    needed: Sequence[tuple[str, Path]] = (),
    asks_for: str = "",
    text: str = "",
    flags: Sequence[str] = (),
) -> Path:
    """A shared library. `needed` are (soname, a file to link against) pairs; `asks_for` is what its `ask` dlopens."""
    source = text or (_ASKER % asks_for if asks_for else "int marker;\n")
    options = ["-shared", "-fPIC", *_tags(rpath, runpath), "-Wl,--no-as-needed", *flags]
    if soname:
        options.append(f"-Wl,-soname,{soname}")
    if needed:
        return _compile(path, source, options, [str(file) for _, file in needed])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_compiled(source, tuple(options)))
    return path


def program(path: Path, *, rpath: Sequence[str] = (), runpath: Sequence[str] = ()) -> Path:
    """The program that loads its arguments."""
    return _compile(path, _PROGRAM, _tags(rpath, runpath), ["-ldl"])


def loaded(executable: Path, names: Sequence[str], environ: Mapping[str, str], cwd: Path) -> tuple[set[str], str]:
    """Real paths of the libdoc files that a real process maps, and what it printed."""
    done = subprocess.run(
        [str(executable), *names], env=dict(environ), cwd=cwd, capture_output=True, text=True, timeout=20, check=True
    )
    return set(done.stdout.split()), done.stderr


def _tags(rpath: Sequence[str], runpath: Sequence[str]) -> list[str]:
    paths = rpath or runpath
    if not paths:
        return []
    return ["-Wl,--disable-new-dtags" if rpath else "-Wl,--enable-new-dtags", f"-Wl,-rpath,{':'.join(paths)}"]


@cache  # the same library goes to many folders
def _compiled(source: str, options: tuple[str, ...]) -> bytes:
    with TemporaryDirectory() as folder:
        return _compile(Path(folder) / "library.so", source, options, ()).read_bytes()


def _compile(path: Path, source: str, flags: Sequence[str], inputs: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["gcc", "-x", "c", "-", *flags, "-o", str(path), "-x", "none", *inputs],
        input=source,
        text=True,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return path
