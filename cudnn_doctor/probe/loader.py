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
from cudnn_doctor.probe.torch_preload import Preload, read_plan

PLAIN = "plain dlopen"
_OWN_NAME = re.compile(r"libcudnn\.so\.\d+")  # not libcudnn-74a4c495.so.9.1.0, which only its own wheel asks for
_CUDA = ("libcu", "libnv", "libnccl")  # NVIDIA's libraries in wheels; the driver's own are for other probes
_DRIVER = ("libcuda.so", "libnvidia-", "libcudnn")


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
    """For each libcudnn.so.N that is there or wanted a plain dlopen from the patient's Python; each framework, with the
    CUDA libraries that it links and that are nowhere; and for each copy what it opens itself: sub-libraries (`wanted`
    "libcudnn_ops.so.9"; another folder than the copy's means that versions mix) and helper libraries, in the process of
    the first framework that loads it, else in one that has loaded nothing."""
    wanted = {c.soname for c in copies if c.kind != "shimless" and _OWN_NAME.fullmatch(c.soname)}
    asking = [(f, f.cudnn_soname.value) for f in frameworks if isinstance(f.cudnn_soname, Known)]
    asking = [(f, soname) for f, soname in asking if value_or(f.cuda_build, True)]
    if not (wanted or asking) or not on_linux():
        return ()
    system = System(read_ld_cache(root), root)

    def start() -> _Run:
        return _Run(patient, environ, system)

    result = []
    users: dict[str, _Run] = {}
    for soname in sorted(wanted | {soname for _, soname in asking if _OWN_NAME.fullmatch(soname)}):
        run = start()
        result.append(_resolution(PLAIN, soname, run.process.search(soname, run.ctypes), copies))
    for framework, soname in asking:
        run = start()
        found = _LOADS.get(framework.name, _load_other)(framework, soname, run)
        result.append(_resolution(framework.name, soname, found, copies))
        result += [_resolution(framework.name, m.name, m, ()) for m in run.missing.values() if m.name != soname]
        if found.path:
            users.setdefault(os.path.realpath(found.path), run)
    for copy in copies:
        result += _own(copy, users.get(copy.real_path) or start())
    return tuple(result)


class _Run:
    """The patient's Python just started: its executable, libpython, and _ctypes, from which a plain dlopen comes."""

    def __init__(self, patient: TargetEnv, environ: Mapping[str, str], system: System) -> None:
        self.patient = patient
        self.missing: dict[str, Found] = {}  # CUDA libraries that what was opened needs, and that are nowhere
        python = os.path.realpath(patient.python.value) if isinstance(patient.python, Known) else ""
        self.process = Process(system, environ, python)
        named = [lib for lib in self.process.loaded if lib.dynamic.soname.startswith("libpython")]
        self.interpreter = named[0] if named else self.process.main  # whose code opens extension modules
        module = self._ctypes_module(python) if python else ""
        self.ctypes = (self.process.open(module, self.interpreter)[0] if module else None) or self.interpreter

    def open(self, path: str, caller: Library, because: str = "") -> tuple[Library | None, list[Found]]:
        """As `Process.open`; CUDA libraries that are not found are noted."""
        opened, missing = self.process.open(path, caller, because=because)
        self.missing |= {m.name: m for m in missing if m.name.startswith(_CUDA) and not m.name.startswith(_DRIVER)}
        return opened, missing

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
        stopped_at=found.stopped_at,
    )


def _load_torch(framework: Framework, soname: str, run: _Run) -> Found:
    """torch/__init__.py: libtorch_global_deps.so; libraries of the wheels by path, as its text has it for the case that
    this succeeded or failed (`torch_preload`); then the extension module torch._C."""
    where = framework.location
    deps = os.path.join(where, "lib/libtorch_global_deps.so")
    if os.path.exists(deps):
        plan = read_plan(_text(where, "__init__.py"))
        if plan is None:
            return _not_known(soname, f"{where}/__init__.py")
        _, missing = run.process.open(deps, run.ctypes)
        cuda = value_or(framework.built_cuda, "").partition(".")[0]
        if missing:
            if any(missing[0].name.startswith(p.pattern.partition(".")[0]) for p in plan.failed):
                nowhere = _preload_wheels(plan.failed, cuda, run)
                if nowhere:  # a ValueError there: torch cannot be imported
                    name = nowhere.pattern.partition(".so")[0] + ".so"
                    run.missing[name] = Found(name=name)
                    return run.process.found.get(soname) or Found(name=soname, error=f"{name} is on no sys.path")
        elif any(plan.if_mapped in lib.path for lib in run.process.loaded):
            _preload_wheels(plan.opened, cuda, run)
    for module in glob(os.path.join(escape(where), "_C.*.so")):
        run.open(module, run.interpreter)
    return run.process.found.get(soname) or _load_other(framework, soname, run)


