"""Which copy wins: for a plain dlopen, for each framework, and what each cuDNN would open itself.

Rests on `ldso`, which searches as glibc does, and on what the frameworks do before their libraries ask for cuDNN:
torch/__init__.py and jax_plugins/xla_cudaN/__init__.py load libraries of the wheels by path, TensorFlow calls dlopen
from libtensorflow_framework (checked with TensorFlow 2.17's own DsoLoader). Linux only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from glob import escape, glob
from pathlib import Path

from cudnn_doctor.model.base import Absent, Fact, Known, known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Framework, Resolution, TargetEnv
from cudnn_doctor.probe.cudnn_parts import SHIM, Opening, openings
from cudnn_doctor.probe.ldcache import read_ld_cache
from cudnn_doctor.probe.ldso import Found, Library, Process, System, tidy
from cudnn_doctor.probe.root_files import on_linux
from cudnn_doctor.probe.search_dirs import framework_libraries

PLAIN = "plain dlopen"


def resolve(
    soname: str,
    environ: Mapping[str, str],
    ld_cache: Sequence[tuple[str, str]],
    *,
    consumer: str = PLAIN,
    library: str | None = None,
    executable: str = "",
    preloads: Sequence[str] = (),
    root: Path = Path("/"),
) -> Resolution:
    """One search in a fresh process.

    Args:
        library: the object that asks, loaded first by the executable; the executable itself where left out.
        preloads: libraries that are loaded by path before.
    """
    process = Process(System(ld_cache, root), environ, executable)
    for path in preloads:
        process.open(path, because=f"preloaded: {path}")
    asker = process.open(library)[0] if library else None
    found = process.found.get(soname) or process.search(soname, asker)
    return _resolution(consumer, soname, found, ())


def resolutions(
    patient: TargetEnv,
    frameworks: Sequence[Framework],
    copies: Sequence[CudnnCopy],
    environ: Mapping[str, str],
    root: Path = Path("/"),
) -> tuple[Resolution, ...]:
    """For each libcudnn.so.N that is there or wanted a plain dlopen from the patient's Python; each framework; and for
    each copy what it opens itself: sub-libraries (`wanted` "libcudnn_ops.so.9"; another folder than the copy's means
    that versions mix) and helper libraries, as in a process that has loaded nothing else."""
    wanted = {c.soname for c in copies if c.kind != "shimless"}
    asking = [(f, f.cudnn_soname.value) for f in frameworks if isinstance(f.cudnn_soname, Known)]
    asking = [(f, soname) for f, soname in asking if value_or(f.cuda_build, True)]
    if not (wanted or asking) or not on_linux():
        return ()
    system = System(read_ld_cache(root), root)

    def start() -> _Run:
        return _Run(patient, environ, system)

    result = []
    for soname in sorted(wanted | {soname for _, soname in asking}):
        run = start()
        result.append(_resolution(PLAIN, soname, run.process.search(soname, run.ctypes), copies))
    for framework, soname in asking:
        found = _LOADS.get(framework.name, _load_other)(framework, soname, start())
        result.append(_resolution(framework.name, soname, found, copies))
    for copy in copies:
        result += _own(copy, start())
    return tuple(result)


class _Run:
    """The patient's Python just started: its executable, libpython, and _ctypes, from which a plain dlopen comes."""

    def __init__(self, patient: TargetEnv, environ: Mapping[str, str], system: System) -> None:
        self.patient = patient
        python = os.path.realpath(patient.python.value) if isinstance(patient.python, Known) else ""
        self.process = Process(system, environ, python)
        named = [lib for lib in self.process.loaded if lib.dynamic.soname.startswith("libpython")]
        self.interpreter = named[0] if named else self.process.main  # whose code opens extension modules
        module = self._ctypes_module(python) if python else ""
        self.ctypes = (self.process.open(module, self.interpreter)[0] if module else None) or self.interpreter

    def _ctypes_module(self, python: str) -> str:
        version = ".".join(value_or(self.patient.python_version, "").split(".")[:2])
        prefix = escape(os.path.dirname(os.path.dirname(python)))
        return next(iter(sorted(glob(f"{prefix}/lib/python{version}*/lib-dynload/_ctypes.*.so"))), "")


def _resolution(consumer: str, soname: str, found: Found, copies: Sequence[CudnnCopy]) -> Resolution:
    real = os.path.realpath(found.path) if found.path else ""
    path: Fact[str]
    if found.path:
        path = known(tidy(found.path), found.step)
    elif found.error:
        path = Absent(reason="error", detail=found.error)
    else:
        path = Absent(reason="not-found", detail=f"{soname} is in none of {len(found.steps)} places")
    return Resolution(
        consumer=consumer,
        wanted=soname,
        path=path,
        real_path=known(real, found.step) if real else path,
        step=found.step if found.path else "",
        shadowed=tuple(c.real_path for c in copies if c.soname == soname and c.real_path != real),
        steps=found.steps,
    )


