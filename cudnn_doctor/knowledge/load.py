"""Reads the authored data: YAML files of this folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def parse_yaml(text: str | bytes, *, unique: bool = False) -> Any:
    """Safe YAML, by libyaml where PyYAML was built with it (eight times faster). PyYAML takes the last of several equal
    keys without a word; `unique` refuses them, which costs a fifth more.

    Raises:
        yaml.YAMLError: with line and column.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if unique:
            _refuse_equal_keys(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_equal_keys(root: Any) -> None:
    from yaml import MappingNode, MarkedYAMLError, ScalarNode

    todo, seen = [root], set()
    while todo:
        node = todo.pop()
        if isinstance(node, ScalarNode) or id(node) in seen:  # an alias leads to the same node again
            continue
        seen.add(id(node))
        if not isinstance(node, MappingNode):
            todo += node.value
            continue
        first: dict[str, int] = {}
        for key, value in node.value:
            todo.append(value)
            line = key.start_mark.line + 1
            if isinstance(key, ScalarNode) and first.setdefault(key.value, line) != line:
                problem = f"the key {key.value!r} was given before, in line {first[key.value]}"
                raise MarkedYAMLError(problem=problem, problem_mark=key.start_mark)


@cache
def knowledge(name: str) -> Any:
    """The content of `knowledge/NAME.yaml`."""
    return parse_yaml((HERE / f"{name}.yaml").read_bytes())
