"""Real wheels in real environments: the libcudnn that each framework maps, against what the loader emulation says.

    python -m tests.bench.real_installs --into /tmp/installs [--only torch-2.6] > table.md

Needs a package index and about 30 GB; not part of the suite. Environments are made by uv (hard links into its cache)
or, without it, by venv and pip, and are kept for the next call. No GPU is needed: PyTorch and CTranslate2 link
libcudnn, JAX's plugin opens it by path, ONNX Runtime's provider and CuPy's module are opened as their packages do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.facts import Resolution
from cudnn_doctor.probe import Libraries, read_libraries
from cudnn_doctor.probe.target_env import find_target_env

# Runs in the examined Python: load the framework's CUDA part, then print what is mapped.
LOAD = {
    "torch": "import torch; torch.backends.cudnn.version()",
    "ctranslate2": "import ctranslate2",
    "jax": "from importlib import import_module; import pkgutil, jax_plugins as p\n"
    "for m in pkgutil.iter_modules(p.__path__): import_module('jax_plugins.' + m.name)._load_nvidia_libraries()",
    "onnxruntime": "import ctypes, onnxruntime as o, os\n"
    "d = os.path.dirname(o.__file__) + '/capi/libonnxruntime_providers_'\n"
    "ctypes.CDLL(d + 'shared.so', mode=ctypes.RTLD_GLOBAL); ctypes.CDLL(d + 'cuda.so')",
    "cupy": "import cupy_backends.cuda.libs.cudnn",
}
MAPS = (
    "\nimport json\nlines = [l for l in open('/proc/self/maps', errors='surrogateescape') if '/libcudnn' in l]\n"
    "print('MAPS ' + json.dumps([error, sorted({l.split(None, 5)[5].rstrip() for l in lines})]))"
)


@dataclass
class Environment:
    """One environment: what is installed by which Python, and which framework is looked at."""

    name: str
    framework: str
    requirements: Sequence[str]
    scenes: Sequence[str] = ("as installed",)
    python: str = "3.11"


@dataclass
class Scene:
    """A change to an environment or to the variables of the process."""

    environ: dict[str, str] = field(default_factory=dict)
    undo: Callable[[], None] = lambda: None


TORCH = (
    *("as installed", "LD_LIBRARY_PATH", "PYTHONPATH", "a folder a wheel", ".pth", "empty libcudnn"),
    "ring of links",
)
JAX = ("as installed", "LD_LIBRARY_PATH", "PYTHONPATH")
ENVIRONMENTS = (
    Environment("torch-2.1.2", "torch", ("torch==2.1.2", "numpy<2"), TORCH),
    Environment("torch-2.6.0", "torch", ("torch==2.6.0", "numpy"), TORCH),
    Environment("torch-2.8.0", "torch", ("torch==2.8.0", "numpy"), TORCH),
    Environment("torch-2.11.0", "torch", ("torch==2.11.0", "numpy"), TORCH),
    Environment("torch-2.14.1", "torch", ("torch==2.14.1", "numpy"), TORCH),
    Environment("jax-cuda12-0.6.2", "jax", ("jax[cuda12]==0.6.2",), JAX),
    Environment("jax-cuda13-0.10.2", "jax", ("jax[cuda13]==0.10.2",), JAX),
    Environment(
        "ctranslate2-4.6.0", "ctranslate2", ("ctranslate2==4.6.0", "numpy", "setuptools<80"),
        ("as installed", "LD_LIBRARY_PATH"),
    ),
    Environment("onnxruntime-gpu-1.22.0", "onnxruntime", ("onnxruntime-gpu==1.22.0", "numpy"), ("as installed",)),
    Environment("cupy-cuda12x-13.6.0", "cupy", ("cupy-cuda12x==13.6.0",), ("as installed", "LD_LIBRARY_PATH 8")),
)  # fmt: skip
OTHER = {"9": "nvidia-cudnn-cu12==9.10.2.21", "8": "nvidia-cudnn-cu12==8.9.7.29"}  # copies that come from elsewhere


def main() -> int:
    """Prints the table; 1 where a claim and a mapped file differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True, help="folder for the environments, kept")
    parser.add_argument("--only", action="append", default=[], help="environments whose name begins so")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    others = {major: _other(options.into, major) for major in OTHER}
    say("| environment | scene | framework maps | doctor says | agree |\n| --- | --- | --- | --- | --- |")
    differing = 0
    for one in ENVIRONMENTS:
        if options.only and not one.name.startswith(tuple(options.only)):
            continue
        prefix = _make(options.into, one)
        for scene in one.scenes:
            row, agree = _compare(one, prefix, scene, others, options.into)
            differing += not agree
            say(f"| {one.name} | {scene} | {row[0]} | {row[1]} | {'yes' if agree else '**NO**'} |")
    return 1 if differing else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _uv(*words: str) -> bool:
    uv = shutil.which("uv")
    return bool(uv) and subprocess.run([str(uv), *words], check=True).returncode == 0


def _make(into: Path, one: Environment) -> Path:
    prefix = into / one.name
    if not prefix.exists():
        if not _uv("venv", "-q", "-p", one.python, str(prefix)):
            subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
        if not _uv("pip", "install", "-q", "-p", str(prefix), *one.requirements):
            subprocess.run([str(prefix / "bin/pip"), "install", "-q", *one.requirements], check=True)
    return prefix


def _other(into: Path, major: str) -> Path:
    """A folder as `pip install --target` makes it, with another cuDNN; returns its nvidia/cudnn/lib."""
    target = into / f"other-{major}"
    if not target.exists():
        words = ["install", "-q", "--no-deps", "--target", str(target), OTHER[major]]
        if not _uv("pip", *words):
            subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return target / "nvidia/cudnn/lib"


