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
        *("live", "live_calls", "live_maps", "framework_words"),
        "required",
    ),
    "reproduce": ("states",),
    "engines": ("engines",),
}
RETIRED: frozenset[str] = frozenset()  # codes that once existed; never used again


def all_rules(command: str = "check") -> tuple[Rule, ...]:
    """Every rule of a command, by code."""
    found = (rule for subject in SUBJECTS[command] for rule in rules_of(subject))
    return tuple(sorted(found, key=lambda r: r.code))


def rules_of(subject: str) -> tuple[Rule, ...]:
    """The rules of one subject: "compat"."""
    found = vars(import_module(f"cudnn_doctor.rules.{subject}")).values()
    return tuple(value for value in found if isinstance(value, Rule))
