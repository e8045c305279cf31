"""Whether a fix or an experiment is for this person: the `for` of causes.yaml and experiments.yaml. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cudnn_doctor.logs.regex import rx
from cudnn_doctor.model.versions import below


def fits(wanted: Mapping[str, Any], facts: Mapping[str, str], tokens: Collection[str]) -> bool:
    """Whether every condition of `wanted` holds.

    framework: one of these is stated. os, manager: one of these is stated. not_os, not_manager: none of these is.
    below, from: the framework's stated version is older than, or at least, that one. when: one of these tokens is
    there; unless: none is.
    """
    if "framework" in wanted and facts.get("framework") not in wanted["framework"]:
        return False
    for key, prefix in (("os", "os:"), ("manager", "manager:"), ("when", "")):
        if key in wanted and not any(f"{prefix}{name}" in tokens for name in wanted[key]):
            return False
    for key, prefix in (("not_os", "os:"), ("not_manager", "manager:"), ("unless", "")):
        if any(f"{prefix}{name}" in tokens for name in wanted.get(key, ())):
            return False
    return all(_version_fits(bound, wanted, facts) for bound in ("below", "from") if bound in wanted)


def _version_fits(bound: str, wanted: Mapping[str, Any], facts: Mapping[str, str]) -> bool:
    version = facts.get("framework_version", "")
    return rx(r"\d+\.\d").match(version) is not None and below(version, wanted[bound]) == (bound == "below")
