"""`check --list`: every rule with what it checks, why, and where that is known from."""

from __future__ import annotations

from cudnn_doctor.rules import CATEGORIES, all_rules


def render_rules() -> str:
    """A line a rule, by category."""
    lines: list[str] = []
    category = ""
    for rule in all_rules():
        if CATEGORIES[rule.code[:3]] != category:
            category = CATEGORIES[rule.code[:3]]
            lines += ["", category] if lines else [category]
        lines.append(f"  {rule.code}  {rule.severity:<7}  {rule.owner:<11}  {rule.title}")
    return "\n".join(lines) + "\n"
