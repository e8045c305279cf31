"""Reads the authored data: YAML files of this folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def parse_yaml(text: str | bytes) -> Any:
    """Safe YAML, by libyaml where PyYAML was built with it (eight times faster).

    Raises:
        yaml.YAMLError: with line and column.
    """
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders


@cache
def knowledge(name: str) -> Any:
    """The content of `knowledge/NAME.yaml`."""
    return parse_yaml((HERE / f"{name}.yaml").read_bytes())
