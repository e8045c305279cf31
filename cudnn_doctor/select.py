"""Which rules run: `--only` and `--skip` take codes (CD301), prefixes (CD3) or category names (driver)."""

from __future__ import annotations

from collections.abc import Sequence

from cudnn_doctor.rules import CATEGORIES
from cudnn_doctor.rules.base import Rule


def select_rules(rules: Sequence[Rule], *, only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The rules that the user wants.

    Raises:
        ValueError: a name that matches no rule, or nothing is left.
    """
    for name in (*only, *skip):
        if not any(_matches(r, name) for r in rules):
            names = ", ".join(c.lower() for c in CATEGORIES.values())
            raise ValueError(
                f"{name!r} matches no rule; --only and --skip take a code (CD101), a prefix (CD1) or one of {names}. "
                "`cudnn-doctor check --list` shows all."
            )
    chosen = tuple(
        r for r in rules if (not only or any(_matches(r, n) for n in only)) and not any(_matches(r, n) for n in skip)
    )
    if not chosen:
        raise ValueError("--only and --skip together leave no rule to run.")
    return chosen


def _matches(rule: Rule, name: str) -> bool:
    return (
        rule.code.startswith(name.upper())
        if name.upper().startswith("CD") and name[2:].isdigit()
        else (CATEGORIES[rule.code[:3]].lower() == name.lower())
    )
