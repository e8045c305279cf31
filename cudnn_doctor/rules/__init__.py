"""Judgement: pure functions from facts to findings. No os, subprocess, ctypes, clock or network in this package."""

from __future__ import annotations

from importlib import import_module

from cudnn_doctor.rules.base import Rule

SUBJECTS = (
    *("driver", "nvml", "devices", "cuinit", "libcuda"),
    *("gpu", "gpu_health"),
    *("cudnn", "cudnn_files", "cudnn_load"),
    "compat",
    *("environment", "variables"),
    *("live", "live_calls"),
    "required",
)
CATEGORIES = {
    "CD1": "Driver",
    "CD2": "GPU",
    "CD3": "cuDNN",
    "CD4": "Compatibility",
    "CD5": "Environment",
    "CD6": "Live",
}
RETIRED: frozenset[str] = frozenset()  # codes that once existed; never used again


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    rules = (
        value
        for subject in SUBJECTS
        for value in vars(import_module(f"cudnn_doctor.rules.{subject}")).values()
        if isinstance(value, Rule)
    )
    return tuple(sorted(rules, key=lambda r: r.code))
