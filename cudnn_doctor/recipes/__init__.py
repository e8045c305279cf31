"""Files for CI and clusters, to be copied and adapted; each says in its first comment what it is for.

A recipe is added by adding its file here. tests/recipes holds each one to the tool that reads it.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Names of the recipes, which are their files' names."""
    return tuple(sorted(p.name for p in HERE.iterdir() if p.suffix != ".py" and p.is_file()))


def read(name: str) -> str:
    """The text of a recipe.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in names():
        raise ValueError(f"there is no recipe {name!r}; the recipes are {', '.join(names())}.")
    return (HERE / name).read_text(encoding="utf-8")


def purpose(name: str) -> str:
    """What a recipe is for: its first comment, or where the format has none its "description"."""
    text = read(name)
    if name.endswith(".json"):
        return str(json.loads(text)["description"])
    return next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")
