"""The commands of a fix as a change: packages and variables, nothing else; no shell reads them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

from cudnn_doctor.model.package_trial import PackageChange, Variable

_PIP = re.compile(r"(?:\S*python[\d.]* -m pip|pip\d?|uv pip)$")
_OPTIONS = ("--force-reinstall", "--no-deps", "-U", "--upgrade", "--reinstall", "-y")
_VALUED = ("--index-url", "--extra-index-url", "--python", "--target")


def change_of(command: str, code: str, environ: Mapping[str, str]) -> PackageChange | None:
    """What the commands of a fix change: `... -m pip install`, `uninstall`, `export`, `unset`, joined by &&. None for a
    fix that does something else."""
    packages: list[tuple[str, ...]] = []
    variables: list[Variable] = []
    for part in re.split(r"&&", command):
        try:
            words = shlex.split(part)
        except ValueError:
            words = []
        if words[:1] == ["export"] and len(words) == 2 and "=" in words[1]:
            name, _, value = words[1].partition("=")
            variables.append(Variable(name=name, value=_expanded(value, environ)))
        elif words[:1] == ["unset"] and len(words) == 2:
            variables.append(Variable(name=words[1], value=None))
        elif change := _pip_words(words):
            packages.append(change)
        else:
            return None
    return PackageChange(packages=tuple(packages), variables=tuple(variables), origin=code)


def _pip_words(words: list[str]) -> tuple[str, ...]:
    """("install", ...) of a call of pip or uv, without what names the environment; () for anything else."""
    for at, word in enumerate(words):
        if word in ("install", "uninstall") and _PIP.match(" ".join(words[:at]).partition(" --python ")[0]):
            kept, rest = [word], iter(words[at + 1 :])
            for option in rest:
                if option == "--python":
                    next(rest, "")
                elif option in _VALUED or (option.startswith("-") and option not in _OPTIONS):
                    return ()
                else:
                    kept.append(option)
            named = [k for k in kept[1:] if not k.startswith("-")]
            return tuple(kept) if named and all(map(_is_requirement, named)) else ()
    return ()


def _is_requirement(word: str) -> bool:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return not Requirement(word).url
    except InvalidRequirement:
        return False


def _expanded(value: str, environ: Mapping[str, str]) -> str:
    """${NAME:+:$NAME}, $PWD and $NAME, as a shell would fill them in."""
    value = re.sub(r"\$\{(\w+):\+:\$\1\}", lambda m: f":{environ[m[1]]}" if environ.get(m[1]) else "", value)
    return re.sub(r"\$(\w+)", lambda m: os.getcwd() if m[1] == "PWD" else environ.get(m[1], ""), value)


def names_in(change: PackageChange) -> tuple[str, ...]:
    """The distributions that a change names."""
    from cudnn_doctor.probe.packages import requirement_name

    words = [w for words in change.packages for w in words[1:] if not w.startswith("-")]
    return tuple(dict.fromkeys(filter(None, map(requirement_name, words))))
