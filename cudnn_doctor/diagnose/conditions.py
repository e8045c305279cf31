"""Whether a fix or an experiment is for this person: the `for` of causes.yaml and experiments.yaml. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cudnn_doctor.logs.patterns import Condition
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.model.versions import below


def fits(wanted: Condition, facts: Mapping[str, str], tokens: Collection[str]) -> bool:
    """Whether every condition of `wanted` holds.

    framework: one of these is stated. os, manager: one of these is stated. not_os, not_manager: none of these is.
    below, since: the framework's stated version is older than, or at least, that one. when: one of these tokens is
    there; unless: none is.
    """
    if wanted.framework and facts.get("framework") not in wanted.framework:
        return False
    needed = ((wanted.os, "os:"), (wanted.manager, "manager:"), (wanted.when, ""))
    if any(names and not any(f"{prefix}{name}" in tokens for name in names) for names, prefix in needed):
        return False
    refused = ((wanted.not_os, "os:"), (wanted.not_manager, "manager:"), (wanted.unless, ""))
    if any(f"{prefix}{name}" in tokens for names, prefix in refused for name in names):
        return False
    if not wanted.below and not wanted.since:
        return True
    version = facts.get("framework_version", "")
    if rx(r"\d+\.\d").match(version) is None:
        return False
    old_enough = not wanted.below or below(version, wanted.below)
    return old_enough and not (wanted.since and below(version, wanted.since))