def _site(prefix: Path) -> Path:
    return next((prefix / "lib").glob("python3.*/site-packages"))


def _scene(name: str, prefix: Path, others: Mapping[str, Path], into: Path) -> Scene:
    site = _site(prefix)
    library = site / "nvidia/cudnn/lib"
    major = name[-1] if name[-1].isdigit() else "9"
    if name.startswith("LD_LIBRARY_PATH"):
        return Scene({"LD_LIBRARY_PATH": str(others[major])})
    if name == "PYTHONPATH":
        return Scene({"PYTHONPATH": str(others[major].parents[2])})
    if name == ".pth":
        return _moved(site, into / f"{prefix.name}-pth")
    if name == "a folder a wheel":
        folders = _split(site, into / f"{prefix.name}-split")
        back = _hidden([site / "nvidia"])
        return Scene({"PYTHONPATH": os.pathsep.join(folders)}, back)
    if name in ("empty libcudnn", "ring of links"):
        (shim,) = library.glob("libcudnn.so.?")
        back = _hidden([shim])
        if name.startswith("empty"):
            shim.touch()
        else:
            shim.symlink_to(shim.name)
        return Scene(undo=back)
    return Scene()


def _hidden(paths: Sequence[Path]) -> Callable[[], None]:
    """Renames files or folders away; the result puts them back, over what has taken their names."""
    pairs = [(p, p.with_name(p.name + ".hidden")) for p in paths]
    for path, away in pairs:
        path.rename(away)

    def back() -> None:
        for path, away in pairs:
            away.replace(path)

    return back


def _moved(site: Path, elsewhere: Path) -> Scene:
    """All packages in a folder that a .pth file names."""
    elsewhere.mkdir(exist_ok=True)
    names = [p for p in site.iterdir() if p.name != "_virtualenv.py" and p.suffix != ".pth"]
    for path in names:
        path.rename(elsewhere / path.name)
    pth = site / "elsewhere.pth"
    pth.write_text(f"{elsewhere}\n")

    def back() -> None:
        pth.unlink()
        for path in names:
            (elsewhere / path.name).rename(path)

    return Scene(undo=back)


def _split(site: Path, into: Path) -> list[str]:
    """Each folder below nvidia/ in a package folder of its own, by links, as Bazel, PEX and PDM's cache have it."""
    folders = []
    for part in sorted((site / "nvidia").iterdir()):
        if part.is_dir() and part.name != "__pycache__":
            place = into / part.name / "nvidia"
            place.mkdir(parents=True, exist_ok=True)
            if not (place / part.name).exists():
                shutil.copytree(part, place / part.name, copy_function=os.link)
            folders.append(str(into / part.name))
    return folders


def _compare(
    one: Environment, prefix: Path, name: str, others: Mapping[str, Path], into: Path
) -> tuple[tuple[str, str], bool]:
    scene = _scene(name, prefix, others, into)
    try:
        environ = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH")} | scene.environ
        claims = read_libraries(find_target_env(str(prefix), environ), environ)
        load = _indented(LOAD[one.framework])
        code = f"error = ''\ntry:\n{load}\nexcept BaseException as e: error = repr(e)[:200]{MAPS}"
        done = subprocess.run(
            [str(prefix / "bin/python"), "-c", code], env=environ, capture_output=True, text=True, check=False
        )
    finally:
        scene.undo()
    said = next((line[5:] for line in done.stdout.splitlines() if line.startswith("MAPS ")), "")
    error, mapped = json.loads(said) if said else (f"ended with {done.returncode}", [])
    return _judge(one.framework, claims, error, mapped, prefix)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())


def _judge(
    framework: str, claims: Libraries, error: str, mapped: Sequence[str], prefix: Path
) -> tuple[tuple[str, str], bool]:
    """The two columns, and whether the shim and each mapped sub-library are where the emulation says."""
    mine = next((r for r in claims.resolutions if r.consumer == framework and _is_shim(r.wanted)), None)
    missing = [r.wanted for r in claims.resolutions if r.consumer == framework and not _is_shim(r.wanted)]
    said = _words(mine, prefix) + (f"; missing: {', '.join(missing)}" if missing else "")
    shims = [os.path.realpath(p) for p in mapped if _is_shim(os.path.basename(p))]
    seen = ", ".join(_short(p, prefix) for p in shims) or f"none{f' ({error})' if error else ''}"
    claimed = value_or(mine.real_path, "") if mine else ""
    own = {
        r.wanted.rpartition(".so")[0]: value_or(r.real_path, "") for r in claims.resolutions if r.consumer == claimed
    }
    parts = [(os.path.basename(p).partition(".so")[0], os.path.realpath(p)) for p in mapped]
    wrong = [name for name, real in parts if name in own and own[name] != real]
    if missing and error:
        return (seen, said), any(name.partition(".so")[0] in error for name in missing)
    return (seen, said + (f"; wrong: {wrong}" if wrong else "")), shims == ([claimed] if claimed else []) and not wrong


def _is_shim(name: str) -> bool:
    return name.startswith(("libcudnn.so", "libcudnn-"))


def _words(found: Resolution | None, prefix: Path) -> str:
    if found is None:
        return "no search"
    if isinstance(found.real_path, Known):
        return f"{_short(found.real_path.value, prefix)} ({_short(found.step, prefix)})"
    return _short(found.real_path.detail, prefix)


def _short(text: str, prefix: Path) -> str:
    site = str(_site(prefix))
    return text.replace(site, "SITE").replace(str(prefix.parent), "...")


if __name__ == "__main__":
    sys.exit(main())
