"""Which rules run: `--only` and `--skip` take codes (CD301), prefixes (CD3) or category names (driver)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cudnn_doctor.rules.base import CATEGORIES, Rule


def select_rules(
    rules: Sequence[Rule], *, only: Sequence[str] = (), skip: Sequence[str] = (), always: Collection[str] = ()
) -> tuple[Rule, ...]:
    """The rules that the user wants; codes in `always` run whatever `only` and `skip` say.

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
    chosen = tuple(r for r in rules if r.code in always or _wanted(r, only, skip))
    if not chosen:
        raise ValueError("--only and --skip together leave no rule to run.")
    return chosen


def _wanted(rule: Rule, only: Sequence[str], skip: Sequence[str]) -> bool:
    chosen = not only or any(_matches(rule, name) for name in only)
    return chosen and not any(_matches(rule, name) for name in skip)


def _matches(rule: Rule, name: str) -> bool:
    return (
        rule.code.startswith(name.upper())
        if name.upper().startswith("CD") and name[2:].isdigit()
        else rule.category.lower() == name.lower()
    )