def _not_known(soname: str, path: str) -> Found:
    return Found(name=soname, error=f"{path} opens libraries of the wheels in a way that is not known here")


def _preload_wheels(listed: Sequence[Preload], cuda: str, run: _Run) -> Preload | None:
    """Each library from the first folder of sys.path that has it. A required one that is nowhere is an exception there
    and ends the list: it is returned. One that cannot be opened ends the list too."""
    for preload in listed:
        path = _first_there(preload, cuda, run.patient.site_packages)
        if not path and preload.required:
            return preload
        if path and run.process.open(path, run.ctypes, because="preloaded by torch/__init__.py")[0] is None:
            return None
    return None


def _first_there(preload: Preload, cuda: str, sites: Sequence[str]) -> str:
    for site in sites:
        if preload.guard and not os.path.exists(preload.guard.format(site=site)):
            continue
        for place in preload.places:
            words = {"site": escape(site), "folder": preload.folder, "pattern": preload.pattern, "cuda": cuda}
            found = glob(place.format(**words))  # in the order of the directory, as there
            if found:
                return found[0]
    return ""


def _load_jax(framework: Framework, soname: str, run: _Run) -> Found:
    """The plugin's __init__ opens libraries of nvidia.* modules by path, and goes on where one is not there; whatever
    that gave, the plugin library itself calls dlopen by name."""
    text = _text(framework.location, "__init__.py")
    listed = _JAX_LOADS.findall(text)
    if soname in text and not any(soname in names for _, names in listed):
        return _not_known(soname, f"{framework.location}/__init__.py")
    because = f"preloaded by jax_plugins/{os.path.basename(framework.location)}/__init__.py"
    for module, names in listed:
        folder = _nvidia_module(module, run.patient.site_packages)
        for name in re.findall(r"[\w.+-]+\.so[\w.]*", names) if folder else ():
            run.process.open(f"{folder}/lib/{name}", run.ctypes, because=because)
    loaded = run.process.named(soname)
    return run.process.found[soname] if loaded else _load_other(framework, soname, run)


# _load("cublas", ["libcublas.so.12", "libcublasLt.so.12"]) in jax_plugins/xla_cuda12/__init__.py from 0.4.30 on
_JAX_LOADS = re.compile(r"""\(\s*["'](\w+)["'],\s*\[([^\]]*\.so[^\]]*)\]\s*\)""")


def _nvidia_module(name: str, sites: Sequence[str]) -> str:
    """The folder that `import nvidia.NAME` gives: a nvidia/__init__.py anywhere on sys.path makes that folder the only
    one (PEP 420), else the first one with that name counts."""
    regular = next((s for s in sites if os.path.isfile(f"{s}/nvidia/__init__.py")), "")
    return next((p for s in ([regular] if regular else sites) if os.path.isdir(p := f"{s}/nvidia/{name}")), "")


def _load_tensorflow(framework: Framework, soname: str, run: _Run) -> Found:
    """The extension module pulls in libtensorflow_framework, whose DsoLoader calls dlopen; 1.13 and older link it."""
    module = os.path.join(framework.location, "python/_pywrap_tensorflow_internal.so")
    if os.path.exists(module):
        run.open(module, run.interpreter)
    return run.process.found.get(soname) or _load_other(framework, soname, run)


def _load_other(framework: Framework, soname: str, run: _Run) -> Found:
    """The first of the framework's libraries asks, by DT_NEEDED or by dlopen; without any, its module does."""
    asker = None
    for path in framework_libraries(framework):
        opened, _ = run.open(path, run.interpreter)
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
