"""Judgement: pure functions from facts to findings. No os, subprocess, ctypes, clock or network in this package."""

from __future__ import annotations

from importlib import import_module

from cudnn_doctor.rules.base import CATEGORIES, Rule, category_of

__all__ = ["CATEGORIES", "RETIRED", "SUBJECTS", "all_rules", "category_of"]

SUBJECTS = {  # files with rules, by the command whose facts they judge
    "check": (
        *("driver", "nvml", "devices", "cuinit", "libcuda"),
        *("gpu", "gpu_health"),
        *("cudnn", "cudnn_files", "cudnn_load", "cudnn_needs"),
        "compat",
        *("environment", "variables", "switches", "limits"),
        *("live", "live_calls"),
        "required",
    ),
    "reproduce": ("states",),
    "engines": ("engines",),
}
RETIRED: frozenset[str] = frozenset()  # codes that once existed; never used again


def all_rules(command: str = "check") -> tuple[Rule, ...]:
    """Every rule of a command, by code."""
    rules = (
        value
        for subject in SUBJECTS[command]
        for value in vars(import_module(f"cudnn_doctor.rules.{subject}")).values()
        if isinstance(value, Rule)
    )
    return tuple(sorted(rules, key=lambda r: r.code))