def _load_torch(framework: Framework, soname: str, run: _Run) -> Found:
    """torch/__init__.py: libtorch_global_deps.so; the wheels' libraries by path, when that fails for want of a CUDA
    library, and from 2.9 on also when it succeeds and brought a libcudart; then the extension module torch._C."""
    where = framework.location
    text = _text(where, "__init__.py")
    deps = os.path.join(where, "lib/libtorch_global_deps.so")
    if os.path.exists(deps):
        _, missing = run.process.open(deps, run.ctypes)
        after = text.partition("def _load_global_deps")[2].partition("except OSError")[0]
        condition = re.search(r'"([^"]*libcudart\.so[^"]*)" not in _maps', after)
        cudart = condition[1] if condition else "libcudart.so"
        always = "_preload_cuda_deps()" in after and any(cudart in lib.path for lib in run.process.loaded)
        if always or any(m.name.startswith(("libcu", "libnv", "libnccl")) for m in missing):
            _preload_wheels(text, value_or(framework.built_cuda, ""), run)
    for module in sorted(glob(os.path.join(escape(where), "_C.*.so"))):
        run.process.open(module, run.interpreter)
    return run.process.found.get(soname) or _load_other(framework, soname, run)


def _preload_wheels(text: str, cuda: str, run: _Run) -> None:
    """The libraries that torch/__init__.py lists, each from the first package folder that has it; ends at one that is
    nowhere, as an exception does there."""
    listed = re.search(r"cuda_libs[^=\n]*= [\[{]\n(.*?)\n *[\]}]\n", text, re.DOTALL)
    for folder, pattern in re.findall(r'"(\w+)"[:,] "(lib\w+\.so\.\*\[0-9\])"', listed[1] if listed else ""):
        options = [f"nvidia/{folder}/lib", f"nvidia/cu{cuda.partition('.')[0]}/lib", f"{folder}/lib"]
        found = [
            p
            for site in run.patient.site_packages
            for o in options
            for p in sorted(glob(f"{escape(site)}/{o}/{pattern}"))
        ]
        if not found:
            return
        run.process.open(found[0], run.ctypes, because="preloaded by torch/__init__.py")


def _load_jax(framework: Framework, soname: str, run: _Run) -> Found:
    """The plugin's __init__ opens nvidia/cudnn/lib of the first package folder that has an nvidia.cudnn; whatever that
    gave, the plugin library itself calls dlopen by name."""
    if f'_load("cudnn", ["{soname}"]' in _text(framework.location, "__init__.py"):
        folder = next((s for s in run.patient.site_packages if os.path.isdir(f"{s}/nvidia/cudnn")), "")
        if folder:
            because = f"preloaded by jax_plugins/{os.path.basename(framework.location)}/__init__.py"
            run.process.open(f"{folder}/nvidia/cudnn/lib/{soname}", run.ctypes, because=because)
    loaded = run.process.named(soname)
    return run.process.found[soname] if loaded else _load_other(framework, soname, run)


def _load_tensorflow(framework: Framework, soname: str, run: _Run) -> Found:
    """The extension module pulls in libtensorflow_framework, whose DsoLoader calls dlopen; 1.13 and older link it."""
    module = os.path.join(framework.location, "python/_pywrap_tensorflow_internal.so")
    if os.path.exists(module):
        run.process.open(module, run.interpreter)
    return run.process.found.get(soname) or _load_other(framework, soname, run)


def _load_other(framework: Framework, soname: str, run: _Run) -> Found:
    """The first of the framework's libraries asks, by DT_NEEDED or by dlopen; without any, its module does."""
    asker = None
    for path in framework_libraries(framework):
        opened, _ = run.process.open(path, run.interpreter)
        if soname in run.process.found:
            return run.process.found[soname]
        asker = asker or opened
    return run.process.search(soname, asker or run.ctypes)


_LOADS: dict[str, Callable[[Framework, str, _Run], Found]] = {
    "torch": _load_torch,
    "jax": _load_jax,
    "tensorflow": _load_tensorflow,
}


def _own(copy: CudnnCopy, run: _Run) -> list[Resolution]:
    shim = run.process.open(copy.path, run.ctypes)[0] if copy.kind != "shimless" else None
    if shim is None:
        return []
    parts: dict[str, Library] = {SHIM: shim}
    result = []
    for opening in openings(copy):
        found = _first(opening, run.process, parts.get(opening.asker, shim))
        if opening.part and found.path:
            opened = run.process.open(found.path, parts.get(opening.asker, shim), because=found.step)[0]
            if opened:
                parts[opening.part] = opened
        soname = f"libcudnn{opening.part}.so.{copy.major}" if opening.part else opening.names[0]
        result.append(_resolution(copy.real_path, soname, found, ()))
    return result


def _first(opening: Opening, process: Process, asker: Library) -> Found:
    searches = [process.search(opening.names[0], asker)]
    for name in opening.names[1:]:
        if searches[-1].path or searches[-1].error:
            break
        searches.append(process.search(name, asker))
    return searches[-1] if searches[-1].path else searches[0]


def _text(*parts: str) -> str:
    try:
        with open(os.path.join(*parts), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
