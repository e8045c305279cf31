"""`try`: a change of packages or variables, proved in a throw-away copy of the environment."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cudnn_doctor.commands.console import emit, ready, remark, run, screen
from cudnn_doctor.commands.options import Env, Force, NoColor, Output, Timeout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudnn_doctor.clone.trial import Request
    from cudnn_doctor.model.facts import TargetEnv
    from cudnn_doctor.model.package_trial import PackageChange, PackageTrial


def try_(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="What to run; none: a test of each framework.")
    ] = None,
    fix: Annotated[
        str | None, typer.Option("--fix", metavar="CODE", help="The fix that `check` prints for it.")
    ] = None,
    with_: Annotated[
        list[str] | None, typer.Option("--with", metavar="SPEC", help="Install this requirement; repeatable.")
    ] = None,
    env_var: Annotated[
        list[str] | None,
        typer.Option("--env-var", metavar="NAME=VALUE", help="Set a variable; NAME alone takes it out; repeatable."),
    ] = None,
    bisect: Annotated[
        tuple[str, str] | None,
        typer.Option("--bisect", metavar="NAME FROM..TO", help="Find the release at which CMD changes."),
    ] = None,
    times: Annotated[int, typer.Option(metavar="K", min=1, max=100, help="Runs before and after.")] = 3,
    timeout: Timeout = 600.0,
    find_links: Annotated[
        list[str] | None, typer.Option("--find-links", metavar="FOLDER", help="Folder with wheels; repeatable.")
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Let the installer use the package index.")] = False,
    env: Env = None,
    fmt: Annotated[Literal["text", "json"], typer.Option("--format", help="Form of the result.")] = "text",
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
) -> None:
    """Prove a change of packages or variables in a throw-away copy.

    The environment is copied by links, CMD runs K times before and after the change, and the copy is removed. The
    environment itself is only read. It runs the code of the environment and of CMD.

    \b
    Examples:
      cudnn-doctor try --fix CD406 -- python train.py
      cudnn-doctor try --with 'nvidia-cudnn-cu12>=9.15' --find-links wheels -- python train.py
      cudnn-doctor try --env-var LD_LIBRARY_PATH -- python train.py
      cudnn-doctor try --bisect nvidia-cudnn-cu12 9.8..9.15 --download -- python train.py
    """

    def work() -> int:
        ready(output, force)
        from cudnn_doctor.render.try_ import render_trial

        document = _trial(
            command or (), fix, with_ or (), env_var or (), bisect, env,
            times=times, timeout=timeout, find_links=find_links or (), download=download,
        )  # fmt: skip
        emit(render_trial(document, fmt, **screen(no_color, output)), output, force, form=fmt)
        return document.exit_code

    run(work)


def _trial(
    command: Sequence[str],
    fix: str | None,
    specs: Sequence[str],
    settings: Sequence[str],
    bisect: tuple[str, str] | None,
    env: str | None,
    *,
    times: int,
    timeout: float,
    find_links: Sequence[str],
    download: bool,
) -> PackageTrial:
    from cudnn_doctor.clone import trial
    from cudnn_doctor.commands.options import engine_options
    from cudnn_doctor.examine import find_target_env
    from cudnn_doctor.model.errors import UsageError

    asked = [name for name, given in (("--fix", fix), ("--with", specs), ("--bisect", bisect)) if given]
    if len(asked) > 1:
        raise UsageError(f"try: {' and '.join(asked)} are different trials: give one of them.")
    if not asked and not settings:
        raise UsageError("try: what is to be changed? --fix CODE, --with SPEC, --env-var NAME=VALUE or --bisect.")
    for folder in find_links:
        if not os.path.isdir(folder):
            raise UsageError(f"--find-links {folder}: no such folder.")
    patient = find_target_env(engine_options(env=env), os.environ)
    built_in = "" if command else _framework(patient)
    request = trial.Request(
        command=tuple(command) or _builtin(built_in),
        built_in=built_in,
        times=times,
        timeout=timeout,
        find_links=tuple(map(os.path.abspath, find_links)),
        download=download,
        verify=f"cudnn-doctor check{f' --env {quote(env)}' if env else ''} --only {fix}" if fix else "",
    )
    if bisect:
        if not command or settings:
            raise UsageError("--bisect needs the command that passes or fails, after --, and no other change.")
        return _bisect(patient, bisect, request)
    change = _change(patient, fix, specs, settings)
    return trial.compare(patient, change, request, os.environ, remark)


def _change(patient: TargetEnv, fix: str | None, specs: Sequence[str], settings: Sequence[str]) -> PackageChange:
    from msgspec.structs import replace

    from cudnn_doctor.model.package_trial import PackageChange, Variable

    own = tuple(_variable(text) for text in settings)
    if fix:
        found = _fix_of(patient, fix)
        return replace(found, variables=(*found.variables, *own))
    packages = (("install", *specs),) if specs else ()
    return PackageChange(packages=packages, variables=tuple(Variable(name=n, value=v) for n, v in own))


def _variable(text: str) -> tuple[str, str | None]:
    from cudnn_doctor.model.errors import UsageError

    name, equals, value = text.partition("=")
    if not name.replace("_", "a").isalnum():
        raise UsageError(f"--env-var {text}: it takes NAME=VALUE, or NAME to take it out.")
    return name, value if equals else None


def _framework(patient: TargetEnv) -> str:
    """The first framework that is installed and has a built-in test.

    Raises:
        UsageError: none is.
    """
    from cudnn_doctor.live.frameworks import NAMES
    from cudnn_doctor.model.errors import UsageError
    from cudnn_doctor.probe.frameworks import probe_frameworks
    from cudnn_doctor.probe.packages import probe_packages

    installed = [f.name for f in probe_frameworks(patient, probe_packages(patient))]
    found = next((name for name in installed if name in NAMES), "")
    if not found:
        raise UsageError(f"try: no TensorFlow, PyTorch, JAX or CuPy in {patient.prefix}: give a command after --.")
    return found


def _builtin(framework: str) -> tuple[str, ...]:
    from cudnn_doctor.live.frameworks import task_of

    return ("python", *(task_of(framework, ("convolution", "rnn", "attention")) or ()))


def _fix_of(patient: TargetEnv, code: str) -> PackageChange:
    """The first fix of a finding that changes packages or variables alone.

    Raises:
        UsageError: nothing is wrong by that rule, or none of its fixes is of that kind.
    """
    from functools import partial

    from cudnn_doctor import examine
    from cudnn_doctor.clone.fixes import change_of
    from cudnn_doctor.commands.options import engine_options
    from cudnn_doctor.model.errors import UsageError
    from cudnn_doctor.rules.judge import judge

    options = engine_options(env=patient.prefix, only=(code,), live=code.startswith("CD6"))
    report = judge(examine.facts(options, os.environ, None), options, examine.today())
    problems = [f for f in report.findings if f.status == "problem"]
    if not problems:
        raise UsageError(f"try --fix {code}: {code} finds nothing wrong in {patient.prefix}.")
    commands = [x.command for f in problems for x in f.fixes if x.command]
    found = next(
        (change for change in map(partial(change_of, code=code, environ=os.environ), commands) if change), None
    )
    if found is None:
        said = f": {commands[0]}" if commands else ""
        raise UsageError(f"try --fix {code}: none of its fixes changes packages or variables alone{said}")
    return found


def _bisect(patient: TargetEnv, asked: tuple[str, str], request: Request) -> PackageTrial:
    from cudnn_doctor.clone import trial
    from cudnn_doctor.clone.installing import wheels_in
    from cudnn_doctor.matrix.load import load_matrix
    from cudnn_doctor.model.errors import UsageError
    from cudnn_doctor.model.versions import numbers
    from cudnn_doctor.probe.packages import normalised

    name, (first, dots, last) = normalised(asked[0]), asked[1].partition("..")
    if not (first and dots and last):
        raise UsageError(f"--bisect {asked[0]} {asked[1]}: it takes a name and two versions, FROM..TO.")
    low, high = numbers(first), numbers(last)
    wheels = load_matrix().wheels(name)
    known = wheels_in(request.find_links, name)
    if not known and wheels:
        known = [v for v in wheels.versions if v not in wheels.yanked]
    versions = sorted((v for v in known if numbers(v) >= low and numbers(v)[: len(high)] <= high), key=numbers)
    if len(versions) < 2:
        raise UsageError(
            f"--bisect {name} {asked[1]}: {len(versions)} of the known releases lie there; two are needed. Known: "
            f"{', '.join(known) or 'none (give --find-links a folder with wheels)'}."
        )
    remark(f"{len(versions)} releases: {', '.join(versions)}")
    return trial.find_version(patient, name, versions, request, os.environ, remark)
