"""A wheel's own Requires-Dist lines on cuDNN against what is there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from cudnn_doctor.matrix.judgement import Judgement
from cudnn_doctor.model.versions import minor, numbers

if TYPE_CHECKING:
    from packaging.markers import Marker

PLATFORMS = {"linux": ("linux", "Linux", "posix"), "windows": ("win32", "Windows", "nt")}


def declared_range(
    requires: Iterable[str],
    found: Mapping[str, str],
    *,
    other: str = "",
    installed: Collection[str] | None = None,
    python: str = "",
    machine: str = "x86_64",
    system: str = "linux",
) -> tuple[Judgement, ...]:
    """One judgement for each requirement on a cuDNN distribution that applies on that platform. Those of an extra count
    when their distribution is in `installed` or `found`, or when `installed` is not given.

    `found` maps distributions to versions ("nvidia-cudnn-cu12": "9.28.0.42"); `other` stands for those that it lacks:
    the cuDNN that is loaded though no such wheel owns it ("9.19.0"; numbers that are missing do not count). Lines that
    are not valid are left out.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    sys_platform, platform_system, os_name = PLATFORMS[system]
    environment = {
        "sys_platform": sys_platform,
        "platform_system": platform_system,
        "os_name": os_name,
        "platform_machine": machine,
    }
    if python:
        environment |= {"python_version": minor(python), "python_full_version": python}
    judgements = []
    for line in requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if not name.startswith("nvidia-cudnn-cu") or not _applies(requirement.marker, environment):
            continue
        wanted = installed is None or name in installed or name in found
        if not wanted and not _applies(requirement.marker, environment, extras=False):
            continue  # of an extra that nobody asked for
        specifier = str(requirement.specifier)
        version = found.get(name, other) or None
        fits = version is not None and satisfies(version, specifier)
        judgements.append(
            Judgement(
                verdict="unknown" if version is None else "ok" if fits else "problem",
                rule="declared",
                text=f"requires {name}{specifier}, " + (f"found {version}" if version else "which is not installed"),
                source=f"Requires-Dist: {line}",
                checked_on="",
                severity="warning",
            )
        )
    return tuple(judgements)


def _applies(marker: Marker | None, environment: Mapping[str, str], *, extras: bool = True) -> bool:
    if marker is None:
        return True
    names = re.findall(r"""extra\s*==\s*["']([^"']+)""", str(marker)) if extras else []
    return any(marker.evaluate({**environment, "extra": name}) for name in ("", *names))


def satisfies(version: str, specifier: str) -> bool:
    """Whether a version fits "==9.19.0.56" or ">=9.3.0.75,<10.0". A version with fewer numbers than the limit fits when
    some completion of it would."""
    return all(_fits(numbers(version), part.strip()) for part in specifier.split(",") if part.strip())


def _fits(have: tuple[int, ...], part: str) -> bool:
    operator = part[: len(part) - len(part.lstrip("=<>!~"))]
    text = part[len(operator) :].strip()
    want = numbers(text.removesuffix(".*"))
    if text.endswith(".*"):
        same = have[: len(want)] == want[: len(have)]
        return not same if operator == "!=" else same
    short = len(have) < len(want)
    length = len(have) if short else max(len(have), len(want))
    mine = have
    limit = want[:length] + (0,) * (length - len(want))
    if operator == "~=":
        return mine >= limit and mine[: len(want) - 1] == want[: len(want) - 1][: len(mine)]
    return {
        "==": mine == limit,
        "===": mine == limit,
        "!=": short or mine != limit,
        ">=": mine >= limit,
        "<=": mine <= limit,
        ">": mine > limit or (short and mine == limit),
        "<": mine < limit or (short and mine == limit and any(want[length:])),
    }[operator]


def specifier_for(requires: Iterable[str], distribution: str) -> str:
    """The version range that the requirement on a distribution gives, markers left aside; "" for none."""
    from packaging.requirements import InvalidRequirement, Requirement

    for line in requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if re.sub(r"[-_.]+", "-", requirement.name).lower() == distribution:
            return str(requirement.specifier)
    return ""
