"""`check --list`: every rule with what it checks, why, and where that is known from."""

from __future__ import annotations

from cudnn_doctor.rules import all_rules


def render_rules() -> str:
    """A line a rule, by category."""
    lines: list[str] = []
    category = ""
    for rule in all_rules():
        if rule.category != category:
            category = rule.category
            lines += ["", category] if lines else [category]
        lines.append(f"  {rule.code}  {rule.severity:<7}  {rule.owner:<11}  {rule.title}")
    return "\n".join(lines) + "\n"
