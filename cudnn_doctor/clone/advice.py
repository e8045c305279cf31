"""The commands that make a proved change in the real environment, also where a pin of another package is in its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.facts import Package, TargetEnv
from cudnn_doctor.model.package_trial import PackageChange
from cudnn_doctor.model.report import Fix
from cudnn_doctor.probe.packages import requirement_name


def fixes_for(
    patient: TargetEnv, change: PackageChange, now: Mapping[str, str], packages: Sequence[Package], verify: str
) -> tuple[Fix, ...]:
    """How to do it for good.

    Args:
        now: versions in the copy after the change, of the distributions that it changed.
    """
    python = quote(value_or(patient.python, "python"))
    start = f"uv pip {{}} --python {python}" if patient.installer == "uv" else f"{python} -m pip {{}}"
    if not patient.installer:
        start = f"python3 -m pip --python {python} {{}}"
    fixes = []
    for words in change.packages:
        named = [_exact(w, now) for w in words[1:]]
        command = f"{start.format(words[0])} {' '.join(map(quote, named))}"
        fixes.append(Fix(text="In the real environment:", command=command, verify=verify))
    for pin in _pins(now, packages):
        fixes += _against(pin, now, patient)
    fixes += [
        Fix(text="Where the program is started:", command=_setting(v.name, v.value), verify=verify)
        for v in change.variables
    ]
    return tuple(fixes)


def _exact(word: str, now: Mapping[str, str]) -> str:
    """The version that was proved, in place of a range that may give another one tomorrow."""
    name = requirement_name(word)
    return f"{name}=={now[name]}" if name in now and not word.startswith("-") else word


def _setting(name: str, value: str | None) -> str:
    return f"unset {name}" if value is None else f"export {name}={quote(value)}"


def _pins(now: Mapping[str, str], packages: Sequence[Package]) -> list[tuple[Package, str, str]]:
    """(package, its requirement, the distribution) of each installed package whose requirement the change breaks."""
    from packaging.markers import UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement

    found = []
    for package in packages:
        for line in package.requires:
            name = requirement_name(line)
            if name not in now or "extra ==" in line:
                continue
            try:
                wanted = Requirement(line)
                applies = wanted.marker is None or wanted.marker.evaluate()
            except (InvalidRequirement, UndefinedEnvironmentName):
                continue
            if applies and not wanted.specifier.contains(now[name], prereleases=True):
                found.append((package, f"{name}{wanted.specifier}", name))
    return found


def _against(pin: tuple[Package, str, str], now: Mapping[str, str], patient: TargetEnv) -> list[Fix]:
    package, wanted, name = pin
    keep = f"{name}=={now[name]}"
    why = f"{package.name} {package.version} asks for {wanted}"
    text = (
        f"{why}: whatever installs {package.name} again puts that back. In a project of uv, override it in "
        f'pyproject.toml, [tool.uv] override-dependencies = ["{keep}"]; by hand:'
    )
    python = quote(value_or(patient.python, "python"))
    by_uv = f"echo {quote(keep)} > overrides.txt && uv pip install --python {python} --overrides overrides.txt "
    fixes = [Fix(text=text, command=f"{by_uv}{quote(f'{package.name}=={package.version}')}")]
    if patient.installer != "uv":
        text = f"pip knows no override (as a constraint {keep} contradicts {package.name}): install it last, alone."
        fixes.append(Fix(text=text, command=f"{python} -m pip install --no-deps {quote(keep)}"))
    return fixes
